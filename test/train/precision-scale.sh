#!/usr/bin/env bash
# A power of two as loss scale changes no bit of bf16 training, nor does the number of threads; fp32 and bf16 differ, so the comparison can fail.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt $gpt_size
make() { quiet descent compile gpt -o "$1" "${@:2}"; }
run() { quiet "./$1" --data corpus.txt --seed 3 --steps $gpt_steps --out "run-$1" --overwrite --export "$1.safetensors" "${@:2}"; }
make fp32
make none --set precision.compute=bf16
make one --set precision.compute=bf16 --set precision.loss_scale=1
make large --set precision.compute=bf16 --set precision.loss_scale=1024
make huge --set precision.compute=bf16 --set precision.loss_scale=1048576
for name in fp32 none one large huge; do run $name --threads 2; done
for name in one large huge; do cmp none.safetensors $name.safetensors || fail "loss scale '$name' changes the weights"; done
! cmp -s none.safetensors fp32.safetensors || fail "bf16 and fp32 give the same weights: the comparison shows nothing"
# The norm that is clipped is the true one: it stays far below 100 here, and 1024 times it would not.
make free --set precision.compute=bf16 --set optimizer.clip=0
make clipped --set precision.compute=bf16 --set precision.loss_scale=1024 --set optimizer.clip=100
for name in free clipped; do run $name --threads 2; done
cmp free.safetensors clipped.safetensors || fail "a clip that the true norm does not reach changes the weights"
! cmp -s free.safetensors none.safetensors || fail "a clip that the norm reaches changes nothing: the comparison shows nothing"
mv large.safetensors two.safetensors
run large --threads 1
cmp two.safetensors large.safetensors || fail "the number of threads changes a bf16 run"
# Losses agree as well, and the scale in use is in the metrics.
for name in one large; do [ "$(field run-none/metrics.jsonl loss)" = "$(field run-$name/metrics.jsonl loss)" ] || fail "the loss depends on the scale"; done
[ "$(field run-large/metrics.jsonl loss_scale)" = 1024 ] || [ "$(field run-large/metrics.jsonl loss_scale)" = 1024.0 ] || fail "metrics lack the scale"
