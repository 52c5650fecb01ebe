# Sourced by the scripts of this folder: trains the hand-written programs in a folder of its own. BIN, LIB and TMP come from ctest.
set -u
BIN=${BIN:-$PWD/build/bin} LIB=${LIB:-$PWD/build/lib} TMP=${TMP:-${TMPDIR:-/tmp}/descent-runtime}
scripts=$(cd "$(dirname "$0")" && pwd)
work="$TMP/$(basename "$0" .sh)"
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
# A text of 20,000 bytes with structure, the same everywhere.
for i in $(seq 400); do echo "the step $((i * 7919 % 1000)) of a descent goes down by $((i % 13))"; done >corpus.txt
bigram() { "$BIN/bigram-train" --data corpus.txt "$@"; }
# refused STATUS TEXT command...: the command exits with STATUS and says TEXT on standard error.
refused() {
  local status=$1 text=$2 got; shift 2
  "$@" >out.log 2>err.log; got=$?
  [ $got -eq "$status" ] || fail "$* exits with $got, not $status: $(cat err.log)"
  grep -qF -- "$text" err.log || fail "$* does not say '$text' but: $(cat err.log)"
}
steps() { grep -c '"step":' "$1/metrics.jsonl"; }
