//===- OccupancyTest.cpp - Blocks of a multiprocessor, worked out by hand -===//
//
// Each case shows its arithmetic: warps of a block, registers of a warp in units of 256, warps that
// fit one of four partitions of 16384 registers, shared memory in units of 128 bytes with 1024
// reserved.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/Occupancy.h"

#include <gtest/gtest.h>

using namespace descent;
using Limit = Occupancy::Limit;

namespace {

struct Case {
  const char *target;
  BlockNeeds block;
  int blocks, warps;
  double share;
  Limit limit;
};

TEST(Occupancy, ByHand) {
  const Case cases[] = {
      // 8 warps; 64 / 8 = 8 blocks; a warp takes 1024 registers, 16 fit a partition: 64 warps.
      {"cuda:sm_80", {256, 32, 0}, 8, 64, 1.0, Limit::Threads},
      // 4 warps of 8160 -> 8192 registers: 2 a partition, 8 warps, 2 blocks of 16 by threads.
      // Shared: 50176 of 233472 would allow 4.
      {"cuda:sm_90", {128, 255, 49152}, 2, 8, 0.125, Limit::Registers},
      // 3 warps of 1344 -> 1536 registers: 10 a partition, 40 warps, 13 blocks.
      {"cuda:sm_90", {96, 42, 0}, 13, 39, 39.0 / 64, Limit::Registers},
      // 66048 + 1024 = 67072 = 524 units; 233472 / 67072 = 3.
      {"cuda:sm_90", {128, 32, 66048}, 3, 12, 12.0 / 64, Limit::Shared},
      // One warp a block: 32 blocks fill half of the 64 warps.
      {"cuda:sm_90", {32, 16, 0}, 32, 32, 0.5, Limit::Blocks},
      // 48 warps hold one block of 32; registers: 1280 a warp, 12 a partition, 48 warps, 1 block.
      {"cuda:sm_86", {1024, 40, 0}, 1, 32, 32.0 / 48, Limit::Threads},
      // 9216 + 1024 = 10240 = 102400 / 10; one byte more is 10368 after rounding, and 9 blocks.
      {"cuda:sm_86", {64, 16, 9216}, 10, 20, 20.0 / 48, Limit::Shared},
      {"cuda:sm_86", {64, 16, 9217}, 9, 18, 18.0 / 48, Limit::Shared},
      // A block of 33 threads has two warps.
      {"cuda:sm_89", {33, 24, 0}, 24, 48, 1.0, Limit::Threads},
      // Registers unknown: they bound nothing.
      {"cuda:sm_100", {512, 0, 0}, 4, 64, 1.0, Limit::Threads},
  };
  for (const Case &c : cases) {
    llvm::Expected<CudaTarget> chip = CudaTarget::named(c.target);
    ASSERT_TRUE(bool(chip));
    Occupancy o = occupancyOf(*chip, c.block);
    std::string what = std::string(c.target) + ", " + std::to_string(c.block.threads) +
                       " threads, " + std::to_string(c.block.registers) + " registers, " +
                       std::to_string(c.block.shared) + " bytes";
    EXPECT_EQ(o.blocks, c.blocks) << what;
    EXPECT_EQ(o.warps, c.warps) << what;
    EXPECT_DOUBLE_EQ(o.share, c.share) << what;
    EXPECT_EQ(nameOf(o.limit), nameOf(c.limit)) << what;
  }
}

TEST(Occupancy, WhatCannotBeLaunched) {
  llvm::Expected<CudaTarget> chip = CudaTarget::named("cuda:sm_90");
  ASSERT_TRUE(bool(chip));
  EXPECT_EQ(occupancyOf(*chip, {128, 32, 232448}).blocks, 1);
  EXPECT_EQ(occupancyOf(*chip, {128, 32, 232449}).blocks, 0);
  EXPECT_EQ(occupancyOf(*chip, {128, 256, 0}).blocks, 0);
  EXPECT_EQ(occupancyOf(*chip, {1056, 16, 0}).blocks, 0);
  // 128 registers in 1024 threads are 4096 a warp, 4 a partition: 16 warps of the 32 needed.
  EXPECT_EQ(occupancyOf(*chip, {1024, 128, 0}).blocks, 0);
}

} // namespace
