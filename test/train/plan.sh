#!/usr/bin/env bash
# `descent plan` accounts for every byte, and its JSON agrees with what the program itself says.
. "$(dirname "$0")/common.sh"
quiet descent new gpt gpt --layers 2 --heads 2 --width 32 --sequence 32
quiet descent compile gpt -o train
descent plan gpt >plan.txt
descent plan gpt --json >plan.json
descent plan gpt --json --set precision.compute=bf16 >bf16.json
descent plan gpt --json --set precision.compute=fp16 >fp16.json
descent plan gpt --json --set precision.compute=bf16 --set precision.master=false --set precision.state=bf16 >storage.json
{ cat gpt/recipe.toml; printf '\n[precision]\ncompute = "bf16"\n[[precision.override]]\nop = "matmul"\nmatch = "h.0.*"\ntype = "fp32"\n'; } >override.toml
descent plan --model gpt/model.mlir --recipe override.toml --json >override.json
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
# Types: the class of each op says which; the products' weights have working copies; slabs add up.
assert all(t["type"].startswith(("f32", "i")) for t in plan["tensors"])
mixed = json.load(open("bf16.json"))
def rows(op):
    return [t for t in mixed["tensors"] if t["source"].startswith("nn." + op + " ")]
assert all(t["operands"] == "bf16" and "narrow" in t["rule"] for t in rows("matmul") + rows("attention")) and rows("matmul") and rows("attention")
assert all(t["type"].startswith("f32") and "wide" in t["rule"] for t in rows("layer_norm") + rows("cross_entropy")) and rows("layer_norm")
assert all(t["type"].startswith("bf16") and t["rule"] == "as its input" for t in rows("gelu")) and rows("gelu")
copies = {p["name"]: p["working_copy"] for p in mixed["parameters"]}
assert copies["h.0.attn.qkv.weight"] == "bf16" and copies["h.0.ln1.gain"] == "" and not any(p["working_copy"] for p in plan["parameters"]), copies
kept = {k["what"]: k["bytes"] for k in mixed["kept"]}
assert kept["master weights"] + kept["working copies"] == mixed["memory"]["parameters_bytes"], (kept, mixed["memory"])
assert kept["gradients"] == mixed["memory"]["gradients_bytes"]
storage = {(k["what"], k["type"]) for k in json.load(open("storage.json"))["kept"]}
assert ("parameters", "bf16") in storage and ("optimizer state", "bf16") in storage and ("gradients", "f32") in storage, storage
half = {k["what"]: k["bytes"] for k in json.load(open("fp16.json"))["kept"]}
assert half["loss scale"] == 4 + 8 + 8, half
override = {t["source"]: t["rule"] for t in json.load(open("override.json"))["tensors"] if t["source"].startswith("nn.softmax") or "h.0" in t["source"]}
assert any("override" in rule for rule in override.values()), override
PYTHON
grep -q 'holds' plan.txt && grep -q 'no placement can go below' plan.txt || fail "plan.txt lacks its tables"
