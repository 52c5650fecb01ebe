#!/usr/bin/env bash
# Each level prints IR that descent-opt reads again, each phase can be run from the printed form of the one before, and the same input gives the same bytes.
. "$(dirname "$0")/common.sh"
quiet descent new gpt gpt --layers 2 --heads 2 --width 32 --sequence 32
for level in nn train exec; do
  descent compile gpt --emit=$level >$level.mlir
  quiet descent-opt $level.mlir -o again.mlir
  quiet descent-opt again.mlir -o twice.mlir
  cmp again.mlir twice.mlir || fail "--emit=$level does not print what it reads"
done
descent-opt --phase-precision --phase-differentiate nn.mlir >from-nn.mlir
descent-opt train.mlir >train-again.mlir
cmp from-nn.mlir train-again.mlir || fail "phase-precision and phase-differentiate on printed nn differs from compile --emit=train"
descent-opt --phase-fusion --phase-schedule train.mlir >from-train.mlir
grep -q exec.program from-train.mlir || fail "no exec.program"
descent compile gpt --emit=llvm >program.ll
grep -q descent_program_v3 program.ll || fail "--emit=llvm has no program table"
quiet descent compile gpt --emit=obj -o a.o
quiet descent compile gpt --emit=obj -o b.o
nm a.o >symbols; grep -q descent_program_v3 symbols || fail "--emit=obj has no program table"
cmp a.o b.o || fail "the same input gives other bytes"
descent compile gpt --emit=train --print-after=differentiate >/dev/null 2>after.log
grep -q train.gradient after.log || fail "--print-after printed nothing"
descent compile gpt -o train --time-passes >/dev/null 2>times.log
grep -qi plan times.log || fail "--time-passes printed nothing"
