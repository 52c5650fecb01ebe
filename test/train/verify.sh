#!/usr/bin/env bash
# The compiled step of the three families against double precision, at odd and ragged sizes and batch 1; no pass changes the meaning.
. "$(dirname "$0")/common.sh"
verify() { # verify NAME OPTIONS_OF_NEW...
  quiet descent new "$2" "$1" "${@:3}"
  for batch in 1 3; do
    descent verify "$1" --set batch.size=$batch --set batch.micro=$batch >verify.log 2>&1 || { cat verify.log >&2; fail "verify $* at batch $batch"; }
  done
  descent verify "$1" --each-pass --set batch.size=2 --set batch.micro=2 >passes.log 2>&1 || { cat passes.log >&2; fail "verify --each-pass $*"; }
  grep -q form-kernels passes.log || fail "--each-pass did not reach form-kernels"
}
verify gpt-a gpt --layers 2 --heads 2 --width 24 --sequence 17 --vocabulary 33
verify gpt-b gpt --layers 1 --heads 3 --width 48 --sequence 40
verify mlp-a mlp --inputs 7 --hidden 13 --classes 5
verify mlp-b mlp --inputs 100 --hidden 65 --classes 17
verify convnet-a convnet --height 9 --width 7 --channels 3 --classes 5
verify convnet-b convnet --height 8 --width 8 --channels 1 --classes 10
# Every update rule, a frozen parameter, a group with its own rate, and dropout, whose masks the reference draws too.
for options in "optimizer.kind=sgd" "optimizer.kind=sgd optimizer.momentum=0.9 optimizer.nesterov=true optimizer.weight_decay=0.1" \
               "optimizer.kind=adam optimizer.weight_decay=0.1" "optimizer.clip=0.01" "schedule.kind=linear"; do
  quiet descent verify mlp-a --set batch.size=5 $(printf -- '--set %s ' $options)
done
{ cat mlp-a/recipe.toml; printf '\n[[optimizer.group]]\nmatch = ["fc0.*"]\nfrozen = true\n\n[[optimizer.group]]\nmatch = ["fc1.bias"]\nlr_scale = 0.5\n'; } >groups.toml
descent verify --model mlp-a/model.mlir --recipe groups.toml >groups.log || { cat groups.log >&2; fail "groups"; }
! grep -q fc0 groups.log || fail "a frozen parameter has a gradient"
quiet descent verify --model "$source_root/test/Inputs/dropout-tiny.mlir" --recipe mlp-a/recipe.toml --set batch.size=4
# The comparison can fail: a tolerance below what f32 can hold is not met.
! descent verify mlp-b --tolerance 1e-12 >/dev/null 2>&1 || fail "verify passed below the precision of f32"
