"""Safetensors files without numpy: read(path) gives {name: Tensor}; values are Python floats and ints.

    python3 tensors.py same A B [NAME...]     exit 1, with the names, if anything but the tensors NAME differs
    python3 tensors.py value FILE NAME        the values of a tensor
    python3 tensors.py mean FILE NAME         their mean
    python3 tensors.py zeros FILE             share of all values that are exactly zero
"""
import json
import struct
import sys

SIZES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U8": 1, "I8": 1, "BOOL": 1}
FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "I8": "b", "BOOL": "?"}


class Tensor:
    def __init__(self, kind, shape, data):
        self.kind, self.shape, self.data = kind, shape, data

    def values(self):
        if self.kind == "BF16":
            halves = struct.unpack(f"<{len(self.data) // 2}H", self.data)
            return [struct.unpack("<f", struct.pack("<I", h << 16))[0] for h in halves]
        return list(struct.unpack(f"<{len(self.data) // SIZES[self.kind]}{FORMATS[self.kind]}", self.data))

    def __eq__(self, other):
        return (self.kind, self.shape, self.data) == (other.kind, other.shape, other.data)


def read(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        body = file.read()
    header.pop("__metadata__", None)
    return {name: Tensor(t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}


def main():
    command, path = sys.argv[1:3]
    a = read(path)
    if command == "same":
        b, excluded = read(sys.argv[3]), set(sys.argv[4:])
        missing = excluded - (a.keys() & b.keys())
        differ = sorted(n for n in a.keys() | b.keys() if n not in excluded and (n not in a or n not in b or a[n] != b[n]))
        if missing or differ:
            sys.exit(f"{path} and {sys.argv[3]}: differ in {differ}; lack {sorted(missing)}")
    elif command == "value":
        print(*a[sys.argv[3]].values())
    elif command == "mean":
        values = a[sys.argv[3]].values()
        print(sum(values) / len(values))
    elif command == "zeros":
        values = [v for t in a.values() for v in t.values()]
        print(sum(v == 0 for v in values) / len(values))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
