# Sourced by the end-to-end tests. $DESCENT_BIN is the folder of the programs, $1 of each test a scratch folder that is made anew.
set -euo pipefail
export PATH="$DESCENT_BIN:$PATH"
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=${1:?usage: TEST SCRATCH_FOLDER}
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch"
fail() { echo "FAILED: $*" >&2; exit 1; }
# quiet COMMAND...: runs it; shows its output only if it fails.
quiet() { "$@" >quiet.log 2>&1 || { cat quiet.log >&2; fail "$*"; }; }
# field FILE KEY: the last value of a key in a file of JSON lines.
field() { grep -oE "\"$2\": *[-0-9.e+]+" "$1" | tail -1 | grep -oE '[-0-9.e+]+$'; }
# check EXPRESSION: arithmetic on decimals, by awk.
check() { awk "BEGIN { exit !($1) }" || fail "$1"; }
# $DESCENT_TEST_TARGET: what programs are compiled for, where it is not this CPU. An emulated device runs thread by thread: its models are smaller.
gpt_size="--layers 2 --heads 2 --width 32 --sequence 32" gpt_steps=10
if [ -n "${DESCENT_TEST_TARGET:-}" ]; then
  gpt_size="--layers 2 --heads 2 --width 32 --sequence 16 --batch 2" gpt_steps=3
  descent() { if [ "$1" = compile ] || [ "$1" = verify ]; then command descent "$@" --target "$DESCENT_TEST_TARGET"; else command descent "$@"; fi; }
fi
text() { cat /usr/share/common-licenses/GPL-3; }
