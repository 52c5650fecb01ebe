//===- CudaTarget.cpp - The chips that are known --------------------------===//
//
// Rates: NVIDIA's data sheets of A100 SXM4 80GB, GeForce RTX 3090, L40S, H100 SXM5 80GB and B200,
// dense.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/CudaTarget.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace descent {

static std::vector<CudaTarget> chips() {
  std::vector<CudaTarget> all(5);
  auto set = [&](size_t index, int capability, const char *ptx) -> CudaTarget & {
    CudaTarget &chip = all[index];
    chip.capability = capability;
    chip.chip = "sm_" + utostr(capability);
    chip.ptxFeatures = ptx;
    return chip;
  };
  CudaTarget &ampere = set(0, 80, "+ptx70");
  ampere.sharedPerMultiprocessor = 167936;
  ampere.sharedPerBlock = 166912;
  ampere.product = "A100 SXM4 80GB";
  ampere.multiprocessors = 108;
  ampere.memoryBandwidth = 2.039e12;
  ampere.l2Bytes = 40 << 20;
  ampere.f32Flops = 19.5e12;
  ampere.tf32Flops = 156e12;
  ampere.halfFlops = 312e12;

  CudaTarget &desktop = set(1, 86, "+ptx71");
  desktop.threadsPerMultiprocessor = 1536;
  desktop.blocksPerMultiprocessor = 16;
  desktop.sharedPerMultiprocessor = 102400;
  desktop.sharedPerBlock = 101376;
  desktop.product = "GeForce RTX 3090";
  desktop.multiprocessors = 82;
  desktop.memoryBandwidth = 0.936e12;
  desktop.l2Bytes = 6 << 20;
  desktop.f32Flops = 35.6e12;
  desktop.tf32Flops = 35.6e12;
  desktop.halfFlops = 71e12;

  CudaTarget &ada = set(2, 89, "+ptx78");
  ada.threadsPerMultiprocessor = 1536;
  ada.blocksPerMultiprocessor = 24;
  ada.sharedPerMultiprocessor = 102400;
  ada.sharedPerBlock = 101376;
  ada.product = "L40S";
  ada.multiprocessors = 142;
  ada.memoryBandwidth = 0.864e12;
  ada.l2Bytes = 96 << 20;
  ada.f32Flops = 91.6e12;
  ada.tf32Flops = 183e12;
  ada.halfFlops = 362e12;
  ada.f8Flops = 733e12;

  CudaTarget &hopper = set(3, 90, "+ptx80");
  hopper.sharedPerMultiprocessor = 233472;
  hopper.sharedPerBlock = 232448;
  hopper.product = "H100 SXM5 80GB";
  hopper.multiprocessors = 132;
  hopper.memoryBandwidth = 3.35e12;
  hopper.l2Bytes = 50 << 20;
  hopper.f32Flops = 66.9e12;
  hopper.tf32Flops = 494.7e12;
  hopper.halfFlops = 989.4e12;
  hopper.f8Flops = 1978.9e12;

  CudaTarget &blackwell = set(4, 100, "+ptx86");
  blackwell.sharedPerMultiprocessor = 233472;
  blackwell.sharedPerBlock = 232448;
  blackwell.product = "B200";
  blackwell.multiprocessors = 148;
  blackwell.memoryBandwidth = 8e12;
  blackwell.l2Bytes = 126 << 20;
  blackwell.f32Flops = 80e12;
  blackwell.tf32Flops = 1125e12;
  blackwell.halfFlops = 2250e12;
  blackwell.f8Flops = 4500e12;
  return all;
}

Expected<CudaTarget> CudaTarget::named(StringRef target) {
  std::vector<CudaTarget> all = chips();
  if (target == "cuda-emulated") {
    all[0].emulated = true;
    return all[0];
  }
  std::string known;
  for (CudaTarget &chip : all) {
    if (target == "cuda:" + chip.chip)
      return chip;
    known += "cuda:" + chip.chip + ", ";
  }
  return createStringError("unknown target '" + target + "'; known are cpu, " + known +
                           "cuda-emulated");
}

} // namespace descent
