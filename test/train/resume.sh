#!/usr/bin/env bash
# The same seed twice gives the same weights bit for bit; 2N steps are N, a resume, and N; the number of threads changes nothing.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt $gpt_size
quiet descent compile gpt -o train
run() { quiet ./train --data corpus.txt --seed 3 "$@"; }
run --steps $((2 * gpt_steps)) --out a --export a.safetensors
run --steps $((2 * gpt_steps)) --out b --export b.safetensors --threads 1
run --steps $gpt_steps --out c
run --steps $((2 * gpt_steps)) --out c --resume --export c.safetensors
cmp a.safetensors b.safetensors || fail "the same seed differs"
cmp a.safetensors c.safetensors || fail "a resumed run differs"
quiet ./train --data corpus.txt --seed 4 --steps $((2 * gpt_steps)) --out d --export d.safetensors
! cmp -s a.safetensors d.safetensors || fail "another seed gives the same weights: the comparison shows nothing"
