#!/usr/bin/env bash
# The same seed twice gives the same weights bit for bit; 20 steps are 10, a resume, and 10; the number of threads changes nothing.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 2 --heads 2 --width 32 --sequence 32
quiet descent compile gpt -o train
run() { quiet ./train --data corpus.txt --seed 3 "$@"; }
run --steps 20 --out a --export a.safetensors
run --steps 20 --out b --export b.safetensors --threads 1
run --steps 10 --out c
run --steps 20 --out c --resume --export c.safetensors
cmp a.safetensors b.safetensors || fail "the same seed differs"
cmp a.safetensors c.safetensors || fail "a resumed run differs"
quiet ./train --data corpus.txt --seed 4 --steps 20 --out d --export d.safetensors
! cmp -s a.safetensors d.safetensors || fail "another seed gives the same weights: the comparison shows nothing"
