//===- DeviceTime.cpp - How long a step should take -----------------------===//
//
// Two times for each kernel. The roofline is what no program can beat that does this arithmetic and
// moves these bytes once: the longer of flops over the chip's rate for the type and bytes over its
// bandwidth. The expected time divides each by the share of it that such kernels are assumed to
// reach. The shares are assumptions, written down before anything was measured, so that a
// measurement can prove them wrong; docs/performance.md says where each comes from.
//
// What neither knows: operands that are still in the second-level cache, work of neighbouring
// kernels that overlaps, clocks that fall under load.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/DevicePlan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>

using namespace llvm;

namespace descent {

double rateOf(const CudaTarget &cuda, StringRef type) {
  double rate = 0.0;
  if (type == "tf32")
    rate = cuda.tf32Flops;
  else if (type == "bf16" || type == "f16")
    rate = cuda.halfFlops;
  else if (type == "f8")
    rate = cuda.f8Flops ? cuda.f8Flops : cuda.halfFlops;
  return rate > 0.0 ? rate : cuda.f32Flops;
}

/// The share of the tensor cores' rate that mma.sync can reach: from compute capability 9.0 on the
/// full rate takes instructions that are not generated here.
static double warpLevelShare(const CudaTarget &cuda) {
  if (cuda.capability >= 100)
    return 0.3;
  return cuda.capability >= 90 ? 0.62 : 1.0;
}

DevicePlan::Efficiency assumedEfficiency(const CudaTarget &cuda, StringRef timeClass,
                                         StringRef rate, bool isAligned) {
  bool usesTensorCores = rate != "f32";
  if (timeClass == "library")
    // Rows that are not aligned to 16 bytes keep the library from its best kernels.
    return {!usesTensorCores ? 0.85 : isAligned ? 0.70 : 0.35, 0.85};
  double tensor = usesTensorCores ? warpLevelShare(cuda) : 1.0;
  if (timeClass == "attention")
    return {usesTensorCores ? 0.60 * tensor : 0.30, 0.80};
  if (timeClass == "attention_grad") // seven products are computed where five are counted
    return {usesTensorCores ? 0.39 * tensor : 0.20, 0.80};
  if (timeClass == "gemm" || timeClass == "conv")
    return {usesTensorCores ? 0.60 * tensor : 0.50, 0.80};
  double bandwidth = StringSwitch<double>(timeClass)
                         .Cases({"rows", "copy"}, 0.85)
                         .Case("columns", 0.80)
                         .Cases({"gather", "pool"}, 0.70)
                         .Case("scatter", 0.50)
                         .Default(0.80);
  // Arithmetic of these kernels is no chain of multiply-adds: half the instructions at best.
  return {0.40, bandwidth};
}

static double longer(double flops, double rate, double bytes, double bandwidth) {
  return std::max(flops / rate, bytes / bandwidth);
}

/// Whether the kernel's flops are those of the model, rather than what moving data takes.
static bool isProduct(const DevicePlan::Kernel &kernel) {
  return StringSwitch<bool>(kernel.kind)
      .Cases({"gemm", "conv", "attention", "attention_grad"}, true)
      .Default(false);
}

static void predict(DevicePlan::Kernel &kernel, const CudaTarget &cuda) {
  double rate = rateOf(cuda, kernel.rate), bandwidth = cuda.memoryBandwidth;
  double flops = kernel.flops, bytes = kernel.bytes;
  for (DevicePlan::Product &product : kernel.products) {
    std::string type = kernel.rate;
    DevicePlan::Efficiency share = assumedEfficiency(cuda, "library", type, product.isAligned);
    product.roofline = longer(product.flops, rate, product.bytes, bandwidth);
    product.expected =
        longer(product.flops, rate * share.rate, product.bytes, bandwidth * share.bandwidth);
    kernel.roofline += product.roofline;
    kernel.expected += product.expected;
    // What remains of the kernel are the commands beside its products.
    flops = std::max(0.0, flops - product.flops);
    bytes = std::max(0.0, bytes - product.bytes);
  }
  bool launches = kernel.fills || any_of(kernel.functions,
                                         [](const auto &function) { return !function.isFallback; });
  kernel.isMemoryBound = kernel.bytes / bandwidth >= kernel.flops / rate;
  if (!launches)
    return;
  if (!kernel.products.empty()) { // only rounding and the like is left
    rate = cuda.f32Flops;
    flops = 0.0;
  }
  DevicePlan::Efficiency share = assumedEfficiency(
      cuda, kernel.products.empty() ? kernel.timeClass : "rows", kernel.rate, true);
  kernel.roofline += longer(flops, rate, bytes, bandwidth);
  kernel.expected += longer(flops, rate * share.rate, bytes, bandwidth * share.bandwidth);
}

void predictTimes(DevicePlan &plan) {
  const CudaTarget &cuda = plan.cuda;
  MapVector<StringRef, DevicePlan::ClassTime> classes;
  DevicePlan::Step &step = plan.step;
  for (DevicePlan::Kernel &kernel : plan.kernels) {
    predict(kernel, cuda);
    auto times = static_cast<double>(kernel.launches);
    DevicePlan::ClassTime &sum = classes[kernel.timeClass];
    sum.launches += kernel.launches;
    sum.commands += kernel.launches * kernel.commands;
    sum.flops += times * kernel.flops;
    sum.bytes += times * kernel.bytes;
    sum.roofline += times * kernel.roofline;
    sum.expected += times * kernel.expected;
    sum.assumed = assumedEfficiency(cuda, kernel.timeClass, kernel.rate, true);
    step.commands += kernel.launches * kernel.commands;
    step.roofline += times * kernel.roofline;
    step.expected += times * kernel.expected;
    double products = 0.0, rest = kernel.bytes;
    for (const DevicePlan::Product &product : kernel.products) {
      products += product.expected;
      rest = std::max(0.0, rest - product.bytes);
    }
    step.floor += times * (products + rest / cuda.memoryBandwidth);
    if (isProduct(kernel)) {
      double flops = 0.0; // without those of epilogues, where they can be told apart
      for (const DevicePlan::Product &product : kernel.products)
        flops += product.flops;
      step.modelFlops += times * (kernel.products.empty() ? kernel.flops : flops);
      if (double rate = rateOf(cuda, kernel.rate); rate > step.peakFlops) {
        step.peakFlops = rate;
        step.peakType = kernel.rate;
      }
    }
  }
  step.gaps = static_cast<double>(step.commands) * commandGap;
  step.roofline += step.gaps;
  step.expected += step.gaps;
  for (auto &[name, sum] : classes)
    plan.classes.emplace_back(name.str(), sum);
  stable_sort(plan.classes,
              [](const auto &a, const auto &b) { return a.second.expected > b.second.expected; });
}

} // namespace descent
