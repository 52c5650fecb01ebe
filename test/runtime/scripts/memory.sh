# No step allocates: a run of 300 steps allocates as often as one of 30. Resident memory is the plan and a constant.
. "$(dirname "$0")/common.sh"
for threads in 1 3; do
  rm -f counts
  for n in 30 300; do
    # Each in a folder of its own: making the folder looks at what lies beside it.
    mkdir -p c$threads-$n
    # Checkpoints, progress and metrics of the loop are counted too; validation as often in both.
    COUNT_ALLOCATIONS=$PWD/counts LD_PRELOAD=$LIB/count-allocations.so bigram --steps $n --out c$threads-$n/run --threads $threads --checkpoint-every 10 --validate-every 15 --log-every 5 >/dev/null || fail "train"
  done
  [ "$(wc -l <counts)" = 2 ] || fail "counted $(wc -l <counts) processes"
  [ "$(sed -n 1p counts)" = "$(sed -n 2p counts)" ] || fail "$threads threads: 30 steps allocate $(sed -n 1p counts) times, 300 steps $(sed -n 2p counts) times"
done
# The stated constant of a process: 16 MiB.
"$BIN/bigram-train" --data corpus.txt --steps 100000000 --validate-every 0 --out rss >/dev/null 2>&1 & pid=$!
for _ in $(seq 200); do [ -s rss/metrics.jsonl ] && break; sleep 0.05; done
peak=$(awk '/VmHWM/ { print $2 }' /proc/$pid/status); kill -9 $pid; wait $pid 2>/dev/null
planned=$("$BIN/bigram-train" --describe=json | grep -o '"peak_bytes": [0-9]*' | grep -o '[0-9]*$')
[ $((peak * 1024)) -le $((planned + 16 * 1024 * 1024)) ] || fail "resident peak $peak KiB, planned $planned bytes"
echo "$(sed -n 1p counts) allocations, none in a step; resident $((peak - planned / 1024)) KiB above the plan"
