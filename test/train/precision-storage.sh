#!/usr/bin/env bash
# w = 1.0 and an update of -6e-4, 100 times: 0.94 with fp32 master weights; bf16 alone, whose steps at 1.0 are 2^-8 and 2^-9, never moves when it rounds to
# nearest, and arrives on average when it rounds stochastically. Optimizer state in bf16 costs half and trains.
. "$(dirname "$0")/common.sh"
mkdir drift
cat >drift/model.mlir <<'MLIR'
// The target is so far away that Adam's step is the learning rate each time.
nn.model @drift(%x: tensor<?x1xf32> {nn.role = "data"}, %y: tensor<?x64xf32> {nn.role = "target"}) {
  %w = nn.parameter "w" ones : tensor<1x64xf32>
  %0 = nn.matmul %x, %w : tensor<?x1xf32>, tensor<1x64xf32>
  %sum, %weight = nn.mse %0, %y : tensor<?x64xf32>, tensor<?x64xf32>
  nn.loss %sum, %weight, %0 : tensor<?x64xf32>
}
MLIR
cat >drift/recipe.toml <<'TOML'
[data]
format = "npz"
path = "data.npz"
[batch]
size = 2
[optimizer]
kind = "adam"
lr = 6e-4
[precision]
compute = "bf16"
TOML
python3 - <<'PYTHON'
import array, zipfile
def npy(shape, payload):
    h = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    h += " " * (63 - (len(h) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + payload
with zipfile.ZipFile("drift/data.npz", "w") as z:
    z.writestr("x.npy", npy((2, 1), array.array("f", [1.0] * 2).tobytes()))
    z.writestr("y.npy", npy((2, 64), array.array("f", [-1000.0] * 128).tobytes()))
PYTHON
train() { # train NAME OPTIONS_OF_COMPILE...
  quiet descent compile drift -o "$1" "${@:2}"
  quiet "./$1" --steps 100 --seed 5 --out "run-$1" --export "$1.safetensors"
  python3 "$source_root/test/train/tensors.py" mean "$1.safetensors" w
}
master=$(train master)
nearest=$(train nearest --set precision.master=false --set precision.rounding=nearest)
stochastic=$(train stochastic --set precision.master=false)
narrow=$(train narrow --set precision.state=bf16)
echo "master $master, nearest $nearest, stochastic $stochastic, bf16 state $narrow"
check "$master > 0.9395 && $master < 0.9405"
check "$nearest == 1.0"
check "$stochastic > 0.93 && $stochastic < 0.95"
check "$narrow > 0.93 && $narrow < 0.95"
# Stochastic rounding is keyed by seed, step and tensor: the same run again gives the same bits, also after a resume.
quiet ./stochastic --steps 100 --seed 5 --threads 1 --out again --export again.safetensors
cmp stochastic.safetensors again.safetensors || fail "stochastic rounding is not repeatable"
quiet ./stochastic --steps 40 --seed 5 --out parts
quiet ./stochastic --steps 100 --seed 5 --out parts --resume --export parts.safetensors
cmp stochastic.safetensors parts.safetensors || fail "stochastic rounding differs after a resume"
