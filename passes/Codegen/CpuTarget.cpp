//===- CpuTarget.cpp - What the kernel generators know of a CPU -----------===//
//
// Features come from LLVM's own tables, so every CPU name that LLVM's code generator takes is
// accepted.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/CpuTarget.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <algorithm>
#include <unistd.h>

using namespace llvm;

namespace descent {

/// Vector width and extensions from a predicate over feature names.
template <typename Has> static Error describe(CpuTarget &target, Has has) {
  if (!has("avx2") || !has("fma"))
    return createStringError("CPU '" + target.name +
                             "' has no AVX2 with FMA, which generated kernels need; name a newer "
                             "one, such as 'haswell'");
  bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  target.vectorBits = wide ? 512 : 256;
  target.bf16Conversion = wide && has("avx512bf16");
  if (wide)
    target.l2Bytes = 1 << 20;
  return Error::success();
}

std::vector<std::string> CpuTarget::requiredFeatures() const {
  std::vector<std::string> list = {"avx2", "fma", "bmi", "bmi2", "f16c"};
  if (vectorBits == 512)
    list.insert(list.end(), {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  if (bf16Conversion)
    list.push_back("avx512bf16");
  return list;
}

Expected<CpuTarget> CpuTarget::host() {
  CpuTarget target;
  target.name = sys::getHostCPUName().str();
  StringMap<bool> features = sys::getHostCPUFeatures();
  // Sorted, so that the same machine always gives the same text.
  std::vector<std::string> list;
  for (const auto &feature : features)
    list.push_back((Twine(feature.second ? "+" : "-") + feature.first()).str());
  std::sort(list.begin(), list.end());
  target.features = join(list, ",");
  if (Error error = describe(target, [&](StringRef name) { return features.lookup(name); }))
    return error;
  if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
    target.l1Bytes = bytes;
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    target.l2Bytes = bytes;
  return target;
}

Expected<CpuTarget> CpuTarget::named(StringRef name) {
  if (name == "native")
    return host();
  if (X86::parseArchX86(name, /*Only64Bit=*/true) == X86::CK_None) {
    SmallVector<StringRef> known;
    X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
    return createStringError("unknown CPU '" + name + "'; known are native, " + join(known, ", "));
  }
  CpuTarget target;
  target.name = name.str();
  SmallVector<StringRef> features;
  X86::getFeaturesForCPU(name, features);
  if (Error error =
          describe(target, [&](StringRef wanted) { return is_contained(features, wanted); }))
    return error;
  return target;
}

} // namespace descent
