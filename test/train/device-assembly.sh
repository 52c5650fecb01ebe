#!/usr/bin/env bash
# Every kernel of the gallery's models is assembled for three chips without spills, and moves 128 bits at a time where its rows allow it. Without ptxas the PTX alone is looked at.
. "$(dirname "$0")/common.sh"
checker=$source_root/test/train/accesses.py
# The gallery's own sizes, and a GPT with heads of 64, which is what attention is tuned for.
quiet descent new gpt gpt
quiet descent new gpt gpt-wide --layers 2 --heads 4 --width 256 --sequence 256
quiet descent new convnet convnet
quiet descent new mlp mlp
for model in gpt gpt-wide convnet mlp; do
  for compute in fp32 bf16; do
    for chip in sm_80 sm_90 sm_100; do
      options="--target cuda:$chip --set precision.compute=$compute"
      descent compile $model $options --emit=ptx >device.ptx || fail "$model $compute $chip"
      descent plan $model $options --json >plan.json || fail "$model $compute $chip"
      python3 "$checker" device.ptx plan.json >accesses.log || fail "$model in $compute for $chip: $(cat accesses.log)"
      echo "$model $compute $chip: $(tail -1 accesses.log)"
    done
  done
done
grep -q '"resources": "ptxas"' plan.json || echo "skipped: registers and spills: $(grep -o '"no_resources": "[^"]*"' plan.json)"
