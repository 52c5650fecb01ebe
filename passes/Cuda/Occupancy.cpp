//===- Occupancy.cpp - How many blocks a multiprocessor holds -------------===//
//
// The rules are those of CUDA's occupancy calculator (CUDA C++ best practices guide, "Execution
// configuration optimizations", and the compute capabilities' table of the programming guide):
//
// - Registers are allocated to warps, in units of 256. They lie in four partitions, one for each
//   scheduler, and a warp's stand in one of them: what is left of a partition is lost.
// - Shared memory is allocated to blocks in units of 128 bytes, the part that the system reserves
// in
//   each block (1 KiB from compute capability 8.0 on) included.
// - A thread has at most 255 registers, a block at most 1024 threads.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Occupancy.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;

namespace descent {

static constexpr int64_t warpSize = 32, registerUnit = 256, partitions = 4, sharedUnit = 128;
static constexpr int64_t mostThreads = 1024;
static constexpr int mostRegisters = 255;

Occupancy occupancyOf(const CudaTarget &chip, const BlockNeeds &block) {
  int64_t warps = divideCeil(block.threads, warpSize);
  if (block.threads <= 0 || block.threads > mostThreads)
    return {0, 0, 0.0, Occupancy::Limit::Threads};
  if (block.registers > mostRegisters)
    return {0, 0, 0.0, Occupancy::Limit::Registers};
  if (block.shared > chip.sharedPerBlock)
    return {0, 0, 0.0, Occupancy::Limit::Shared};

  int64_t mostWarps = chip.threadsPerMultiprocessor / warpSize;
  struct Bound {
    Occupancy::Limit limit;
    int64_t blocks;
  };
  SmallVector<Bound> bounds{{Occupancy::Limit::Threads, mostWarps / warps},
                            {Occupancy::Limit::Blocks, chip.blocksPerMultiprocessor}};
  if (block.registers > 0) {
    auto ofWarp = static_cast<int64_t>(alignTo(block.registers * warpSize, registerUnit));
    int64_t ofPartition = chip.registersPerMultiprocessor / partitions / ofWarp;
    bounds.push_back({Occupancy::Limit::Registers, ofPartition * partitions / warps});
  }
  auto ofBlock = static_cast<int64_t>(alignTo(block.shared + chip.sharedReserved, sharedUnit));
  bounds.push_back({Occupancy::Limit::Shared, chip.sharedPerMultiprocessor / ofBlock});

  const Bound *least =
      std::min_element(bounds.begin(), bounds.end(),
                       [](const Bound &a, const Bound &b) { return a.blocks < b.blocks; });
  int64_t resident = least->blocks * warps;
  return {static_cast<int>(least->blocks), static_cast<int>(resident),
          static_cast<double>(resident) / static_cast<double>(mostWarps), least->limit};
}

StringRef nameOf(Occupancy::Limit limit) {
  switch (limit) {
  case Occupancy::Limit::None:
    return "";
  case Occupancy::Limit::Threads:
    return "threads";
  case Occupancy::Limit::Blocks:
    return "blocks";
  case Occupancy::Limit::Registers:
    return "registers";
  case Occupancy::Limit::Shared:
    return "shared memory";
  }
  llvm_unreachable("all limits are named");
}

} // namespace descent
