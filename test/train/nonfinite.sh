#!/usr/bin/env bash
# A compiled program's tables say where a value that is not finite comes from: the gradient of a parameter, the op of the model with its line, the weight.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt $gpt_size
quiet descent compile gpt -o train
refused() { # refused TEXT ARGUMENTS...: training stops with status 1 and says TEXT
  local text=$1 status=0; shift
  ./train --data corpus.txt --steps 4 --overwrite --out r "$@" >out.log 2>err.log || status=$?
  [ $status = 1 ] && grep -qE "$text" err.log || { cat err.log >&2; fail "$*: status $status, no '$text'"; }
}
# An inf in any group's slab is seen by the norm; the tied embedding's gradient is a sum of two products and complete later than others.
for parameter in wte h.1.mlp.up.weight h.0.ln1.gain; do
  refused "^error: step 3: the gradient's norm is inf, nothing was changed; there is no checkpoint yet\. .* inf at \[0(, 0)?\] of the gradient of $parameter \(f32 " --inject-nonfinite 3:$parameter
  ! grep -q accumulate err.log || fail "the inf was put into an unfinished sum: $(cat err.log)"
done
# Skipping it changes nothing but the count; looking for it changes nothing at all.
quiet ./train --data corpus.txt --steps 2 --out a --export a.safetensors
quiet ./train --data corpus.txt --steps 3 --out b --export b.safetensors --inject-nonfinite 3 --on-nonfinite skip
cmp a.safetensors b.safetensors || fail "a skipped step moved the weights"
quiet ./train --data corpus.txt --steps 6 --out c --export c.safetensors --inject-nonfinite 3 --on-nonfinite skip
quiet ./train --data corpus.txt --steps 6 --out d --export d.safetensors --inject-nonfinite 3:h.0.ln1.gain --on-nonfinite skip --find-nonfinite --threads 1
cmp c.safetensors d.safetensors || fail "looking into a step changed the run"
check "$(field d/metrics.jsonl skipped) == 1"

# Weights: one that overflows inside the model, and one that is no number itself.
./train --steps 0 --export w.safetensors >/dev/null
poison() { # poison FILE BYTES(octal) PARAMETER: overwrites its element 0
  local header at
  cp w.safetensors "$1"
  header=$(od -An -tu8 -N8 w.safetensors | tr -d ' ')
  at=$(head -c $((8 + header)) w.safetensors | grep -aoE "\"${3//./\\.}\":"'\{[^}]*"data_offsets":\[[0-9]+' | grep -oE '[0-9]+$')
  printf "$2" | dd of="$1" bs=1 seek=$((8 + header + at)) conv=notrunc status=none
}
poison large.safetensors '\377\377\177\177' h.1.mlp.up.bias # the largest float
poison gain.safetensors '\377\377\177\177' h.1.ln2.gain
poison nan.safetensors '\000\000\300\177' h.1.mlp.up.bias
overflows="step 1: the (loss|gradient's norm) is .*(inf|nan) at \[[0-9]+, [0-9]+, [0-9]+\] of nn\.[a-z_]+ h\.1[^ ]* \(model\.mlir:[0-9]+\) \(f32 .*lower optimizer\.lr"
refused "$overflows" --init-from gain.safetensors
# The derivative of gelu is 1 there, and a device says so; x cubed overflows in the CPU's form of it.
[ -n "${DESCENT_TEST_TARGET:-}" ] || refused "$overflows" --init-from large.safetensors
refused "step 1: the loss is nan.* nan at \[0\] of parameter 'h\.1\.mlp\.up\.bias' \(f32 \[128\]\), which goes into nn\..*other weights" --init-from nan.safetensors
