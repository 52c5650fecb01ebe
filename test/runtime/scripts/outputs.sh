# --describe, --profile, --dump-gradients and sample.
. "$(dirname "$0")/common.sh"
"$BIN/specimen-train" --describe >d.txt || fail "describe"
for text in "model specimen: 4 parameters in 2 tensors, batch 8" "w          f32 \[3, 1\]  normal(0, 0.1)" "predict_8x3" "schedule.steps" "\*\.momentum  *f32  *2  *16 B  *0" "loss_scale  *f32 \[\]  *1  *4 B  *65536" "^    working copies  *64 B" "^  compute  *bf16"; do grep -q "$text" d.txt || fail "describe lacks '$text': $(cat d.txt)"; done
"$BIN/specimen-train" --describe=json >d.json || fail "describe=json"
for text in '"model": "specimen"' '"peak_bytes": 1600' '"initializer": "normal(0, 0.1)"' '"role": "row weights"' '"optimizer.kind": "sgd"' '"working_copies_bytes": 64' '"compute": "bf16"' '"initial": 65536.0'; do grep -q "$text" d.json || fail "json lacks $text"; done

bigram --steps 50 --out p --profile --dump-gradients g.safetensors --export w.safetensors >p.txt || fail "profile"
# 50 steps and 26 batches of validation.
for text in "kernel .*calls .*total ms .*share .*GFLOP/s .*GB/s" "look  *76 " "update  *50 " "outside kernels"; do grep -q "$text" p.txt || fail "profile lacks '$text': $(cat p.txt)"; done
# The gradients are those of the mean loss: their norm is what the step reports. 65536 bytes of f32 at the end of the file.
norm=$(tail -c 65536 g.safetensors | od -An -v -tfF -w4 | awk '{ s += $1 * $1 } END { printf "%.5f", sqrt(s) }')
stated=$(head -1 p/metrics.jsonl | grep -o '"grad_norm":[0-9.]*' | cut -d: -f2)
awk "BEGIN { d = $norm - $stated; exit !(d < 1e-5 && d > -1e-5) }" || fail "gradients have norm $norm, the step says $stated"
grep -aq '"table":{"dtype":"F32","shape":\[128,128\]' g.safetensors || fail "gradients are not keyed by parameter"

bigram --steps 300 --out s --export s.safetensors >/dev/null || fail "train"
# Weights carry their vocabulary: no data is needed to sample.
sample() { "$BIN/bigram-train" sample "$@"; }
sample --init-from s.safetensors --prompt "the " --tokens 50 --seed 1 >one || fail "sample: $(cat one)"
sample --out s --prompt "the " --tokens 50 --seed 1 >two || fail "sample from a run"
cmp one two || fail "the run's checkpoint gives another text than its weights"
[ "$(head -c 4 one)" = "the " ] && [ "$(wc -c <one)" = 55 ] || fail "sample printed: $(cat one)"
sample --out s --prompt "the " --tokens 50 --seed 2 >three; cmp -s one three && fail "the seed changes nothing"
sample --out s --prompt "d" --tokens 6 --temperature 0 --seed 1 >greedy; sample --out s --prompt "d" --tokens 6 --temperature 5 --top-k 1 --seed 9 >top1
cmp greedy top1 || fail "top-k 1 is not the likeliest token"
[ "$(sample --out s --prompt "the " --tokens 5 --samples 3 | grep -c -- '--- sample')" = 3 ] || fail "three samples"
refused 1 "not in the model's vocabulary" sample --out s --prompt "$(printf '\377')" --tokens 5
refused 1 "no weights" sample --out nowhere
refused 1 "is no language model" "$BIN/specimen-train" sample --out s
refused 2 "from 1 to 4" sample --out s --samples 5
echo "outputs are as documented"
