//===- LoopKernels.h - Kernel functions from functions on tensors ---------===//
//
// The generators behind KernelEmitter.h that take the kernel already in linalg form: a func.func on
// static tensors. The pass `emit-loop-kernels` exposes them to tests.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_LOOPKERNELS_H
#define DESCENT_PASSES_CODEGEN_LOOPKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Codegen/CpuTarget.h"

namespace descent {

mlir::FailureOr<mlir::func::FuncOp> emitRows(mlir::func::FuncOp tensors, mlir::ModuleOp target,
                                             const CpuTarget &cpu);
mlir::FailureOr<mlir::func::FuncOp> emitColumns(mlir::func::FuncOp tensors, mlir::ModuleOp target,
                                                const CpuTarget &cpu);

/// reusableOperands for a rows kernel in linalg form; empty where the form is refused (emitRows
/// reports why).
llvm::SmallVector<std::pair<unsigned, unsigned>> reusableRowOperands(mlir::func::FuncOp tensors);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_LOOPKERNELS_H
