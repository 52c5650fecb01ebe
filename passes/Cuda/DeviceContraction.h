//===- DeviceContraction.h - Kernels of products for a device -------------===//
//
// Matrix products and the three products of a convolution, each with its epilogue, in device code
// of our own. Where the library of matrix products (cuBLASLt) serves, its command stands instead,
// and this is what runs where the library has no algorithm.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICECONTRACTION_H
#define DESCENT_PASSES_CUDA_DEVICECONTRACTION_H

#include "passes/Cuda/CudaTarget.h"
#include "passes/Cuda/DeviceKernel.h"

namespace descent {

/// The device form of a kernel of kind "gemm" or "conv".
mlir::FailureOr<exec::DeviceKernelOp>
emitDeviceContraction(exec::KernelOp kernel, mlir::ModuleOp target, const CudaTarget &cuda);

/// The same into a device form that is being built: functions go to its module, launches to where
/// device.commands() stands. Fails after emitting an error at the kernel.
mlir::LogicalResult appendDeviceContraction(exec::KernelOp kernel, DeviceKernel &device,
                                            const CudaTarget &cuda);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICECONTRACTION_H
