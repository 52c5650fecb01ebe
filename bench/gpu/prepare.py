"""Everything that needs no GPU: projects, data, programs, plans, and the CPU's results that the device's are compared with."""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import time

import files
import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed with status {done.returncode}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def train_command(program, data, out, steps, extra=()):
    return [program, "--data", data, "--out", out, "--overwrite", "--steps", steps, "--seed", 5, "--log-every", 0, *extra]


def losses(out):
    lines = [json.loads(line) for line in (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


class Preparation:
    def __init__(self, folder, descent, target, toy):
        self.folder, self.descent, self.target, self.toy = folder, descent, target, toy
        self.manifest = dict(target=target, toy=toy, checks=[], gpt2=[], seeds=[], notes=[])

    def say(self, text):
        print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)

    def project(self, name, spec):
        """A project with its data, which it keeps: the settings that the recipe needs for it."""
        family, sizes = spec["family"], spec["sizes"]
        project = self.folder / name
        shutil.rmtree(project, ignore_errors=True)
        run([self.descent, "new", family, project, *(f"--{k}={v}" for k, v in sizes.items())])
        settings = ["data.validation=0.0"]
        batches = 8 if self.toy else 12
        if family == "gpt":
            data = self.folder / f"{name}.bin"
            recipe = project / "recipe.toml"  # small vocabularies are for text
            recipe.write_text(re.sub(r'format = "text"\n(vocabulary = .*\n)?', 'format = "tokens"\n', recipe.read_text()))
            files.write_tokens(data, sizes["batch"] * sizes["sequence"] * batches + 1, sizes["vocabulary"])
        else:
            data = self.folder / f"{name}.npz"
            shape = (sizes["inputs"],) if family == "mlp" else (sizes["height"], sizes["width"], sizes["channels"])
            files.write_npz(data, "x" if family == "mlp" else "images", sizes["batch"] * min(batches, 4), shape, sizes["classes"])
        return project, data, settings

    def compile(self, project, settings, compute, target, output):
        options = [f"--set={s}" for s in [*settings, f"precision.compute={compute}"]]
        start = time.perf_counter()
        run([self.descent, "compile", project, "-o", output, "-q", "--target", target, *options])
        return time.perf_counter() - start

    def plan(self, project, settings, compute, product=None):
        options = [f"--set={s}" for s in [*settings, f"precision.compute={compute}"]]
        if product:
            options += ["--product", product]
        return json.loads(run([self.descent, "plan", project, "--json", "--target", self.target, *options]))

    def check(self, name, spec, compute):
        project, data, settings = self.project(f"check-{name}", spec)
        stem = f"check-{name}-{compute}"
        cpu, device = self.folder / f"{stem}.cpu", self.folder / stem
        self.compile(project, settings, compute, "cpu", cpu)
        self.compile(project, settings, compute, self.target, device)
        reference = self.folder / f"{stem}.reference"
        run(train_command(cpu, data, reference, spec["steps"], ["--checkpoint-every", 0]))
        gradients = self.folder / f"{stem}.gradients.safetensors"
        run(train_command(cpu, data, self.folder / "scratch", 1, ["--checkpoint-every", 0, "--dump-gradients", gradients]))
        values = losses(reference)
        for folder in (reference, self.folder / "scratch"):  # what travels to the GPU's machine should be small
            shutil.rmtree(folder)
        cpu.unlink()
        if not all(map(math.isfinite, values)):
            raise RuntimeError(f"{stem}: the CPU's losses are not finite: {values}")
        self.manifest["checks"].append(dict(name=name, compute=compute, program=device.name, data=data.name, steps=spec["steps"], losses=values,
                                            gradients=gradients.name, spills=self.spills(self.plan(project, settings, compute))))

    @staticmethod
    def spills(plan):
        """{function: bytes}, or nothing without ptxas."""
        functions = [f for kernel in plan["kernels"] for f in kernel["functions"]]
        if any("registers" not in f for f in functions):
            return None
        return {f["name"]: f["spill_store_bytes"] + f["spill_load_bytes"] for f in functions if f["spill_store_bytes"] or f["spill_load_bytes"]}

    def products(self):
        return {"cuda:sm_90": ["H100 SXM", "H200"], "cuda:sm_80": ["A100 SXM4 80GB", "A100 SXM4 40GB"]}.get(self.target, [None])

    def gpt2(self, batch):
        sizes = dict(workloads.TOY_GPT2 if self.toy else workloads.GPT2, batch=batch)
        project, data, settings = self.project("gpt2", dict(family="gpt", sizes=sizes))
        program = self.folder / f"gpt2-b{batch}"
        seconds = self.compile(project, settings, "bf16", self.target, program)
        plans = {}
        for product in self.products():
            plan = self.plan(project, settings, "bf16", product)
            plans[plan["device"]["product"]] = plan
        path = self.folder / f"gpt2-b{batch}.plans.json"
        path.write_text(json.dumps(plans))
        # Each batch has data of its own size.
        kept = data.rename(self.folder / f"gpt2-b{batch}.bin")
        self.manifest["gpt2"].append(dict(batch=batch, program=program.name, data=kept.name, plans=path.name, compile_s=seconds, sizes=sizes,
                                          peak_bytes=plan["memory"]["peak_bytes"]))

    def seed(self, name, spec):
        project, data, settings = self.project(name, spec)
        programs = {}
        for compute in workloads.TYPES:
            program = self.folder / f"{name}-{compute}"
            seconds = self.compile(project, settings, compute, self.target, program)
            programs[compute] = dict(program=program.name, compile_s=seconds, step=self.plan(project, settings, compute)["step"])
        self.manifest["seeds"].append(dict(name=name, family=spec["family"], sizes=spec["sizes"], data=data.name, programs=programs))

    def everything(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.descent, os.X_OK):
            raise RuntimeError(f"there is no {self.descent}; build first: tools/build descent")
        checks = workloads.TOY_CHECKS if self.toy else workloads.CHECKS
        for name, spec in checks.items():
            for compute in workloads.TYPES:
                self.say(f"check {name} in {compute}: programs and the CPU's results")
                self.check(name, spec, compute)
        for batch in workloads.TOY_GPT2_BATCHES if self.toy else workloads.GPT2_BATCHES:
            self.say(f"GPT-2{' (toy sizes)' if self.toy else ' 124M'}, batch {batch}")
            self.gpt2(batch)
        for name, spec in (workloads.TOY_SEEDS if self.toy else workloads.SEEDS).items():
            self.say(f"workload {name}")
            self.seed(name, spec)
        (self.folder / "manifest.json").write_text(json.dumps(self.manifest, indent=1))
        size = sum(f.stat().st_size for f in self.folder.rglob("*") if f.is_file())
        self.say(f"prepared {self.folder} ({size / 2**20:.0f} MiB)")
