//===- Run.h - What descent-run can do with a function --------------------===//

#ifndef DESCENT_TOOLS_DESCENT_RUN_RUN_H
#define DESCENT_TOOLS_DESCENT_RUN_RUN_H

#include <cstddef>

#include "compiler/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace descent {

/// Prints every result, and with `gradients` the gradients of the float inputs for result gradients
/// of one.
mlir::LogicalResult printResults(mlir::func::FuncOp function, bool gradients,
                                 reference::Arithmetic arithmetic);

/// Compares the gradients that DifferentiableOp builds, and the same program after decompose-ops,
/// with central differences in double.
mlir::LogicalResult checkGradients(mlir::func::FuncOp function, double tolerance);

/// Compares forward and gradient, decomposed and compiled through linalg, with the interpreter.
/// `tolerance` is relative to max(1, |expected|).
mlir::LogicalResult checkLinalg(mlir::func::FuncOp function, bool gradients, double tolerance,
                                reference::Arithmetic arithmetic);

/// Compares forward and gradient, through the Fusion phase and the kernel generators as programs
/// are compiled, with the interpreter; then checks that neither the grouping and order of tasks nor
/// results in place of operands change a bit. `target` is "cpu", for code of the CPU `cpu`, or one
/// of CUDA's, whose code the emulator runs.
mlir::LogicalResult checkCompiled(mlir::func::FuncOp function, double tolerance,
                                  reference::Arithmetic arithmetic, llvm::StringRef target,
                                  llvm::StringRef cpu);

} // namespace descent

#endif // DESCENT_TOOLS_DESCENT_RUN_RUN_H
