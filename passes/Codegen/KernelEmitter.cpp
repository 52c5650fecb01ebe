//===- KernelEmitter.cpp - Kernels of nn ops to kernel functions ----------===//

#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Codegen/LoopKernels.h"
#include "passes/Codegen/TensorForm.h"

using namespace mlir;

namespace descent {

FailureOr<func::FuncOp> emitRowsKernel(exec::KernelOp kernel, ModuleOp target,
                                       const CpuTarget &cpu) {
  auto tensors = lowerToTensorForm(kernel);
  if (failed(tensors))
    return failure();
  return emitRows(**tensors, target, cpu);
}

FailureOr<func::FuncOp> emitColumnsKernel(exec::KernelOp kernel, ModuleOp target,
                                          const CpuTarget &cpu) {
  auto tensors = lowerToTensorForm(kernel);
  if (failed(tensors))
    return failure();
  return emitColumns(**tensors, target, cpu);
}

SmallVector<std::pair<unsigned, unsigned>> reusableOperands(exec::KernelOp kernel) {
  if (kernel.getKind() == "gemm" || kernel.getKind() == "conv")
    return reusableContractionOperands(kernel);
  // Other kinds read elements that other tasks may write.
  if (kernel.getKind() != "rows")
    return {};
  auto tensors = lowerToTensorForm(kernel);
  if (failed(tensors))
    return {};
  return reusableRowOperands(**tensors);
}

} // namespace descent
