#!/usr/bin/env bash
# `descent plan` accounts for every byte, and its JSON agrees with what the program itself says.
. "$(dirname "$0")/common.sh"
quiet descent new gpt gpt --layers 2 --heads 2 --width 32 --sequence 32
quiet descent compile gpt -o train
descent plan gpt >plan.txt
descent plan gpt --json >plan.json
./train --describe=json >describe.json
python3 - <<'PYTHON'
import json
plan, program = json.load(open("plan.json")), json.load(open("describe.json"))
m = plan["memory"]
parts = sum(m[k + "_bytes"] for k in ("parameters", "gradients", "optimizer", "activations", "workspace"))
assert parts == m["peak_bytes"], (parts, m)
assert m["lower_bound_bytes"] <= m["peak_bytes"]
assert str(m["peak_bytes"]) in open("describe.json").read(), "the program reports another arena"
assert 0 < len(plan["largest_at_peak"]) <= 10
sizes = [b["bytes"] for b in plan["largest_at_peak"]]
assert sizes == sorted(sizes, reverse=True)
names = {p["name"]: p for p in plan["parameters"]}
assert names["wte"]["group"] == "decay" and names["h.0.ln1.gain"]["group"] == "no_decay", names
assert sum(p["elements"] for p in plan["parameters"]) * 4 <= m["parameters_bytes"]
gemm = [k for k in plan["kernels"] if k["kind"] == "gemm"]
assert gemm and all(k["flops"] > 0 and k["bytes"] > 0 and k["sources"] for k in gemm)
# 6 flops a parameter and token for the weights of the products; attention and the rest come on top.
products = sum(p["elements"] for n, p in names.items() if n.endswith("weight") or n == "wte")
flops = sum(k["flops"] * k["launches"] for k in plan["kernels"])
tokens = 16 * 32
assert 6 * products * tokens <= flops <= 9 * products * tokens, flops / (products * tokens)
PYTHON
grep -q 'holds' plan.txt && grep -q 'no placement can go below' plan.txt || fail "plan.txt lacks its tables"
