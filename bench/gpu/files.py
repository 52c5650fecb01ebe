"""Data files made from a fixed sequence of numbers, and safetensors read without numpy."""
import array
import json
import math
import pathlib
import struct
import sys
import zipfile


def numbers(seed):
    """Endless integers of 31 bits, the same on every machine and version of Python."""
    state = seed * 2654435761 % (1 << 64) + 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 33


def write_tokens(path, count, vocabulary):
    """A stream of 16-bit ids in which each depends on the one before, so that there is something to learn."""
    generator, last, values = numbers(1), 0, array.array("H")
    for _ in range(count):
        noise = next(generator)
        last = (5 * last + 1 + noise % 4) % vocabulary if noise % 8 else noise // 8 % vocabulary
        values.append(last)
    if sys.byteorder == "big":
        values.byteswap()
    path.write_bytes(values.tobytes())


def npy(descr, shape, payload):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + payload


def write_npz(path, data_name, rows, shape, classes):
    """Samples of noise around a pattern of their class, and the classes."""
    generator = numbers(2)
    size = math.prod(shape)
    y = array.array("i", (next(generator) % classes for _ in range(rows)))
    x = array.array("f")
    for label in y:
        x.extend((next(generator) % 2001 / 1000.0 - 1.0) + (1.0 if i % classes == label else 0.0) for i in range(size))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{data_name}.npy", npy("<f4", (rows, *shape), x.tobytes()))
        archive.writestr("labels.npy", npy("<i4", (rows,), y.tobytes()))


def read_gradients(path):
    """{name: floats} of a safetensors file of f32 tensors."""
    content = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {entry['dtype']}, expected F32")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return tensors


def relative_difference(a, b):
    """Largest over tensors of |a - b| / |b|, and its tensor; infinite where one is not finite or the names differ."""
    if a.keys() != b.keys():
        return math.inf, "the names of tensors differ"
    worst, where = 0.0, ""
    # A gradient far below the others is noise of rounding in both programs.
    floor = 1e-6 * max((math.sqrt(sum(y * y for y in t)) for t in b.values()), default=0.0)
    for name in b:
        difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a[name], b[name])))
        norm = math.sqrt(sum(y * y for y in b[name]))
        value = difference / max(norm, floor) if max(norm, floor) > 0 else difference
        if not value <= worst:
            worst, where = value if value == value else math.inf, name
    return worst, where
