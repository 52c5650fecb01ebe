//===- DeviceProducts.cpp - GPUs that share a chip ------------------------===//
//
// CudaTarget knows the rates of one product of each chip; these are others, from NVIDIA's data
// sheets, dense. They matter to predictions alone.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/DevicePlan.h"

using namespace llvm;

namespace descent {

namespace {
struct Product {
  int capability;
  const char *name;
  int multiprocessors;
  double memoryBandwidth;
  double rateShare; ///< of the rates of the chip's first product
};
} // namespace

static constexpr Product products[] = {
    {80, "A100 SXM4 40GB", 108, 1.555e12, 1.0},
    {80, "A100 PCIe 80GB", 108, 1.935e12, 1.0},
    {90, "H200 SXM 141GB", 132, 4.8e12, 1.0},
    {90, "H100 PCIe 80GB", 114, 2.0e12, 0.765},
};

Error chooseProduct(CudaTarget &cuda, StringRef name) {
  std::string known = cuda.product;
  if (StringRef(cuda.product).contains_insensitive(name))
    return Error::success();
  for (const Product &other : products) {
    if (other.capability != cuda.capability)
      continue;
    if (!StringRef(other.name).contains_insensitive(name)) {
      known += std::string(", ") + other.name;
      continue;
    }
    cuda.product = other.name;
    cuda.multiprocessors = other.multiprocessors;
    cuda.memoryBandwidth = other.memoryBandwidth;
    for (double *rate : {&cuda.f32Flops, &cuda.tf32Flops, &cuda.halfFlops, &cuda.f8Flops})
      *rate *= other.rateShare;
    return Error::success();
  }
  return createStringError("no known product with " + cuda.chip + " has '" + name +
                           "' in its name; known are " + known);
}

} // namespace descent
