import os
import shutil

import lit.formats

config.name = "Descent"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test", ".ll"]
config.excludes = ["Inputs", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.descent_build, "test")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.descent_build, "bin"), config.llvm_tools, config.environment["PATH"]])
config.environment["OMP_NUM_THREADS"] = "2"
config.substitutions.append(("%examples", os.path.join(config.descent_source, "examples")))
config.substitutions.append(("%source", config.descent_source))

# NVIDIA's assembler, where there is one: tests that require the feature show what it says about generated code.
ptxas = shutil.which("ptxas", path=os.pathsep.join(
    [os.environ.get("PATH", ""), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"), "/usr/local/cuda/bin"]))
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
else:
    lit_config.note("no ptxas (looked in PATH, $CUDA_HOME/bin and /usr/local/cuda/bin): tests that assemble device code are skipped")
