#!/usr/bin/env bash
# What a program keeps resident is its planned arena, its threads' scratch and a stated constant of 16 MiB for code, libraries and buffers of input and output.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 4 --heads 4 --width 128 --sequence 64
quiet descent compile gpt -o train
descent plan gpt --json >plan.json
peak=$(grep -oE '"peak_bytes": *[0-9]+' plan.json | grep -oE '[0-9]+')
bound=$(grep -oE '"lower_bound_bytes": *[0-9]+' plan.json | grep -oE '[0-9]+')
scratch_bytes=$(grep -oE '"thread_scratch_bytes": *[0-9]+' plan.json | grep -oE '[0-9]+')
check "$peak >= $bound && $peak <= 1.1 * $bound"
resident=$(python3 - <<'PYTHON'
import resource, subprocess
subprocess.run(["./train", "--data", "corpus.txt", "--steps", "3", "--threads", "2", "--out", "run"], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
PYTHON
)
echo "resident $resident, planned $peak + 2 x $scratch_bytes"
check "$resident <= $peak + 2 * $scratch_bytes + 16 * 1048576"
check "$resident >= 0.5 * $peak"
