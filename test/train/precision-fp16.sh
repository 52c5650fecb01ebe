#!/usr/bin/env bash
# fp16 without a loss scale loses gradients that fp32 has, and learns nothing; with dynamic scaling it has them and learns as fp32 does. The model's
# last layer scales by 7e-5, so that the gradient behind it is about 1e-8 and below half of fp16's smallest number, 6e-8.
. "$(dirname "$0")/common.sh"
mkdir small
cat >small/model.mlir <<'MLIR'
nn.model @small(%x: tensor<?x16xf32> {nn.role = "data"}, %y: tensor<?x4xf32> {nn.role = "target"}) {
  %w = nn.parameter "w" zeros : tensor<16x4xf32>
  %s = nn.parameter "s" constant(7.0e-5) frozen : tensor<1xf32>
  %0 = nn.matmul %x, %w : tensor<?x16xf32>, tensor<16x4xf32>
  %1 = nn.mul %0, %s : tensor<?x4xf32>, tensor<1xf32>
  %sum, %weight = nn.mse %1, %y : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %sum, %weight, %1 : tensor<?x4xf32>
}
MLIR
cat >small/recipe.toml <<'TOML'
[data]
format = "npz"
path = "data.npz"
[batch]
size = 16
[optimizer]
kind = "adam"
lr = 2e-2
eps = 1e-15
[precision]
compute = "fp16"
TOML
python3 - <<'PYTHON'
import array, random, zipfile
g = random.Random(0)
def npy(shape, payload):
    h = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    h += " " * (63 - (len(h) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + payload
x = [[g.gauss(0, 1) for _ in range(16)] for _ in range(16)]
true = [[g.uniform(-0.3, 0.3) for _ in range(4)] for _ in range(16)]
y = [7e-5 * sum(row[k] * true[k][j] for k in range(16)) for row in x for j in range(4)]
assert 2 * 7e-5 * max(map(abs, y)) < 2.9e-8
with zipfile.ZipFile("small/data.npz", "w") as z:
    z.writestr("x.npy", npy((16, 16), array.array("f", sum(x, [])).tobytes()))
    z.writestr("y.npy", npy((16, 4), array.array("f", y).tobytes()))
PYTHON
gradients() { # gradients NAME OPTIONS_OF_COMPILE...: share of gradient values of the first step that are zero
  quiet descent compile small -o "$1" "${@:2}"
  quiet "./$1" --steps 1 --out "first-$1" --dump-gradients "$1.safetensors"
  quiet "./$1" --steps 40 --out "run-$1"
  python3 "$source_root/test/train/tensors.py" zeros "$1.safetensors"
}
full=$(gradients fp32 --set precision.compute=fp32)
dynamic=$(gradients dynamic)
none=$(gradients none --set precision.loss_scale=none)
one=$(gradients one --set precision.loss_scale=1)
echo "zero gradients: fp32 $full, fp16 dynamic $dynamic, none $none, 1 $one"
check "$full == 0 && $dynamic == 0"
check "$none == 1 && $one == 1"
loss() { field "run-$1/metrics.jsonl" loss; }
first=$(head -1 run-fp32/metrics.jsonl | grep -oE '"loss": *[0-9.e+-]+' | grep -oE '[0-9.e+-]+$')
echo "loss $first -> fp32 $(loss fp32), dynamic $(loss dynamic), none $(loss none)"
check "$(loss fp32) < 0.05 * $first && $(loss dynamic) < 0.05 * $first"
check "$(loss none) == $first"
# `descent verify --precision` says so beforehand, of gradients that are small whatever the data, and what to set instead.
mkdir tiny && cp small/recipe.toml tiny/
sed 's/nn.parameter "s" constant(7.0e-5) frozen : tensor<1xf32>/nn.constant dense<1.0e-8> : tensor<1xf32>/' small/model.mlir >tiny/model.mlir
descent verify tiny --precision --set precision.loss_scale=none >advice.log || fail "verify --precision"
grep -qE 'without a loss scale.*loses [1-9][0-9.]* % of gradient elements to zero.*loss_scale = "dynamic"' advice.log || { cat advice.log >&2; fail "verify --precision does not warn"; }
descent verify tiny --precision >advice.log || fail "verify --precision"
grep -qE 'dynamic loss scale fits' advice.log || { cat advice.log >&2; fail "verify --precision finds fault with the dynamic scale"; }
