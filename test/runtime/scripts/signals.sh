# SIGINT and SIGTERM save and stop with 128 + signal; kill -9 at any moment loses at most the step in flight.
. "$(dirname "$0")/common.sh"
for signal in INT:130 TERM:143; do
  rm -rf s
  # A background shell ignores SIGINT, and what the parent ignores stays ignored; env restores the default.
  env --default-signal=INT "$BIN/bigram-train" --data corpus.txt --steps 100000000 --validate-every 0 --checkpoint-every 0 --out s >s.log 2>&1 & pid=$!
  for _ in $(seq 200); do [ -s s/metrics.jsonl ] && break; sleep 0.05; done
  kill -s ${signal%:*} $pid; wait $pid; got=$?
  [ $got = ${signal#*:} ] || fail "SIG${signal%:*} gives $got: $(tail -1 s.log)"
  last=$(tail -1 s/metrics.jsonl | grep -o '"step":[0-9]*' | cut -d: -f2)
  [ -f "s/checkpoints/$(printf 'step-%08d' "$last").safetensors" ] || fail "no checkpoint of step $last"
  bigram --steps $((last + 5)) --validate-every 0 --out s --resume >s.log || fail "resume: $(cat s.log)"
  [ "$(steps s)" = $((last + 5)) ] || fail "$(steps s) objects after $((last + 5)) steps"
done
# What a process left that was killed while it made its folder goes when the folder is made; what a living one is making stays.
mkdir "k.999999999.partial" "k.$$.partial"
last=0
for i in $(seq 15); do
  resume=; [ -d k ] && resume=--resume
  "$BIN/bigram-train" --data corpus.txt --steps 100000000 --validate-every 0 --checkpoint-every 1 --out k $resume >k.log 2>&1 & pid=$!
  sleep 0.$((RANDOM % 4))$((RANDOM % 10)); kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
  now=$(tail -1 k/metrics.jsonl 2>/dev/null | grep -oE '"step":[0-9]+' | cut -d: -f2)
  [ "${now:-0}" -ge $((last - 1)) ] || fail "went back from $last to ${now:-none}: $(cat k.log)"
  grep -q "^error" k.log && fail "kill $i: $(cat k.log)"
  last=${now:-0}
done
[ "$last" -gt 15 ] || fail "only $last steps survived 15 kills"
bigram --steps "$last" --validate-every 0 --out k --resume >k.log 2>&1 || bigram --steps $((last + 1)) --validate-every 0 --out k --resume >k.log 2>&1 || fail "after the kills: $(cat k.log)"
awk -F'[:,]' '$2 != NR { exit 1 }' k/metrics.jsonl || fail "the metrics skip or repeat a step"
ls k/checkpoints | grep -q partial && fail "a partial file stays behind"
[ "$(ls k/checkpoints | wc -l)" -le 2 ] || fail "more than two checkpoints are kept"
[ -d "k.$$.partial" ] || fail "the folder that another process is making was removed"
rmdir "k.$$.partial"
ls -d k.*partial >/dev/null 2>&1 && fail "a half-made folder stays behind"
echo "15 kills, step $last"
