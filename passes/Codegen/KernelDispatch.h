//===- KernelDispatch.h - Kernels to kernel functions ---------------------===//
//
// Chooses the generator of each exec.kernel by its kind. The pass `generate-kernels` and the
// compiler's driver both come through here.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_KERNELDISPATCH_H
#define DESCENT_PASSES_CODEGEN_KERNELDISPATCH_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Codegen/CpuTarget.h"

namespace descent {

/// Adds the kernel function of one kernel to `target`. Fails after emitting an error at the kernel.
mlir::FailureOr<mlir::func::FuncOp> generateKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                   const CpuTarget &cpu);

/// A module of the kernel functions of every exec.kernel in `program`, in their order, each named
/// as its kernel. Kernels are generated in parallel where the context allows threads; the result
/// does not depend on it.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> generateKernels(mlir::ModuleOp program,
                                                                   const CpuTarget &cpu);

/// The kernel function of a kernel of kind "gemm" or "conv": the product's operands are the first
/// two inputs, what follows it in the body becomes its epilogue.
mlir::FailureOr<mlir::func::FuncOp>
emitContractionKernel(exec::KernelOp kernel, mlir::ModuleOp target, const CpuTarget &cpu);

/// reusableOperands for such a kernel: inputs of the epilogue that are read only at the element
/// that is being written.
llvm::SmallVector<std::pair<unsigned, unsigned>> reusableContractionOperands(exec::KernelOp kernel);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_KERNELDISPATCH_H
