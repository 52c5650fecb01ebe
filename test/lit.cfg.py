import os

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
