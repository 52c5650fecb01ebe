//===- GradientRangeTest.cpp - What a format loses of gradients -----------===//

#include "compiler/Reference/GradientRange.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace descent;
using reference::GradientRange;

namespace {

const nn::FloatFormat half{10, -14, 65504.0, true};

TEST(GradientRange, CountsWhatEachScaleLoses) {
  GradientRange range(half, {1.0, 1024.0, 0x1p40});
  range.add({0.0, 1e-9, -1e-9, 1e-6, 1e-3, 1.0});
  EXPECT_EQ(range.zeros(), 1);
  EXPECT_EQ(range.elements(), 5);
  EXPECT_EQ(range.largest(), 1.0);
  const auto &counts = range.counts();
  EXPECT_EQ(counts[0].lost, 2);
  EXPECT_EQ(counts[0].subnormal, 1);
  EXPECT_EQ(counts[0].overflowing, 0);
  EXPECT_EQ(counts[1].lost, 0);
  EXPECT_EQ(counts[1].subnormal, 2);
  EXPECT_EQ(counts[2].overflowing, 3); // 1e-6 times 2^40 is a million
  EXPECT_DOUBLE_EQ(range.share(counts[0].lost), 0.4);
}

// Half the least subnormal rounds to zero, what is above it does not; 65519 rounds to the largest
// number, 65520 to infinity.
TEST(GradientRange, RoundsAtTheEdges) {
  GradientRange range(half, {1.0});
  range.add({0x1p-25, std::nextafter(0x1p-25, 1.0), 65519.0, 65520.0});
  EXPECT_EQ(range.counts()[0].lost, 1);
  EXPECT_EQ(range.counts()[0].subnormal, 1);
  EXPECT_EQ(range.counts()[0].overflowing, 1);
}

TEST(GradientRange, DividesByTheScaleOfTheProgram) {
  GradientRange range(half, {1.0});
  range.add({65536.0 * 0x1p-20, 65536.0 * 0x1.8p-20}, 65536.0);
  EXPECT_EQ(range.exponents(), (std::map<int, int64_t>{{-20, 2}}));
}

TEST(GradientRange, RecommendsAPowerOfTwoWithHeadroom) {
  GradientRange range(half, {1.0});
  EXPECT_EQ(range.recommendedScale(), 1.0);
  range.add({0x1p-10});
  // 2^-10 times 2^21 is 2^11, and 2^4 more is below 65504.
  EXPECT_EQ(range.recommendedScale(), 0x1p21);
  EXPECT_LE(range.largest() * range.recommendedScale() * 16.0, 65504.0);
  EXPECT_GT(range.largest() * range.recommendedScale() * 32.0, 65504.0);
  range.add({1e6});
  EXPECT_EQ(range.recommendedScale(), 1.0);
}

TEST(GradientRange, InfiniteAndNotANumberDoNotCount) {
  GradientRange range(half, {1.0});
  range.add({INFINITY, NAN, 1.0});
  EXPECT_EQ(range.elements(), 1);
}

} // namespace
