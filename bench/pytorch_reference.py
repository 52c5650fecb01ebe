"""The workloads of bench/run and bench/gpu in PyTorch: the same model, data shapes and optimizer, eager or compiled. Prints one JSON line.

    python bench/pytorch_reference.py gpt --layers 4 --heads 4 --width 128 --sequence 64 --batch 12 --vocabulary 65 [--type bf16] [--compile]
    python bench/pytorch_reference.py mlp --inputs 1024 --hidden 4096 --outputs 1024 --batch 256 [--type bf16] [--compile]

--type bf16 runs the forward pass and the loss under torch.autocast. --device cuda:0 runs on a GPU; fp32 products are fp32 there too, not tf32.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocabulary, a.width), nn.Embedding(a.sequence, a.width)
        self.blocks = nn.ModuleList(Block(a.width, a.heads) for _ in range(a.layers))
        self.ln = nn.LayerNorm(a.width)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.blocks:
            x = block(x)
        logits = self.ln(x) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class MLP(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(a.inputs, a.hidden), nn.ReLU(), nn.Linear(a.hidden, a.outputs))

    def forward(self, x, targets):
        return F.cross_entropy(self.layers(x), targets)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=["gpt", "mlp"])
    for name, default in dict(layers=4, heads=4, width=128, sequence=64, batch=12, vocabulary=65, inputs=1024, hidden=4096, outputs=1024, steps=30, threads=2).items():
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--type", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--device", default="cpu")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(a.threads)
    kind = a.device.split(":")[0]
    torch.set_default_device(a.device)
    options = {"fused": True} if kind == "cuda" else {}
    if a.model == "gpt":
        model = GPT(a)
        batch = [torch.randint(0, a.vocabulary, (a.batch, a.sequence)) for _ in range(2)]
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, **options)
    else:
        model = MLP(a)
        batch = [torch.randn(a.batch, a.inputs), torch.randint(0, a.outputs, (a.batch,))]
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **options)
    start = time.perf_counter()
    run = torch.compile(model) if a.compile else model
    times, first = [], None
    for _ in range(a.steps):
        t = time.perf_counter()
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=a.type == "bf16"):
            loss = run(*batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if a.model == "gpt":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        now = time.perf_counter()
        times.append(1e3 * (now - t))
        first = first or now - start
    memory = {"memory_mib": torch.cuda.max_memory_reserved() / 2**20} if kind == "cuda" else {}
    print(json.dumps({**memory, "step_ms": statistics.median(times[len(times) // 3:]), "total_s": sum(times) / 1e3, "first_step_s": first,
                      "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "loss": value, "torch": torch.__version__}))


main()
