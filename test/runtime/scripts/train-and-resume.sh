# Training learns; the same seed gives the same bytes for any number of threads; N + resume + N is 2N, bit for bit; metrics hold one
# object a step.
. "$(dirname "$0")/common.sh"
bigram --steps 60 --out a --export a.safetensors --threads 1 >a.log || fail "train: $(cat a.log)"
bigram --steps 60 --out b --export b.safetensors --threads 3 >b.log || fail "train with 3 threads"
cmp a.safetensors b.safetensors || fail "3 threads give other weights"
cmp a/checkpoints/step-00000060.safetensors b/checkpoints/step-00000060.safetensors || fail "checkpoints of equal runs differ"
bigram --steps 25 --out c >c.log || fail "first part"
bigram --steps 60 --out c --resume --export c.safetensors >c.log || fail "second part: $(cat c.log)"
cmp a.safetensors c.safetensors || fail "resume gives other weights"
[ "$(steps c)" = 60 ] || fail "metrics have $(steps c) objects"
[ "$(grep -o '"step":[0-9]*,"loss":[^,]*' a/metrics.jsonl)" = "$(grep -o '"step":[0-9]*,"loss":[^,]*' c/metrics.jsonl)" ] || fail "losses differ"
bigram --steps 60 --out d --seed 1 --export d.safetensors >/dev/null || fail "seed 1"
cmp -s a.safetensors d.safetensors && fail "another seed gives the same weights"
first=$(head -1 a/metrics.jsonl | grep -o '"loss":[0-9.]*' | cut -d: -f2) last=$(tail -1 a/metrics.jsonl | grep -o '"loss":[0-9.]*' | cut -d: -f2)
awk "BEGIN { exit !($last < $first - 1) }" || fail "the loss went from $first to $last"
for key in loss lr grad_norm step_ms tokens_per_second validation_loss validation_accuracy; do
  tail -1 a/metrics.jsonl | grep -q "\"$key\":" || fail "the last object has no $key"
done

# Weights as a start: exported initial weights are the initial weights.
bigram --steps 0 --seed 5 --export w0.safetensors >/dev/null || fail "steps 0"
[ -e run ] && fail "steps 0 made a run"
bigram --steps 5 --seed 5 --out e --export e.safetensors >/dev/null; bigram --steps 5 --seed 5 --out f --init-from w0.safetensors --export f.safetensors >/dev/null
cmp e.safetensors f.safetensors || fail "initial weights from a file give another run"
bigram --steps 1 --out g --init-from a/checkpoints/step-00000060.safetensors >/dev/null 2>err.log || fail "a checkpoint as weights: $(cat err.log)"
[ -s err.log ] && fail "optimizer state of a checkpoint is no news: $(cat err.log)"

# What a run has, a new one does not replace by accident.
refused 1 "holds an earlier run" bigram --steps 5 --out a
bigram --steps 5 --out a --overwrite >/dev/null || fail "overwrite"
[ "$(steps a)" = 5 ] && [ "$(ls a/checkpoints)" = step-00000005.safetensors ] || fail "overwrite left $(ls a/checkpoints)"
refused 1 "past the 3 steps" bigram --steps 3 --out a --resume
refused 1 "started with --seed 0" bigram --steps 9 --out a --resume --seed 7
bigram --steps 5 --out a --resume --export again.safetensors >out.log || fail "resume of a finished run"
grep -q "nothing left" out.log || fail "a finished run does not say so"
echo "resume is bit-equal"
