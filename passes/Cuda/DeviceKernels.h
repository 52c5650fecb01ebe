//===- DeviceKernels.h - Kernels of nn ops to device code -----------------===//
//
// One generator per kind of kernel (docs/architecture.md, "Kernels"). Each appends what
// DeviceKernel.h describes to `target`, and emits an error at the kernel where it cannot.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEKERNELS_H
#define DESCENT_PASSES_CUDA_DEVICEKERNELS_H

#include "dialects/Exec/Exec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Cuda/CudaTarget.h"

namespace mlir {
class OpPassManager;
}

namespace descent {

class DeviceKernel;

/// Elementwise ops and reductions over the last axis on one [R..., C] domain.
mlir::FailureOr<exec::DeviceKernelOp> emitDeviceRows(exec::KernelOp kernel, mlir::ModuleOp target,
                                                     const CudaTarget &cuda);

/// A module of device functions and commands for every exec.kernel in `program`, in their order.
/// Kernels are generated in parallel where the context allows threads; the result does not depend
/// on it.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> generateDeviceKernels(mlir::ModuleOp program,
                                                                         const CudaTarget &cuda);

/// Reductions over leading axes, [R..., C] -> [C] or [O, R, I] -> [O, I], with elementwise
/// producers.
mlir::FailureOr<exec::DeviceKernelOp>
emitDeviceColumns(exec::KernelOp kernel, mlir::ModuleOp target, const CudaTarget &cuda);
/// The same into a device form that is being built, as appendDeviceContraction does.
mlir::LogicalResult appendDeviceColumns(exec::KernelOp kernel, DeviceKernel &device);
/// Ops that move elements: transpose, slice, pad, concat, split, broadcast, reshape.
mlir::FailureOr<exec::DeviceKernelOp> emitDeviceCopy(exec::KernelOp kernel, mlir::ModuleOp target,
                                                     const CudaTarget &cuda);
/// nn.embedding.
mlir::FailureOr<exec::DeviceKernelOp> emitDeviceGather(exec::KernelOp kernel, mlir::ModuleOp target,
                                                       const CudaTarget &cuda);
/// nn.embedding_grad.
mlir::FailureOr<exec::DeviceKernelOp>
emitDeviceScatter(exec::KernelOp kernel, mlir::ModuleOp target, const CudaTarget &cuda);
/// nn.max_pool2d and nn.max_pool2d_grad.
mlir::FailureOr<exec::DeviceKernelOp> emitDevicePool(exec::KernelOp kernel, mlir::ModuleOp target,
                                                     const CudaTarget &cuda);
/// Attention of whole heads; bf16 and f16 of at most 128 columns on the tensor cores.
mlir::FailureOr<exec::DeviceKernelOp>
emitDeviceAttention(exec::KernelOp kernel, mlir::ModuleOp target, const CudaTarget &cuda);
/// Its gradient.
mlir::FailureOr<exec::DeviceKernelOp>
emitDeviceAttentionGrad(exec::KernelOp kernel, mlir::ModuleOp target, const CudaTarget &cuda);

/// Appends what lowers the gpu.modules of a module to the LLVM dialect.
void buildLowerDeviceModules(mlir::OpPassManager &pm);

/// Registers the above as the pipeline `lower-device-kernels`.
void registerDevicePipelines();

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEKERNELS_H
