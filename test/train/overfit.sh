#!/usr/bin/env bash
# The MLP 1024-4096-1024 with Adam drives the loss of one batch of 256 to nearly nothing.
. "$(dirname "$0")/common.sh"
quiet descent new mlp mlp --inputs 1024 --hidden 4096 --classes 1024 --batch 256
python3 - <<'PYTHON'
import array, random, zipfile
g = random.Random(0)
def npy(descr, shape, payload):
    h = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    h += " " * (63 - (len(h) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + payload
x = array.array("f", (g.gauss(0, 1) for _ in range(256 * 1024)))
y = array.array("i", (g.randrange(1024) for _ in range(256)))
with zipfile.ZipFile("batch.npz", "w") as z:
    z.writestr("x.npy", npy("<f4", (256, 1024), x.tobytes()))
    z.writestr("labels.npy", npy("<i4", (256,), y.tobytes()))
PYTHON
quiet descent compile mlp -o train --set data.format=npz --set data.validation=0.0 --set optimizer.kind=adam --set optimizer.weight_decay=0.0 --set optimizer.lr=1e-3
quiet ./train --data batch.npz --steps 30 --out run
first=$(head -1 run/metrics.jsonl | grep -oE '"loss": *[0-9.e+-]+' | grep -oE '[0-9.e+-]+$')
last=$(field run/metrics.jsonl loss)
echo "loss $first -> $last"
check "$first > 6.0 && $last < 0.05"
