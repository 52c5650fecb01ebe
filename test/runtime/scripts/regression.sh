# The specimen on arrays: a ragged last batch counts exactly its rows, epochs end where the data does, and the loss falls.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "python3 writes the arrays"
PYTHONPATH="$scripts" PYTHONDONTWRITEBYTECODE=1 python3 - <<'P' || fail "writing data.npz"
from arrays import *
write('data.npz', xs, ys)
P
# A fifth is set aside: 19 or 20 samples to train on in batches of 8, so the third batch of an epoch is short.
specimen() { "$BIN/specimen-train" --data data.npz "$@"; }
specimen --no-shuffle --steps 2 --out two --export two.safetensors >two.log || fail "two steps: $(cat two.log)"
specimen --no-shuffle --epochs 1 --out one >one.log || fail "one epoch"
[ "$(steps one)" = 3 ] || fail "an epoch has $(steps one) steps"
python3 - <<'P' || fail "the short batch"
import json, re, struct, zipfile
def tensors(path):
    b = open(path, 'rb').read(); n = struct.unpack('<Q', b[:8])[0]; h = json.loads(b[8:8 + n]); h.pop('__metadata__', None)
    return {k: struct.unpack('<%df' % ((v['data_offsets'][1] - v['data_offsets'][0]) // 4), b[8 + n + v['data_offsets'][0]:8 + n + v['data_offsets'][1]]) for k, v in h.items()}
def rows(name):
    b = zipfile.ZipFile('data.npz').read(name); n = struct.unpack('<H', b[8:10])[0]
    return struct.unpack('<%df' % ((len(b) - 10 - n) // 4), b[10 + n:])
w = tensors('two.safetensors'); x = rows('inputs.npy'); y = rows('targets.npy')
# The model sees its weights in bf16, rounded to nearest even.
def bf16(v):
    b = struct.unpack('<I', struct.pack('<f', v))[0]
    return struct.unpack('<f', struct.pack('<I', b + 0x7fff + (b >> 16 & 1) & 0xffff0000))[0]
w = {k: [bf16(a) for a in v] for k, v in w.items()}
samples = int(re.search(r'(\d+) samples in 3 batches', open('one.log').read()).group(1))
errors = [(sum(a * b for a, b in zip(x[3 * i:3 * i + 3], w['w'])) + w['b'][0] - y[i]) ** 2 for i in range(16, samples)]
expected = sum(errors) / len(errors); got = json.loads(open('one/metrics.jsonl').readlines()[2])['loss']
print('short batch of', len(errors), 'rows: expected', expected, 'got', got)
raise SystemExit(not abs(expected - got) <= 1e-5 * expected)
P
specimen --epochs 60 --out many --export many.safetensors >many.log || fail "many epochs"
last=$(tail -1 many/metrics.jsonl | grep -o '"validation_loss":[0-9.e-]*' | cut -d: -f2)
awk "BEGIN { exit !($last < 1e-3) }" || fail "the validation loss ends at $last"
grep -q samples_per_second many/metrics.jsonl || fail "no rate"
echo "a short batch counts its rows; validation loss $last"
