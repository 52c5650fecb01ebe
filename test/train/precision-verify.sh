#!/usr/bin/env bash
# The compiled step of each type against the interpreter that rounds as the types say; no pass changes the meaning; `verify --precision` says what the types
# cost, and beforehand that fp16 without a loss scale loses gradients.
. "$(dirname "$0")/common.sh"
quiet descent new gpt gpt --layers 2 --heads 2 --width 24 --sequence 17 --vocabulary 33
quiet descent new mlp mlp --inputs 7 --hidden 13 --classes 5
quiet descent new convnet convnet --height 9 --width 7 --channels 3 --classes 5
verify() { # verify NAME OPTIONS...
  descent verify "$1" --set batch.size=3 --set batch.micro=3 "${@:2}" >verify.log 2>&1 || { cat verify.log >&2; fail "verify $*"; }
}
set_compute() { echo --set precision.compute=$1; }
for model in gpt mlp convnet; do
  for compute in bf16 fp16 fp8 tf32; do verify $model $(set_compute $compute); done
  for compute in bf16 fp16; do verify $model $(set_compute $compute) --each-pass; done
done
grep -q rounding verify.log || fail "--each-pass does not follow rounding"
verify gpt $(set_compute fp8) --set precision.fp8_scaling=current --each-pass
verify gpt $(set_compute bf16) --set precision.loss_scale=1024
verify gpt $(set_compute fp16) --set precision.loss_scale=none
verify mlp $(set_compute bf16) --set precision.master=false
verify mlp $(set_compute bf16) --set precision.state=bf16 --set precision.rounding=nearest
# A scale at which every step overflows leaves nothing to compare.
! descent verify mlp $(set_compute fp16) --set precision.loss_scale=1e30 >log 2>&1 || fail "verify compared a skipped step"
grep -q "overflow" log || fail "verify does not say that the step overflows"

precision() { # precision NAME OPTIONS...: the report on stdout
  descent verify "$1" --precision "${@:2}" 2>precision.log || { cat precision.log >&2; fail "verify $1 --precision ${*:2}"; }
}
for compute in fp32 tf32 fp8; do precision mlp $(set_compute $compute) >report; done
precision convnet --set batch.size=4 --set batch.micro=4 $(set_compute fp16) >report
precision gpt $(set_compute bf16) >report
grep -q "all in bf16" report && grep -q "no loss scale is needed" report || { cat report >&2; fail "bf16 report"; }
precision gpt $(set_compute fp16) >report
grep -q "dynamic loss scale" report && grep -q "scale 1: " report || { cat report >&2; fail "fp16 report"; }

# Gradients behind a factor of 1e-8 are below what fp16 can hold; each of its two parts is not.
cat >tiny.mlir <<'MLIR'
nn.model @tiny(%x: tensor<?x8xf32> {nn.role = "data"}, %y: tensor<?x4xf32> {nn.role = "target"}) {
  %w0 = nn.parameter "w0" normal(0.0, 0.3) : tensor<8x16xf32>
  %w1 = nn.parameter "w1" normal(0.0, 0.3) : tensor<16x4xf32>
  %small = nn.constant dense<1.0e-4> : tensor<f32>
  %0 = nn.matmul %x, %w0 : tensor<?x8xf32>, tensor<8x16xf32>
  %1 = nn.gelu %0 tanh : tensor<?x16xf32>
  %2 = nn.matmul %1, %w1 : tensor<?x16xf32>, tensor<16x4xf32>
  %3 = nn.mul %2, %small : tensor<?x4xf32>, tensor<f32>
  %4 = nn.mul %3, %small : tensor<?x4xf32>, tensor<f32>
  %sum, %weight = nn.mse %4, %y : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %sum, %weight, %4 : tensor<?x4xf32>
}
MLIR
quiet descent verify mlp --model tiny.mlir --each-pass --set batch.size=4 --set batch.micro=4 $(set_compute fp16)
tiny() { precision mlp --model tiny.mlir --set batch.size=16 --set batch.micro=16 $(set_compute fp16) "$@"; }
tiny --set precision.loss_scale=none >report
grep -q "fp16 without a loss scale.* loses" report || { cat report >&2; fail "lost gradients are not reported"; }
tiny --set precision.loss_scale=none --json >report.json
tiny --json >dynamic.json
tiny --set precision.loss_scale=1e30 >report
grep -q "overflows" report || { cat report >&2; fail "a scale that overflows is not reported"; }
python3 - <<'PYTHON'
import json
plain, dynamic = json.load(open("report.json")), json.load(open("dynamic.json"))
at = {c["scale"]: c for c in plain["range"]["at"]}
lost = at[plain["scale_used"]]["lost"] / plain["range"]["elements"]
assert lost > 0.3, lost
assert any('precision.loss_scale = "dynamic"' in a for a in plain["advice"]), plain["advice"]
worst = lambda report: max(g["recipe"] if g["recipe"] is not None else 1e9 for g in report["gradients"])
assert worst(plain) > 0.1 and worst(dynamic) < 0.05, (worst(plain), worst(dynamic))
assert all(g["fp32"] < 1e-4 for g in plain["gradients"])
scale = plain["range"]["recommended_scale"]
assert scale > 1 and scale * plain["range"]["largest"] * 16 <= 65504, scale
assert sum(plain["range"]["exponents"].values()) == plain["range"]["elements"]
PYTHON
# Options that contradict each other are refused.
! descent verify mlp --json >log 2>&1 || fail "--json without --precision"
! descent verify mlp --precision --each-pass >log 2>&1 || fail "--precision with --each-pass"
