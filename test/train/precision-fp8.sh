#!/usr/bin/env bash
# A GPT in fp8 trains to within 2 % of bf16, under delayed and under current scaling, and repeats bit for bit; tf32 trains as fp32 does.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 2 --heads 2 --width 64 --sequence 32
run() { # run NAME OPTIONS_OF_COMPILE...: mean loss of the last 10 of 100 steps
  quiet descent compile gpt -o "$1" --set schedule.steps=100 --set schedule.warmup=10 "${@:2}"
  quiet "./$1" --data corpus.txt --seed 3 --out "run-$1" --export "$1.safetensors" --validate-every 0
  python3 -c 'import json,sys; l=[json.loads(x)["loss"] for x in open(sys.argv[1])]; print(sum(l[-10:])/10)' "run-$1/metrics.jsonl"
}
fp32=$(run fp32) bf16=$(run bf16 --set precision.compute=bf16) tf32=$(run tf32 --set precision.compute=tf32)
delayed=$(run delayed --set precision.compute=fp8 --set precision.fp8_history=16)
current=$(run current --set precision.compute=fp8 --set precision.fp8_scaling=current)
echo "fp32 $fp32, tf32 $tf32, bf16 $bf16, fp8 delayed $delayed, current $current"
near() { check "$1 - $2 <= $3 * $2 && $2 - $1 <= $3 * $2"; }
near "$delayed" "$bf16" 0.02; near "$current" "$bf16" 0.02; near "$tf32" "$fp32" 0.01
for name in tf32 bf16 delayed current; do ! cmp -s fp32.safetensors $name.safetensors || fail "$name computes what fp32 does"; done
! cmp -s delayed.safetensors bf16.safetensors || fail "fp8 computes what bf16 does"
# The history of magnitudes is state: 100 steps are 60, a resume, and 40, on any number of threads.
quiet ./delayed --data corpus.txt --seed 3 --out parts --steps 60 --threads 1
quiet ./delayed --data corpus.txt --seed 3 --out parts --steps 100 --resume --threads 2 --export parts.safetensors --validate-every 0
cmp delayed.safetensors parts.safetensors || fail "fp8 differs after a resume"
