//===- KernelTesting.h - Running generated kernels in tests ---------------===//
//
// Kernels run in this process. Scratch and outputs hold NaN beforehand, so that reading what was
// never written shows; every buffer has a margin on both sides whose bits must survive.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_TEST_PASSES_CODEGEN_KERNELTESTING_H
#define DESCENT_TEST_PASSES_CODEGEN_KERNELTESTING_H

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace descent::testing {

inline mlir::MLIRContext &context() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    auto *result = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    result->loadAllAvailableDialects();
    return result;
  }();
  return *context;
}

/// AVX2, and the host where that is wider.
inline std::vector<CpuTarget> targets() {
  std::vector<CpuTarget> list = {llvm::cantFail(CpuTarget::named("haswell"))};
  CpuTarget host = llvm::cantFail(CpuTarget::host());
  if (host.vectorBits > list[0].vectorBits)
    list.push_back(host);
  return list;
}

/// Floats between two margins.
class Buffer {
public:
  static constexpr size_t margin = 64;
  static constexpr float canary = -12345.0f;

  /// NaN everywhere.
  explicit Buffer(size_t size) : size(size), storage(size + 2 * margin, canary) {
    std::fill_n(data(), size, std::numeric_limits<float>::quiet_NaN());
  }
  /// Small random values.
  Buffer(size_t size, unsigned seed) : Buffer(size) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t i = 0; i < size; ++i)
      data()[i] = uniform(engine);
  }
  float *data() { return storage.data() + margin; }
  const float *data() const { return storage.data() + margin; }
  float &operator[](size_t i) { return data()[i]; }
  float operator[](size_t i) const { return data()[i]; }
  bool marginsIntact() const {
    for (size_t i = 0; i < margin; ++i)
      if (storage[i] != canary || storage[margin + size + i] != canary)
        return false;
    return true;
  }

  size_t size;

private:
  std::vector<float> storage;
};

/// Runs tasks [0, tasks) in calls of at most `grouping` tasks, with fresh NaN scratch for each
/// call.
inline void runKernel(descent_kernel_function kernel, std::vector<Buffer *> buffers, int64_t tasks,
                      int64_t scratchBytes, int64_t grouping) {
  std::vector<void *> pointers;
  for (Buffer *buffer : buffers)
    pointers.push_back(buffer->data());
  size_t floats = scratchBytes / 4 + 32;
  auto *storage = static_cast<float *>(std::aligned_alloc(64, (floats * 4 + 63) / 64 * 64));
  for (int64_t first = 0; first < tasks; first += grouping) {
    for (size_t i = 0; i < floats; ++i)
      storage[i] =
          i * 4 >= size_t(scratchBytes) ? Buffer::canary : std::numeric_limits<float>::quiet_NaN();
    kernel(pointers.data(), first, std::min(first + grouping, tasks), storage);
    for (size_t i = (scratchBytes + 3) / 4; i < floats; ++i)
      ASSERT_EQ(storage[i], Buffer::canary) << "scratch is written beyond its size";
  }
  std::free(storage);
  for (size_t i = 0; i < buffers.size(); ++i)
    ASSERT_TRUE(buffers[i]->marginsIntact()) << "buffer " << i << " is written outside its bounds";
}

/// Bound of the rounding error of a sum of `depth` products of magnitude at most one, in f32: half
/// a unit in the last place per step, of partial sums that random signs keep well below `depth`.
inline double sumTolerance(int64_t depth) {
  return double(depth + 16) * std::numeric_limits<float>::epsilon();
}

} // namespace descent::testing

#endif // DESCENT_TEST_PASSES_CODEGEN_KERNELTESTING_H
