//===- CudaTarget.h - The chip that device code is made for ---------------===//

#ifndef DESCENT_PASSES_CUDA_CUDATARGET_H
#define DESCENT_PASSES_CUDA_CUDATARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace descent {

/// Limits are those of the compute capability (CUDA C++ programming guide, "Technical
/// specifications per compute capability"); rates are those of one product that has it, without
/// sparsity, and serve predictions only: code never depends on them, so that it gives the same bits
/// on every chip of its capability.
struct CudaTarget {
  std::string chip;    ///< "sm_90"
  int capability = 90; ///< 90 for 9.0
  std::string
      ptxFeatures;       ///< LLVM's name of the lowest PTX version that has what is used: "+ptx80"
  bool emulated = false; ///< the code runs on the CPU, in the emulator

  int threadsPerMultiprocessor = 2048;
  int blocksPerMultiprocessor = 32;
  int registersPerMultiprocessor = 65536;
  int sharedPerMultiprocessor = 0; ///< bytes
  int sharedPerBlock = 0;          ///< bytes, with opting in
  int sharedReserved = 1024;       ///< bytes of each block that the system takes

  std::string product;        ///< "H100 SXM5 80GB"
  int multiprocessors = 0;    ///< of that product
  double memoryBandwidth = 0; ///< bytes/s
  int64_t l2Bytes = 0;
  double f32Flops = 0;                              ///< flop/s, fused multiply-adds count two
  double tf32Flops = 0, halfFlops = 0, f8Flops = 0; ///< of tensor cores; 0: has none

  /// As --target spells it: "cuda:sm_90" or "cuda-emulated".
  std::string name() const { return emulated ? "cuda-emulated" : "cuda:" + chip; }

  /// Bytes of workspace for the library of matrix products: what NVIDIA recommends for cuBLASLt.
  int64_t libraryWorkspace() const { return capability >= 90 ? 32 << 20 : 4 << 20; }

  /// "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90", "cuda:sm_100", or "cuda-emulated",
  /// which is code for sm_80 that the emulator runs. Fails with the known names.
  static llvm::Expected<CudaTarget> named(llvm::StringRef target);

  /// Whether the target is one of CUDA's rather than a CPU.
  static bool isCuda(llvm::StringRef target) { return target.starts_with("cuda"); }
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_CUDATARGET_H
