"""What the device functions of a program read and write of global memory, and whether any spills: reads the PTX and the plan's JSON.

    python3 accesses.py PTX PLAN.json     exit 1 if a function spills, or has no 128-bit access where nothing forbids it

128-bit accesses are forbidden where rows do not start at multiples of 16 bytes: a function all of whose larger operands have such rows must
have them. Counted are ld.global and st.global of 16 bytes and cp.async of 16 bytes.
"""
import json
import math
import re
import sys

ELEMENT = {"f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i64": 8, "i8": 1, "f8E4M3FN": 1, "f8E5M2": 1}
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
ACCESS = re.compile(r"\b(ld|st)\.(?:[a-z_:0-9]+\.)*?global(?:\.(?!v[248])[a-zA-Z_:0-9]+)*?(?:\.v([248]))?\.[bfsu](8|16|32|64|128)\b")
COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\S*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(\d+)")
# An operand smaller than this is soon read by whatever is at hand: a bias, sums of a few blocks.
LARGE = 32768


def accesses(ptx):
    """{function: {"ld": {bytes: count}, "st": ...}}"""
    starts = [(m[1], m.end()) for m in ENTRY.finditer(ptx)] + [(None, len(ptx))]
    found = {}
    for (name, begin), (_, end) in zip(starts, starts[1:]):
        body, counts = ptx[begin:end], {"ld": {}, "st": {}}
        for kind, vector, bits in ACCESS.findall(body):
            width = int(vector or 1) * int(bits) // 8
            counts[kind][width] = counts[kind].get(width, 0) + 1
        for width in map(int, COPY.findall(body)):
            counts["ld"][width] = counts["ld"].get(width, 0) + 1
        found[name] = counts
    return found


def operand(text):
    kind, sizes = re.fullmatch(r"(\w+)\[([\d, ]*)\]", text).groups()
    return ELEMENT[kind], [int(s) for s in sizes.replace(" ", "").split(",") if s]


def may_be_wide(function):
    """Whether every large operand has rows of a multiple of 16 bytes, and there is one."""
    rows = []
    for text in function["operands"]:
        size, shape = operand(text)
        # Indices and flags are read one by one.
        if size * math.prod(shape) >= LARGE and not text.startswith("i"):
            # Axes of one element at the end say nothing about rows.
            while len(shape) > 1 and shape[-1] == 1:
                shape.pop()
            rows.append(size * shape[-1])
    return bool(rows) and all(r % 16 == 0 for r in rows)


def main():
    found = accesses(open(sys.argv[1]).read())
    plan = json.load(open(sys.argv[2]))
    problems, wide, functions = [], 0, 0
    seen = set()
    for kernel in plan["kernels"]:
        for function in kernel["functions"]:
            name = function["name"]
            if name in seen:
                continue
            seen.add(name)
            functions += 1
            if name not in found:
                problems.append(f"{name} is not in the PTX")
                continue
            if function.get("spill_store_bytes") or function.get("spill_load_bytes"):
                problems.append(f"{name} spills {function['spill_store_bytes']} + {function['spill_load_bytes']} B on {plan['device']['chip']}")
            if "registers" in function and not function["occupancy"]["blocks"]:
                problems.append(f"{name} cannot be launched on {plan['device']['chip']}: too much {function['occupancy']['limit']}")
            counts = found[name]
            if may_be_wide(function):
                wide += 1
                if not any(w >= 16 for kind in counts.values() for w in kind):
                    problems.append(f"{name} ({kernel['kind']}, {', '.join(function['operands'])}) has no 128-bit access: {counts}")
    for problem in problems:
        print(problem)
    print(f"{functions} functions, {wide} with 128-bit accesses to have")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
