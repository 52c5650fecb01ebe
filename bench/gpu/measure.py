"""Runs what was prepared: first whether the device computes what the CPU does, then how long it takes, against the plan."""
import ctypes
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

import files
import prepare
import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Skipped(Exception):
    """Why something was not done."""


class Monitor(threading.Thread):
    """What nvidia-smi says of a device while something runs on it."""
    QUERY = ("memory.used", "clocks.sm", "power.draw")

    def __init__(self, device):
        super().__init__(daemon=True)
        self.device, self.samples, self.stopped = device, [], threading.Event()

    @classmethod
    def sample(cls, device):
        done = subprocess.run(["nvidia-smi", f"--id={device}", f"--query-gpu={','.join(cls.QUERY)}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr or done.stdout or "nvidia-smi failed")
        return [float(x) if re.fullmatch(r"\s*[\d.]+\s*", x) else math.nan for x in done.stdout.strip().split(",")]

    def run(self):
        while not self.stopped.wait(0.1):
            try:
                self.samples.append(self.sample(self.device))
            except OSError:
                return

    def result(self):
        self.stopped.set()
        self.join()
        if not self.samples:
            return {}
        columns = list(zip(*self.samples))
        return dict(memory_mib=max(columns[0]), clock_mhz=statistics.median(columns[1][len(columns[1]) // 2:]), power_w=max(columns[2]))


class Measurement:
    def __init__(self, folder, device, python, budget):
        self.folder, self.device, self.python, self.budget = folder, device, python, budget
        manifest = folder / "manifest.json"
        if not manifest.exists():
            raise RuntimeError(f"{folder} holds no manifest.json; `bench/gpu/run prepare {folder}` makes it")
        self.manifest = json.loads(manifest.read_text())
        self.emulated = self.manifest["target"] == "cuda-emulated"
        self.toy = self.manifest["toy"]
        self.start = time.perf_counter()
        self.results = dict(target=self.manifest["target"], toy=self.toy, emulated=self.emulated, checks=[], gpt2=None, graph=None, seeds=[], skipped=[])
        self.runs = folder / "runs"
        self.runs.mkdir(exist_ok=True)
        self.names = None

    # Tools.

    def left(self):
        return self.budget - (time.perf_counter() - self.start)

    def skip(self, what, why):
        print(f"skipped: {what}: {why}", flush=True)
        self.results["skipped"].append(dict(what=what, why=why))

    def train(self, entry, name, steps, extra=(), fresh=True):
        out = self.runs / name
        command = prepare.train_command(self.folder / entry["program"], self.folder / entry["data"], out, steps, extra)
        if not fresh:
            command.remove("--overwrite")
        if not self.emulated:
            command += ["--device", self.device]
        text = prepare.run(command, timeout=max(30.0, self.left() + 60.0))
        return out, text

    def gpu(self):
        """Name, driver and memory in bytes of the device, from the driver itself: nvidia-smi is not everywhere."""
        if self.emulated:
            return "the emulator", "", 1 << 40
        try:
            cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(f"no driver for a GPU on this machine ({error}); `--target cuda-emulated --toy` needs none") from None
        def call(function, *arguments):
            if status := getattr(cuda, function)(*arguments):
                raise RuntimeError(f"{function} failed with status {status}: the driver finds no device {self.device}")
        version, handle, memory, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
        call("cuInit", 0)
        call("cuDriverGetVersion", ctypes.byref(version))
        call("cuDeviceGet", ctypes.byref(handle), self.device)
        call("cuDeviceGetName", name, len(name), handle)
        call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        return name.value.decode(), f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}", memory.value

    # Correctness.

    def check(self, entry):
        name, steps, bound = f"{entry['name']} {entry['compute']}", entry["steps"], workloads.TOLERANCE[entry["compute"]]
        stem = f"{entry['name']}-{entry['compute']}"
        exported = lambda part: self.runs / f"{stem}.{part}.safetensors"
        plain = ["--checkpoint-every", 0]
        out, _ = self.train(entry, f"{stem}-a", steps, [*plain, "--export", exported("a")])
        values = prepare.losses(out)
        gap = max((abs(a - b) for a, b in zip(values, entry["losses"])), default=math.inf)
        if len(values) != len(entry["losses"]) or not all(map(math.isfinite, values)):
            gap = math.inf
        self.verdict(name, "losses agree with the CPU's", gap <= bound["loss"], f"largest difference {gap:.2e}, allowed {bound['loss']:.0e}")

        gradients = exported("gradients")
        self.train(entry, f"{stem}-g", 1, [*plain, "--dump-gradients", gradients])
        value, where = files.relative_difference(files.read_gradients(gradients), files.read_gradients(self.folder / entry["gradients"]))
        self.verdict(name, "gradients agree with the CPU's", value <= bound["gradient"],
                     f"largest relative difference {value:.2e} ({where}), allowed {bound['gradient']:.0e}")

        out, _ = self.train(entry, f"{stem}-b", steps, [*plain, "--export", exported("b")])
        same = exported("a").read_bytes() == exported("b").read_bytes() and prepare.losses(out) == values
        self.verdict(name, "equal seeds give equal bits", same, "weights and losses of two runs")

        self.train(entry, f"{stem}-n", steps, [*plain, "--no-graph", "--export", exported("n")])
        self.verdict(name, "the graph gives the bits of single launches", exported("a").read_bytes() == exported("n").read_bytes(), "weights with --no-graph")

        half = steps // 2
        self.train(entry, f"{stem}-r", half, ["--checkpoint-every", half])
        self.train(entry, f"{stem}-r", steps, [*plain, "--resume", "--export", exported("r")], fresh=False)
        self.verdict(name, "a resumed run gives the same bits", exported("a").read_bytes() == exported("r").read_bytes(), f"weights after {half} + {steps - half} steps")

        if entry["spills"] is None:
            self.skip(f"{name}: spills", "no ptxas where the programs were compiled")
        else:
            text = ", ".join(f"{f} {b} B" for f, b in entry["spills"].items()) or "ptxas found none"
            self.verdict(name, "no registers spill", not entry["spills"], text)

    def verdict(self, name, what, passed, detail):
        passed = bool(passed)
        self.results["checks"].append(dict(program=name, check=what, passed=passed, detail=detail))
        print(f"  {'ok    ' if passed else 'FAILED'} {name:<14}{what:<45}{detail}", flush=True)

    # Speed.

    def times(self, entry, name, steps, extra=()):
        """Median step in ms after the first third, and nvidia-smi's view."""
        before = None
        monitor = Monitor(self.device)
        if not self.emulated:
            try:
                before = Monitor.sample(self.device)[0]
                monitor.start()
            except OSError:
                pass
        out, _ = self.train(entry, name, steps, ["--checkpoint-every", 0, *extra])
        seen = monitor.result() if before is not None else {}
        if seen:
            seen["memory_mib"] -= before
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines() if '"step_ms"' in line]
        kept = [line["step_ms"] for line in lines][len(lines) // 3:]
        return dict(step_ms=statistics.median(kept), fastest_ms=min(kept), slowest_ms=max(kept), steps=len(kept), last_loss=lines[-1]["loss"], **seen)

    def profile(self, entry, name, steps):
        """Microseconds of a call of each kernel, launched one by one."""
        _, text = self.train(entry, name, steps, ["--checkpoint-every", 0, "--profile"])
        pattern = re.compile(r"^\s*(\S+)\s+(\d+)\s+([\d.]+)\s+([\d.]+) %\s+([\d.]+)\s")
        rows = filter(None, (pattern.match(line) for line in text.splitlines()))
        return {row[1]: dict(calls=int(row[2]), us=float(row[5])) for row in rows}

    def plan_for(self, plans, gpu):
        """The plan of the product that the GPU's name has most words of."""
        words = lambda text: set(re.findall(r"[A-Za-z]*\d+\w*|SXM|PCIe", text))
        return max(plans.values(), key=lambda plan: len(words(plan["device"]["product"]) & words(gpu)))

    def gpt2(self, gpu, memory):
        # A tenth of the memory stays free: the driver and the library take some of it.
        fitting = [e for e in self.manifest["gpt2"] if e["peak_bytes"] < 0.9 * memory]
        if not fitting:
            raise Skipped(f"no prepared batch fits {memory / 2**30:.0f} GiB; the smallest plans {min(e['peak_bytes'] for e in self.manifest['gpt2']) / 2**30:.1f} GiB")
        entry = max(fitting, key=lambda e: e["batch"])
        plan = self.plan_for(json.loads((self.folder / entry["plans"]).read_text()), gpu)
        step, tokens = plan["step"], plan["step"].get("tokens", plan["step"].get("samples"))
        measured = self.times(entry, "gpt2", 3 if self.toy else 30)
        if not self.emulated and "memory_mib" not in measured:
            self.skip("memory against the plan, clock and power", "there is no nvidia-smi that answers")
        seconds = measured["step_ms"] * 1e-3
        result = dict(batch=entry["batch"], gpu=gpu, planned_for=plan["device"]["product"], measured=measured, tokens_per_second=tokens / seconds,
                      predicted_ms=step["expected_ms"], roofline_ms=step["roofline_ms"], peak_share=step["model_flops"] / seconds / step["peak_flops"],
                      predicted_peak_share=step["expected_peak_share"], planned_bytes=plan["memory"]["peak_bytes"], compile_s=entry["compile_s"])
        print(f"\nGPT-2{' (toy sizes)' if self.toy else ' 124M'}: batch {entry['batch']}, {tokens} tokens a step, bf16, on {gpu}; plan for {plan['device']['product']}")
        row = lambda what, got, expected="", note="": print(f"  {what:<44}{got:>14}{expected:>14}   {note}")
        row("", "measured", "predicted")
        row("step, ms", f"{measured['step_ms']:.2f}", f"{step['expected_ms']:.2f}", f"roofline {step['roofline_ms']:.2f}; {measured['fastest_ms']:.2f} to {measured['slowest_ms']:.2f} in {measured['steps']} steps")
        row("tokens a second", f"{tokens / seconds:.0f}", f"{tokens / step['expected_ms'] * 1e3:.0f}")
        row(f"share of the dense {step['peak_type']} peak", f"{100 * result['peak_share']:.1f} %", f"{100 * step['expected_peak_share']:.1f} %", "target on H100 and H200: 45 %")
        if "memory_mib" in measured:
            row("memory, MiB", f"{measured['memory_mib']:.0f}", f"{plan['memory']['peak_bytes'] / 2**20:.0f}", "measured includes the driver's context and the library's code")
            row("clock, MHz; power, W", f"{measured['clock_mhz']:.0f}; {measured['power_w']:.0f}")
        self.results["gpt2"] = result

        kernels = self.profile(entry, "gpt2-profile", 3 if self.toy else 6)
        missing = [k["name"] for k in plan["kernels"] if k["name"] not in kernels]
        if missing:
            self.skip("step against the sum of its parts", f"--profile did not show {', '.join(missing[:3])}")
            return
        products = sum(kernels[k["name"]]["us"] * k["launches"] for k in plan["kernels"] if k["products"])
        moved = sum(k["bytes"] * k["launches"] for k in plan["kernels"] if not k["products"]) / plan["device"]["bandwidth"] * 1e6
        ratio = measured["step_ms"] * 1e3 / (products + moved)
        result.update(products_ms=products / 1e3, bytes_over_bandwidth_ms=moved / 1e3, step_over_sum=ratio,
                      kernels=[dict(name=k["name"], kind=k["kind"], launches=k["launches"], measured_us=kernels[k["name"]]["us"], expected_us=k["expected_us"],
                                    roofline_us=k["roofline_us"]) for k in plan["kernels"]])
        row("library's products alone, ms", f"{products / 1e3:.2f}", f"{sum(c['expected_ms'] for c in step['classes'] if c['class'] == 'library'):.2f}")
        row("other bytes over bandwidth, ms", f"{moved / 1e3:.2f}", "", "computed")
        row("step over that sum", f"{ratio:.2f}", f"{step['expected_ms'] / step['floor_ms']:.2f}", "target: 1.15")
        print(f"\n  {'class':<18}{'measured ms':>13}{'expected ms':>13}{'roofline ms':>13}   each kernel launched alone")
        for c in step["classes"]:
            mine = [k for k in plan["kernels"] if k["class"] == c["class"]]
            ms = sum(kernels[k["name"]]["us"] * k["launches"] for k in mine) / 1e3
            print(f"  {c['class']:<18}{ms:>13.3f}{c['expected_ms']:>13.3f}{c['roofline_ms']:>13.3f}")

    def graph(self):
        entry = self.manifest["seeds"][0]
        program = dict(program=entry["programs"]["bf16"]["program"], data=entry["data"])
        steps = 4 if self.toy else 200
        with_graph = self.times(program, "graph", steps)
        without = self.times(program, "no-graph", steps, ["--no-graph"])
        commands = entry["programs"]["bf16"]["step"]["commands"]
        saved = (without["step_ms"] - with_graph["step_ms"]) * 1e3 / commands
        self.results["graph"] = dict(workload=entry["name"], graph=with_graph, launches=without, commands=commands, saved_us_per_command=saved)
        print(f"\nLaunches: {entry['name']} in bf16, {commands} commands a step\n  {'one graph, ms a step':<44}{with_graph['step_ms']:>14.3f}\n"
              f"  {'single launches, ms a step':<44}{without['step_ms']:>14.3f}\n  {'saved, us a command':<44}{saved:>14.2f}")

    def has_torch(self):
        if self.emulated:
            return "the emulator is no match for it"
        code = "import torch;print(torch.__version__, torch.cuda.is_available())"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        if done.returncode:
            return f"{self.python} has no torch"
        return "" if done.stdout.split()[-1] == "True" else f"torch {done.stdout.split()[0]} sees no GPU"

    def torch(self, entry, compute, compiled):
        sizes = {k: v for k, v in entry["sizes"].items()}
        if entry["family"] == "mlp":
            sizes["outputs"] = sizes.pop("classes")
        command = [self.python, ROOT / "bench/pytorch_reference.py", entry["family"], "--steps", 200, "--type", compute, "--device", f"cuda:{self.device}",
                   *(f"--{k}={v}" for k, v in sizes.items())] + (["--compile"] if compiled else [])
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=max(20.0, self.left()))
        if done.returncode:
            raise Skipped(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed without a word")
        return json.loads(done.stdout.splitlines()[-1])

    def seeds(self):
        lacks_torch = self.has_torch()
        if lacks_torch:
            self.skip("PyTorch", lacks_torch)
        print(f"\n  {'workload':<12}{'':<20}{'step ms':>10}{'ratio':>8}{'predicted':>11}{'memory MiB':>12}{'compile s':>11}")
        for entry in self.manifest["seeds"]:
            base = None
            for compute in workloads.TYPES:
                rows = {}
                mine = entry["programs"][compute]
                if self.left() < 10:
                    self.skip(f"{entry['name']} in {compute}", f"the {self.budget:.0f} seconds were over")
                    continue
                rows[f"descent {compute}"] = dict(self.times(dict(program=mine["program"], data=entry["data"]), f"{entry['name']}-{compute}", 4 if self.toy else 200),
                                                  compile_s=mine["compile_s"], predicted_ms=mine["step"]["expected_ms"])
                for label, compiled, needs in (("PyTorch", False, 15), ("torch.compile", True, 60)):
                    if lacks_torch:
                        break
                    if self.left() < needs:
                        self.skip(f"{label} of {entry['name']} in {compute}", f"less than {needs} of the {self.budget:.0f} seconds were left")
                        continue
                    try:
                        rows[f"{label} {compute}"] = self.torch(entry, compute, compiled)
                    except (Skipped, subprocess.TimeoutExpired) as error:
                        self.skip(f"{label} of {entry['name']} in {compute}", str(error))
                for key, r in rows.items():
                    base = base or r["step_ms"]
                    memory = r.get("memory_mib")
                    print(f"  {entry['name']:<12}{key:<20}{r['step_ms']:>10.3f}{r['step_ms'] / base:>8.2f}"
                          + (f"{r['predicted_ms']:>11.3f}" if "predicted_ms" in r else f"{'':>11}")
                          + (f"{memory:>12.0f}" if memory is not None else f"{'':>12}") + (f"{r['compile_s']:>11.2f}" if "compile_s" in r else ""), flush=True)
                    self.results["seeds"].append(dict(workload=entry["name"], contender=key, **r))

    # All of it.

    def everything(self):
        name, driver, memory = self.gpu()
        self.results.update(gpu=name, driver=driver)
        print(f"{name}{', driver ' + driver if driver else ''}; programs for {self.manifest['target']}")
        if self.emulated:
            print("The emulator shows what is right, not what is fast: its times mean nothing.")
        print("\nAgainst the CPU")
        for entry in self.manifest["checks"]:
            try:
                self.check(entry)
            except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                self.verdict(f"{entry['name']} {entry['compute']}", "runs", False, str(error))
        for what, part, needs in (("GPT-2", lambda: self.gpt2(name, memory), 20), ("graph against launches", self.graph, 15), ("workloads", self.seeds, 10)):
            if self.left() < needs:
                self.skip(what, f"less than {needs} of the {self.budget:.0f} seconds were left")
                continue
            try:
                part()
            except Skipped as why:
                self.skip(what, str(why))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.verdict(what, "runs", False, str(error))
        failed = [c for c in self.results["checks"] if not c["passed"]]
        self.results.update(seconds=time.perf_counter() - self.start, passed=not failed)
        print(f"\n{len(self.results['checks']) - len(failed)} of {len(self.results['checks'])} checks passed, {len(self.results['skipped'])} parts skipped, "
              f"{self.results['seconds']:.0f} s")
        return not failed
