//===- LibraryProduct.h - Matrix products by cuBLASLt ---------------------===//

#ifndef DESCENT_PASSES_CUDA_LIBRARYPRODUCT_H
#define DESCENT_PASSES_CUDA_LIBRARYPRODUCT_H

#include "dialects/Exec/Exec.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Cuda/CudaTarget.h"

namespace descent {

/// Why the library cannot compute the kernel; empty if it can.
std::string libraryRefusal(exec::KernelOp kernel, const CudaTarget &cuda);

/// The device form of a kernel of kind "gemm": one product of the library where it has the
/// epilogue, with a generated product to fall back on where its support is not certain; else a
/// generated product.
mlir::FailureOr<exec::DeviceKernelOp> emitDeviceGemm(exec::KernelOp kernel, mlir::ModuleOp target,
                                                     const CudaTarget &cuda);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_LIBRARYPRODUCT_H
