#!/usr/bin/env bash
# `descent plan` of a device: memory as the program itself reports it, times and resources that add up, and the same keys as for a CPU.
. "$(dirname "$0")/common.sh"
quiet descent new mlp mlp --inputs 64 --hidden 128 --classes 16 --batch 32
quiet descent compile mlp --target cuda:sm_90 -o train
quiet descent compile mlp --target cuda-emulated -o emulated
descent plan mlp --target cuda:sm_90 >plan.txt
descent plan mlp --target cuda:sm_90 --json >plan.json
descent plan mlp --target cuda:sm_90 --product H200 --json --set precision.compute=bf16 >h200.json
descent plan mlp --target cuda-emulated --json >emulated.json
descent plan mlp --json >cpu.json
./emulated --describe=json >describe.json
python3 - <<'PYTHON'
import json, math
plan, h200, emulated, cpu, program = (json.load(open(f + ".json")) for f in ("plan", "h200", "emulated", "cpu", "describe"))
m = emulated["memory"]
parts = sum(m[k + "_bytes"] for k in ("parameters", "gradients", "optimizer", "activations", "workspace"))
assert parts == m["arena_bytes"], (parts, m)
# The workspace begins at a multiple of 256; the peak is exactly what the program allocates.
assert m["peak_bytes"] == -(-m["arena_bytes"] // 256) * 256 + m["device_workspace_bytes"] + m["device_staging_bytes"], m
assert m["peak_bytes"] == program["memory"]["device_bytes"], (m, program["memory"])
assert m["lower_bound_bytes"] <= m["peak_bytes"]
text = open("describe.json").read()
for key in ("arena_bytes", "device_workspace_bytes", "device_staging_bytes"):
    assert str(m[key]) in text, f"the program reports another {key} than {m[key]}"
assert set(cpu) - {"kernels"} <= set(plan) and {"device", "step"} <= set(plan)
assert cpu["parameters"] == plan["parameters"] and cpu["tensors"] == plan["tensors"]
assert plan["device"]["product"].startswith("H100") and h200["device"]["product"].startswith("H200") and h200["device"]["bandwidth"] == 4.8e12
assert emulated["device"]["target"] == "cuda-emulated" and emulated["device"]["chip"] == "sm_80"
for p in (plan, h200, emulated):
    step, device = p["step"], p["device"]
    assert step["samples"] == 32 and step["commands"] == sum(k["launches"] * k["commands"] for k in p["kernels"])
    rate = {"f32": device["f32_flops"], "tf32": device["tf32_flops"], "bf16": device["half_flops"], "f16": device["half_flops"]}
    for k in p["kernels"]:
        assert k["commands"] == k["fills"] + len(k["products"]) + sum(not f["fallback"] for f in k["functions"]), k
        assert 0 < k["roofline_us"] <= k["expected_us"], k
        if len(k["products"]) == 1 and k["commands"] == 1:
            q = k["products"][0]
            assert q["flops"] == 2 * q["m"] * q["n"] * q["k"] * q["batch"]
            assert math.isclose(k["roofline_us"], 1e6 * max(q["flops"] / rate[k["rate"]], q["bytes"] / device["bandwidth"]))
        if not k["products"]:
            assert math.isclose(k["roofline_us"], 1e6 * max(k["flops"] / rate[k["rate"]], k["bytes"] / device["bandwidth"]))
        for f in k["functions"]:
            assert f["threads"] % 32 == 0 and 32 <= f["threads"] <= 1024 and f["blocks"] > 0 and f["operands"], f
            if device.get("resources"):
                assert 0 < f["registers"] <= 255 and f["occupancy"]["blocks"] > 0 and f["spill_store_bytes"] == 0, f
                assert f["occupancy"]["blocks"] * -(-f["threads"] // 32) == f["occupancy"]["warps"], f
    total = sum(c["expected_ms"] for c in step["classes"]) + step["gaps_ms"]
    assert math.isclose(total, step["expected_ms"]) and step["roofline_ms"] < step["expected_ms"]
    assert 0 < step["expected_peak_share"] < 1
assert plan["step"]["peak_type"] == "f32" and h200["step"]["peak_type"] == "bf16"
PYTHON
grep -q 'Time of a step: predicted for H100 SXM5 80GB' plan.txt && grep -q 'nothing here is measured' plan.txt && grep -q 'staging' plan.txt || fail "$(cat plan.txt)"
