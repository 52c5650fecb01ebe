"""What bench/gpu compiles and runs: the sizes for a GPU, and toy sizes that the emulator gets through in a minute."""

# Programs whose results are compared with the CPU's: family, sizes, samples of data, steps.
CHECKS = {
    "gpt": dict(family="gpt", sizes=dict(layers=2, heads=2, width=128, sequence=128, vocabulary=512, batch=8), steps=20),
    "convnet": dict(family="convnet", sizes=dict(height=28, width=28, channels=1, filters="16,32", classes=10, batch=32), steps=20),
}
TOY_CHECKS = {
    "gpt": dict(family="gpt", sizes=dict(layers=1, heads=2, width=32, sequence=32, vocabulary=64, batch=2), steps=4),
    "convnet": dict(family="convnet", sizes=dict(height=8, width=8, channels=1, filters="4,8", classes=4, batch=4), steps=4),
}
# How far results may be from the CPU's: losses absolutely, gradients as the norm of the difference over the norm.
TOLERANCE = {"fp32": dict(loss=1e-4, gradient=1e-3), "bf16": dict(loss=2e-2, gradient=5e-2)}

# GPT-2 124M as llm.c trains it: T 1024, bf16, the vocabulary padded to a multiple of 128. Its script's micro batch is 64; the largest
# of these whose plan fits the device is measured.
GPT2 = dict(layers=12, heads=12, width=768, sequence=1024, vocabulary=50304)
GPT2_BATCHES = (64, 32, 16, 8)
TOY_GPT2 = dict(layers=1, heads=2, width=32, sequence=32, vocabulary=96)
TOY_GPT2_BATCHES = (2,)

# The workloads of bench/run, which are small, so that launches count.
SEEDS = {
    "gpt-c128": dict(family="gpt", sizes=dict(layers=4, heads=4, width=128, sequence=64, batch=12, vocabulary=65)),
    "gpt-c384": dict(family="gpt", sizes=dict(layers=6, heads=6, width=384, sequence=256, batch=4, vocabulary=65)),
    "mlp-4096": dict(family="mlp", sizes=dict(inputs=1024, hidden="4096", classes=1024, batch=256)),
}
TOY_SEEDS = {"gpt-c32": dict(family="gpt", sizes=dict(layers=1, heads=2, width=32, sequence=32, batch=2, vocabulary=64))}
TYPES = ("fp32", "bf16")
