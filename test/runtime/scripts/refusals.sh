# Bad command lines, data and folders: message, status, and nothing left behind.
. "$(dirname "$0")/common.sh"
refused 2 "--stepz is no flag" bigram --stepz 1; grep -q "did you mean --steps?" err.log || fail "no suggestion: $(cat err.log)"
refused 2 "--tokenz is no flag" bigram sample --tokenz 1
refused 2 "-3 is no whole number of at least 0" bigram --steps -3
refused 2 "x is no whole number" bigram --steps x
refused 2 "from 1 to 4096" bigram --threads 0
refused 2 "exclude each other" bigram --steps 1 --epochs 1
refused 2 "exclude each other" bigram --resume --overwrite
refused 2 "is no command" bigram smaple
refused 2 "needs a step" bigram --steps 0 --dump-gradients g.safetensors
refused 2 "neither text nor json" bigram --describe=xml
refused 2 "no data: give --data FILE" "$BIN/bigram-train" --steps 1
refused 1 "nowhere.txt" "$BIN/bigram-train" --data nowhere.txt --steps 1
: >empty.txt; refused 1 "empty.txt" "$BIN/bigram-train" --data empty.txt --steps 1
head -c 5 corpus.txt >short.txt; refused 1 "short.txt" "$BIN/bigram-train" --data short.txt --steps 1
[ -e run ] && fail "refused data made a run"
refused 1 "nothing to resume: there is no folder" bigram --steps 1 --out absent --resume
mkdir plain; refused 1 "nothing to resume: plain is no run" bigram --steps 1 --out plain --resume
: >file; refused 1 "file" bigram --steps 1 --out file
refused 1 "/proc/descent" bigram --steps 1 --out /proc/descent
refused 1 "nowhere" bigram --steps 1 --out e1 --export nowhere/w.safetensors
bigram --steps 0 --export /dev/null >/dev/null || fail "export to a device"
[ -c /dev/null ] || fail "the device is gone"
bigram --help | grep -q -- --dump-gradients || fail "help"
bigram sample --help | grep -q -- --top-k || fail "help of sample"
bigram --version | grep -q "model bigram" || fail "version"

# A loss that is no number ends the run; its line of metrics is there, a checkpoint of it is not.
bigram --steps 0 --export w.safetensors >/dev/null
{ head -c -65536 w.safetensors; head -c 65536 /dev/zero | tr '\0' '\377'; } >nan.safetensors
refused 1 "step 1: the loss is" bigram --steps 5 --out n --init-from nan.safetensors
[ -z "$(ls n/checkpoints)" ] && [ "$(steps n)" = 1 ] && grep -q '"loss":null' n/metrics.jsonl || fail "after a loss that is no number: $(ls n/checkpoints; cat n/metrics.jsonl)"
# A byte that the model's table lacks: sample, position, value and bounds.
{ cat corpus.txt; printf '\377'; cat corpus.txt; } >wide.txt
refused 1 "has the value 255; input 't" "$BIN/bigram-train" --data wide.txt --epochs 1 --out wide

# A run that was started and never saved begins again; two processes do not share a folder.
bigram --steps 3 --out started >/dev/null && rm -r started/checkpoints
bigram --steps 3 --out started --resume >out.log 2>&1 || fail "resume of a started run: $(cat out.log)"
grep -q "no checkpoint yet; starting from the beginning" out.log && [ "$(steps started)" = 3 ] || fail "started run: $(cat out.log)"
"$BIN/bigram-train" --data corpus.txt --steps 100000000 --validate-every 0 --out busy >/dev/null 2>&1 & pid=$!
for _ in $(seq 200); do [ -s busy/metrics.jsonl ] && break; sleep 0.05; done
refused 1 "another process is training in busy" bigram --steps 5 --out busy --resume
kill -9 $pid; wait $pid 2>/dev/null

# No folder to write to, no room to write.
if [ "$(id -u)" != 0 ]; then
  mkdir locked; chmod a-w locked; refused 1 "locked" bigram --steps 1 --out locked/run; chmod u+w locked
fi
ulimit -f 40 # KiB: less than a checkpoint takes.
refused 1 "File too large" bigram --steps 2 --out limited
[ -z "$(ls limited/checkpoints)" ] || fail "half a checkpoint stays: $(ls limited/checkpoints)"
echo "refused what is wrong"
