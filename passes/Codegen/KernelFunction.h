//===- KernelFunction.h - The contract of kernel functions ----------------===//
//
// What every generator produces and `lower-kernel-functions` consumes: see "Kernels" in
// docs/architecture.md.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_KERNELFUNCTION_H
#define DESCENT_PASSES_CODEGEN_KERNELFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class OpPassManager;
}

namespace descent {

/// i64: how many tasks the kernel has; marks a func.func (later llvm.func) as a kernel function.
inline constexpr llvm::StringLiteral tasksAttrName = "descent.tasks";
/// i64: bytes of scratch that each thread lends to the kernel.
inline constexpr llvm::StringLiteral scratchAttrName = "descent.scratch";

/// A public kernel function with an empty entry block at the end of `module`: arguments are
/// `buffers` (memrefs of static shape), then first task, last task and scratch. The caller fills
/// the block and ends it with func.return.
mlir::func::FuncOp createKernelFunction(mlir::ModuleOp module, mlir::Location loc,
                                        llvm::StringRef name, mlir::TypeRange buffers,
                                        int64_t tasks, int64_t scratchBytes);

/// Appends what lowers kernel functions to the LLVM dialect with the ABI's signature. `expandBf16`:
/// the CPU has no conversion to bf16.
void buildLowerKernelFunctions(mlir::OpPassManager &pm, bool expandBf16 = true);

/// Registers the above as the pipeline `lower-kernel-functions`.
void registerKernelPipelines();

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_KERNELFUNCTION_H
