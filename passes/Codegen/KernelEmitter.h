//===- KernelEmitter.h - Kernels of nn ops to kernel functions ------------===//
//
// One function per kind of kernel; docs/architecture.md, "Kernels", says what each kind holds and
// what a kernel function promises. Each appends the kernel function, named as the kernel, to
// `target` and emits an error at the kernel where it cannot. Buffers of i1 tensors are memrefs of
// i8 (one byte an element, 0 or 1), as the ABI stores them, and those of bf16 and f16 are memrefs
// of i16.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_KERNELEMITTER_H
#define DESCENT_PASSES_CODEGEN_KERNELEMITTER_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Codegen/CpuTarget.h"

namespace descent {

/// Elementwise ops and reductions over the last axis on one [R..., C] domain.
mlir::FailureOr<mlir::func::FuncOp> emitRowsKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                   const CpuTarget &cpu);
/// Reductions over leading axes, [R..., C] -> [C] or [O, R, I] -> [O, I], with elementwise
/// producers.
mlir::FailureOr<mlir::func::FuncOp> emitColumnsKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                      const CpuTarget &cpu);
/// Ops that move elements: transpose, slice, pad, concat, split, broadcast, reshape.
mlir::FailureOr<mlir::func::FuncOp> emitCopyKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                   const CpuTarget &cpu);
/// nn.embedding.
mlir::FailureOr<mlir::func::FuncOp> emitGatherKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                     const CpuTarget &cpu);
/// nn.embedding_grad.
mlir::FailureOr<mlir::func::FuncOp> emitScatterKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                      const CpuTarget &cpu);
/// nn.max_pool2d and nn.max_pool2d_grad.
mlir::FailureOr<mlir::func::FuncOp> emitPoolKernel(exec::KernelOp kernel, mlir::ModuleOp target,
                                                   const CpuTarget &cpu);

/// (result, input) pairs of a kernel where the result may be written over the input: same type, and
/// every element is read before it is written, whatever the grouping of tasks. A result may occur
/// with several inputs and an input with several results; the planner takes at most one pair of
/// each. Empty for kinds whose tasks read elements that other tasks write.
llvm::SmallVector<std::pair<unsigned, unsigned>> reusableOperands(exec::KernelOp kernel);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_KERNELEMITTER_H
