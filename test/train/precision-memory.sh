#!/usr/bin/env bash
# Activations fall as the types say, the plan counts every byte, and a program of narrow types stays within its plan. It also runs on a CPU without bf16 instructions.
. "$(dirname "$0")/common.sh"
text >corpus.txt
quiet descent new gpt gpt --layers 4 --heads 4 --width 128 --sequence 64
for type in fp32 bf16 fp16; do descent plan gpt --json --set precision.compute=$type >$type.json; done
for type in bf16 fp16; do descent plan gpt --json --set precision.compute=$type --set optimizer.clip=0 >$type-unclipped.json; done
quiet descent compile gpt -o train --set precision.compute=bf16
python3 - <<'PYTHON'
import json, resource, subprocess
plans = {t: json.load(open(f"{t}.json"))["memory"] for t in ("fp32", "bf16", "fp16")}
for type, memory in plans.items():
    print(type, memory)
    assert memory["lower_bound_bytes"] <= memory["peak_bytes"]
for type in "bf16", "fp16":
    transient = lambda m: m["activations_bytes"] + m["workspace_bytes"]
    assert transient(plans[type]) < 0.8 * transient(plans["fp32"]), type
    # Parameters are fp32, and a copy of the matrices at half the size comes on top.
    assert plans["fp32"]["parameters_bytes"] < plans[type]["parameters_bytes"] <= 1.55 * plans["fp32"]["parameters_bytes"]
    assert plans[type]["optimizer_bytes"] <= plans["fp32"]["optimizer_bytes"] + 4096
# Nothing waits for the norm but the decision; the update still keeps no value besides those that it writes.
peaks = [json.load(open(f"{t}-unclipped.json"))["memory"]["peak_bytes"] for t in ("bf16", "fp16")]
assert peaks[1] <= peaks[0] + 65536, peaks
subprocess.run(["./train", "--data", "corpus.txt", "--steps", "3", "--threads", "2", "--out", "run"], check=True, stdout=subprocess.DEVNULL)
resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
m = plans["bf16"]
print("resident", resident)
assert resident <= m["peak_bytes"] + 2 * m["thread_scratch_bytes"] + 16 * 1048576
PYTHON
quiet descent compile gpt -o portable --cpu haswell --set precision.compute=bf16
quiet ./portable --data corpus.txt --steps 3 --threads 2 --out portable-run
a=$(field run/metrics.jsonl loss) b=$(field portable-run/metrics.jsonl loss)
check "$a - $b < 0.01 && $b - $a < 0.01"
