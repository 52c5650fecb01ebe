# Losses and gradients that are not finite: a skipped step is atomic and halves the scale, resume keeps scale and counters bit for bit,
# a run that cannot go on stops and names the op, and looking into a step changes nothing.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "python3 writes the arrays"
# data.npz: 24 samples. huge.npz: targets whose gradients overflow until the scale has fallen. beyond.npz: targets whose loss
# overflows. bad.npz: a NaN in input x of sample 11.
PYTHONPATH="$scripts" PYTHONDONTWRITEBYTECODE=1 python3 - <<'P2' || fail "writing arrays"
from arrays import *
write('data.npz', xs, ys)
write('huge.npz', xs, [[y[0] * 1e17] for y in ys])
write('beyond.npz', xs, [[1e25]] * 24)
write('bad.npz', [[x[0], float('nan') if i == 11 else x[1], x[2]] for i, x in enumerate(xs)], ys)
P2
specimen() { "$BIN/specimen-train" --data data.npz "$@"; }
# key RUN LINE KEY: a number of a line of metrics
key() { sed -n "$2p" "$1/metrics.jsonl" | grep -oE "\"$3\":[-0-9.e+]+" | cut -d: -f2; }
same() { cmp "$1" "$2" || fail "$3"; }

# A skip: the weights stay, the scale of the next step is half, one line says so.
specimen --steps 2 --out k2 --export k2.safetensors >/dev/null || fail "train"
specimen --steps 3 --out k3 --inject-nonfinite 3 --export k3.safetensors >k3.log 2>&1 || fail "inject: $(cat k3.log)"
same k2.safetensors k3.safetensors "a skipped step moved the weights"
[ "$(grep -c '^warning: step 3: .*norm is inf, nothing was changed; the loss scale becomes 32768$' k3.log)" = 1 ] || fail "says: $(cat k3.log)"
[ "$(wc -l <k3.log)" -le 5 ] || fail "says more than it should: $(cat k3.log)"
grep -q "  scale 65536  " k3.log || fail "the progress shows no scale: $(cat k3.log)"
specimen --steps 6 --out ka --inject-nonfinite 3 --export ka.safetensors >/dev/null 2>&1 || fail "inject in 6"
[ "$(key ka 2 loss_scale) $(key ka 3 loss_scale) $(key ka 4 loss_scale)" = "65536 65536 32768" ] || fail "scales: $(cat ka/metrics.jsonl)"
[ "$(key ka 1 skipped) $(key ka 3 skipped) $(key ka 6 skipped)" = "0 1 1" ] || fail "skips: $(cat ka/metrics.jsonl)"
# A resume with a skip inside, and one right behind the skip; the scale and its counters are part of the checkpoint.
for cut in 3 4; do
  rm -rf kb; specimen --steps $cut --out kb --inject-nonfinite 3 >/dev/null 2>&1 || fail "first part"
  specimen --steps 6 --out kb --resume --profile --export kb.safetensors >kb.log 2>&1 || fail "resume: $(cat kb.log)"
  same ka.safetensors kb.safetensors "resume after a skip differs"
  same ka/checkpoints/step-00000006.safetensors kb/checkpoints/step-00000006.safetensors "checkpoints after a resume differ"
  grep -qE "^ +narrow_32 +1 " kb.log || fail "working copies are not made once a load: $(cat kb.log)"
  [ "$(key kb 6 skipped) $(key kb 6 loss_scale)" = "1 32768" ] || fail "counters after a resume: $(cat kb/metrics.jsonl)"
done
# The same skip with threads, a profile, a search and another parameter: the same weights.
specimen --steps 6 --out kc --inject-nonfinite 3:b --threads 3 --profile --find-nonfinite --validate-every 1 --export kc.safetensors >kc.log 2>&1 || fail "other flags: $(cat kc.log)"
same ka.safetensors kc.safetensors "looking into a step changed the run"
same ka/checkpoints/step-00000006.safetensors kc/checkpoints/step-00000006.safetensors "looking into a step changed its states"
[ "$(grep -o '"loss":[^,]*' ka/metrics.jsonl)" = "$(grep -o '"loss":[^,]*' kc/metrics.jsonl)" ] || fail "losses differ"
grep -q "^note: step 3: the first value that is not finite is inf at \[0\] of the gradient of b (f32 \[1\]), which goes into train.norm.*kernel decide" kc.log || fail "finds: $(cat kc.log)"
grep -qE "^ +narrow_32 +1 " kc.log || fail "working copies are not made once a start: $(cat kc.log)"
# Gradients are dumped without the scale.
specimen --steps 1 --out g --dump-gradients g.safetensors >/dev/null || fail "gradients"
norm=$(tail -c 16 g.safetensors | od -An -v -tfF -w4 | awk '{ s += $1 * $1 } END { printf "%.5f", sqrt(s) }')
awk "BEGIN { d = $norm - $(key g 1 grad_norm); exit !(d < 1e-4 && d > -1e-4) }" || fail "gradients have norm $norm, the step says $(key g 1 grad_norm)"

# Where the scale can fall it is given time, more than ten steps of it; where it cannot, ten are enough.
"$BIN/specimen-train" --data huge.npz --steps 40 --out h >h.log 2>&1 || fail "a curable overflow stopped the run: $(cat h.log)"
[ "$(key h 40 skipped)" -gt 10 ] && [ "$(key h 40 skipped)" -lt 30 ] || fail "skipped $(key h 40 skipped) of 40"
refused 1 "10 steps in a row were not finite, and no smaller loss scale cures that" "$BIN/specimen-train" --data beyond.npz --steps 40 --out o
grep -q "^error: step 10: the loss is inf, nothing was changed; .*inf of nn.mse (specimen.mlir:5).*launch 1, kernel loss_8.*lower optimizer.lr, a longer schedule.warmup or optimizer.clip" err.log || fail "says: $(cat err.log)"
[ "$(steps o)" = 10 ] || fail "$(steps o) steps, not 10"
refused 1 "step 1: the loss is inf" "$BIN/specimen-train" --data beyond.npz --steps 40 --out o1 --on-nonfinite=stop
refused 1 "step 1: the gradient's norm is inf" "$BIN/specimen-train" --data huge.npz --steps 40 --out o2 --on-nonfinite=stop
grep -q "of train.norm (f32 \[\]), which comes out of train.norm, train.schedule" err.log || fail "says: $(cat err.log)"
refused 1 "nan at [" "$BIN/specimen-train" --data bad.npz --steps 40 --no-shuffle --out n --on-nonfinite=stop
grep -q "of input 'x' (f32 \[8, 3\]), which goes into nn.matmul.*must leave the data" err.log || fail "says: $(cat err.log)"

# Without a loss scale a run stops at its first bad step, and goes on where it is told to.
refused 1 "step 4: the gradient's norm is inf, nothing was changed; there is no checkpoint yet" bigram --steps 6 --out b --inject-nonfinite 4
grep -q "inf at \[0, 0\] of the gradient of table (f32 \[128, 128\]), which goes into train.norm (launch 3, kernel decide). --inject-nonfinite put it there." err.log || fail "says: $(cat err.log)"
[ "$(steps b)" = 4 ] && [ -z "$(ls b/checkpoints)" ] || fail "left $(steps b) steps and $(ls b/checkpoints)"
grep -q loss_scale b/metrics.jsonl && fail "there is no loss scale"
refused 1 "the checkpoint of step 2 is the last one" bigram --steps 6 --out b3 --checkpoint-every 2 --inject-nonfinite 3
bigram --steps 6 --out b2 --inject-nonfinite 4 --on-nonfinite=skip >b2.log 2>&1 || fail "skip: $(cat b2.log)"
[ "$(key b2 6 skipped)" = 1 ] && [ -z "$(key b2 3 skipped)" ] || fail "skips: $(cat b2/metrics.jsonl)"
grep -q "^warning: step 4: the gradient's norm is inf, nothing was changed$" b2.log || fail "says: $(cat b2.log)"

# Wrong uses.
refused 2 "no trainable parameter 'wte'; it has table" bigram --steps 6 --inject-nonfinite 4:wte
refused 2 "'0' is no step" bigram --steps 6 --inject-nonfinite 0
refused 2 "this run takes the steps 1 to 6" bigram --steps 6 --inject-nonfinite 7
refused 2 "this run takes the steps 7 to 9" bigram --steps 9 --out b2 --resume --inject-nonfinite 4
refused 2 "ignore is neither skip nor stop" bigram --steps 6 --on-nonfinite ignore
[ -e run ] && fail "a refused start made a run"
echo "skips are atomic, stops name the op"
