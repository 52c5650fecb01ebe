#!/usr/bin/env bash
# A program for an emulated device computes what the CPU's does: losses, gradients before clipping and validation agree to rounding, for an MLP that learns a batch
# by heart and the example convnet and GPT. What a run writes depends neither on the order of what may run at any time, nor on graphs, nor on how far ahead the device is.
. "$(dirname "$0")/common.sh"
cat >compare.py <<'PYTHON'
"""compare.py SOURCE A B: the metrics of two runs agree, and their gradients A.g and B.g, each relative to its tensor's largest."""
import json, sys
sys.path.insert(0, sys.argv[1] + "/test/train")
sys.dont_write_bytecode = True
import tensors
a, b = sys.argv[2:4]
lines = [[json.loads(l) for l in open(f"{run}/metrics.jsonl")] for run in (a, b)]
assert len(lines[0]) == len(lines[1]) and [l.keys() for l in lines[0]] == [l.keys() for l in lines[1]], lines
worst = max(abs(x[k] - y[k]) / max(1, abs(x[k])) for x, y in zip(*lines) for k in ("loss", "grad_norm", "validation_loss") if k in x)
assert worst < 1e-4, (worst, lines)
g, h = tensors.read(f"{a}.g"), tensors.read(f"{b}.g")
assert g.keys() == h.keys()
for name in g:
    x, y = g[name].values(), h[name].values()
    scale = max(map(abs, x)) or 1
    error = max(abs(p - q) for p, q in zip(x, y)) / scale
    assert error < 1e-4, (name, error)
print(f"{a}, {b}: {worst:.1e}")
PYTHON
both() { # both NAME PROJECT ARGUMENTS...: compiles for both and trains
  local name=$1 project=$2; shift 2
  quiet command descent compile "$project" -o cpu-$name "${compile[@]}"
  quiet command descent compile "$project" -o device-$name --target "${DESCENT_TEST_TARGET:-cuda-emulated}" "${compile[@]}"
  for target in cpu device; do quiet ./$target-$name --seed 2 --out $target-run-$name --dump-gradients $target-run-$name.g --export $target-$name.safetensors "$@"; done
  python3 compare.py "$source_root" cpu-run-$name device-run-$name || fail "$name"
}
quiet command descent new mlp mlp --inputs 16 --hidden 32 --classes 4 --batch 16
python3 - <<'PYTHON'
import random, struct, zipfile
g = random.Random(0)
def npy(descr, shape, payload):
    h = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    h += " " * (63 - (len(h) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + payload
with zipfile.ZipFile("batch.npz", "w") as z:
    z.writestr("x.npy", npy("<f4", (16, 16), struct.pack("256f", *(g.gauss(0, 1) for _ in range(256)))))
    z.writestr("labels.npy", npy("<i4", (16,), struct.pack("16i", *(g.randrange(4) for _ in range(16)))))
PYTHON
compile=(--set data.format=npz --set data.validation=0.0 --set optimizer.kind=adam --set optimizer.weight_decay=0.0 --set optimizer.lr=2e-2 --set schedule.warmup=0)
both mlp mlp --data batch.npz --steps 40
check "$(field device-run-mlp/metrics.jsonl loss) < 0.05"
compile=(--set batch.size=8 --set data.validation_path="$source_root/examples/digits/data/test.npz")
python3 - "$source_root/examples/digits/data/train.npz" <<'PYTHON'
# The first 21 digits: two batches and a short one.
import struct, sys, zipfile
def head(data, count):
    size = struct.unpack("<H", data[8:10])[0]
    header, body = data[10:10 + size].decode(), data[10 + size:]
    shape = header[header.index("(") + 1:header.index(")")]
    rows = int(shape.split(",")[0])
    body = body[:len(body) // rows * count]
    header = header.replace(f"({shape})", f"({count},{shape.split(',', 1)[1]})").rstrip()
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return data[:8] + struct.pack("<H", len(header)) + header.encode() + body
with zipfile.ZipFile(sys.argv[1]) as z, zipfile.ZipFile("digits.npz", "w") as out:
    for name in z.namelist():
        out.writestr(name, head(z.read(name), 21))
PYTHON
both digits "$source_root/examples/digits" --data digits.npz --validation digits.npz --steps 4
head -c 1500 /usr/share/common-licenses/GPL-3 >text.txt
compile=(--set batch.size=1)
both gpt "$source_root/examples/gpt" --data text.txt --steps 4
# The same bytes in every order, launch by launch, and with nothing under way.
again() { quiet env "$@" --data batch.npz --steps 40 --seed 2 --out again --overwrite --export again.safetensors; cmp again.safetensors device-mlp.safetensors || fail "$*: other weights"; }
for order in eager shuffled:1 shuffled:2; do again DESCENT_EMULATOR_ORDER=$order ./device-mlp; done
again ./device-mlp --no-graph
again DESCENT_EMULATOR_ORDER=eager ./device-mlp --metrics-every 1
# What is planned is what is allocated.
planned=$(./device-mlp --describe=json | grep -o '"device_bytes": [0-9]*' | grep -o '[0-9]*$')
DESCENT_EMULATOR_MEMORY=$planned quiet ./device-mlp --data batch.npz --steps 1 --out exact
! DESCENT_EMULATOR_MEMORY=$((planned - 1)) ./device-mlp --data batch.npz --steps 1 --out less 2>err.log || fail "trains with less than is planned"
grep -q "not enough memory on device 0" err.log && grep -q "biggest tensors" err.log || fail "says: $(cat err.log)"
# Killed while it works, a run goes on from its last checkpoint as if nothing had happened.
./device-mlp --data batch.npz --steps 100000 --seed 2 --checkpoint-every 5 --out killed >/dev/null 2>&1 & process=$!
for _ in $(seq 600); do compgen -G "killed/checkpoints/*.safetensors" >/dev/null && break; sleep 0.05; done
kill -9 $process; wait $process 2>/dev/null || true
# A signal saves what was started, and nothing is started twice. (A background shell ignores SIGINT; env restores the default.)
env --default-signal=INT ./device-mlp --data batch.npz --steps 100000 --seed 2 --out stopped >/dev/null 2>&1 & process=$!
for _ in $(seq 600); do [ "$(wc -l 2>/dev/null <stopped/metrics.jsonl)" ] && [ "$(wc -l <stopped/metrics.jsonl)" -ge 3 ] && break; sleep 0.05; done
status=0; kill -INT $process; wait $process || status=$?
[ $status = 130 ] || fail "SIGINT gives $status"
last=$(field stopped/metrics.jsonl step)
[ -f "stopped/checkpoints/$(printf 'step-%08d' "$last").safetensors" ] || fail "no checkpoint of step $last"
awk -F'[:,]' '$2 != NR { exit 1 }' stopped/metrics.jsonl || fail "the metrics skip or repeat a step"
total=$(($(field killed/metrics.jsonl step) + 5))
quiet ./device-mlp --data batch.npz --steps $total --out killed --resume --export killed.safetensors
quiet ./device-mlp --data batch.npz --steps $total --seed 2 --out whole --export whole.safetensors
cmp killed.safetensors whole.safetensors || fail "a run that was killed and resumed differs"
