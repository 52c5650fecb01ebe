#!/usr/bin/env bash
# Which algorithm each matrix product takes is kept in a file: the second run chooses nothing, and one that resumes gives the bits of one that does not stop. A broken
# file is said and replaced. What generated code computes instead of the library is said too, and is the same to rounding.
. "$(dirname "$0")/common.sh"
quiet command descent new mlp mlp --inputs 16 --hidden 32 --classes 4 --batch 16
python3 - <<'PYTHON'
import random, struct, zipfile
g = random.Random(0)
def npy(descr, shape, payload):
    h = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    h += " " * (63 - (len(h) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + payload
with zipfile.ZipFile("batch.npz", "w") as z:
    z.writestr("x.npy", npy("<f4", (64, 16), struct.pack("<1024f", *(g.gauss(0, 1) for _ in range(1024)))))
    z.writestr("labels.npy", npy("<i4", (64,), struct.pack("<64i", *(g.randrange(4) for _ in range(64)))))
PYTHON
quiet command descent compile mlp -o train --quiet --target cuda-emulated --set data.format=npz --set data.validation=0.0
run() { local out=$1; shift; quiet ./train --data batch.npz --seed 2 --out "$out" --export "$out.safetensors" "$@"; cp quiet.log "$out.log"; }
export DESCENT_EMULATOR_CUBLASLT=split
run whole --steps 6 --products deep/products
head -1 deep/products | grep -qx "descent products 1" || fail "first line: $(head -1 deep/products)"
grep -q "cuBLASLt 130100 | emulated" deep/products || fail "keys: $(cat deep/products)"
cp deep/products kept
run half --steps 3 --products deep/products
run half --resume --steps 6 --products deep/products
cmp deep/products kept || fail "the second run changed the file"
cmp whole.safetensors half.safetensors || fail "resumed with other bits"
# A broken file.
sed -i '2s/./x/' deep/products
run broken --steps 1 --products deep/products
grep -q "note: deep/products is broken in line 2; products are chosen anew" broken.log || fail "says: $(cat broken.log)"
cmp deep/products kept || fail "the broken file was not replaced"
# A library that has only what its manual promises, and one without algorithms for what has generated code standing by.
DESCENT_EMULATOR_CUBLASLT=strict run strict --steps 6
cmp whole.safetensors strict.safetensors || fail "other bits with --products than without"
! DESCENT_EMULATOR_CUBLASLT=none ./train --data batch.npz --steps 1 --out none 2>err.log || fail "trains without products"
grep -q "error: kernel gemm_.* needs the matrix product .* of cuBLASLt" err.log || fail "says: $(cat err.log)"
