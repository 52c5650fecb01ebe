"""Reads and writes .npy files of float32 without NumPy, for the references of the tests beside."""
import ast
import math
import random
import struct
import sys


def save(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, shape))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%df" % len(values), *values))


def load(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + length].decode())
    assert header["descr"] == "<f4", header
    body = data[10 + length :]
    return header["shape"], list(struct.unpack("<%df" % (len(body) // 4), body))


def normal(count, seed, bits=None):
    """Normal values; with `bits`, of so many bits of fraction, so that narrow types hold them."""
    source = random.Random(seed)
    values = [source.gauss(0, 1) for _ in range(count)]
    return [round(v * 2**bits) / 2**bits for v in values] if bits else values


def softmax(rows, columns, x, out):
    values = normal(rows * columns, 1)
    result = []
    for r in range(rows):
        row = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values[r * columns : (r + 1) * columns]]
        largest = max(row)
        exps = [math.exp(v - largest) for v in row]
        result += [e / sum(exps) for e in exps]
    save(x, (rows, columns), values)
    save(out, (rows, columns), result)


def product(m, n, k, a, b, out):
    """a [m, k] times the transpose of b [n, k]."""
    left, right = normal(m * k, 2, 4), normal(n * k, 3, 4)
    save(a, (m, k), left)
    save(b, (n, k), right)
    save(out, (m, n), [sum(left[i * k + p] * right[j * k + p] for p in range(k)) for i in range(m) for j in range(n)])


if __name__ == "__main__":
    arguments = [int(a) if a.isdigit() else a for a in sys.argv[2:]]
    {"softmax": softmax, "product": product}[sys.argv[1]](*arguments)
