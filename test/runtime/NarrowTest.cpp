//===- NarrowTest.cpp - Narrow element types: rounding, and values that are not finite ------===//
#include "runtime/core/Narrow.h"

#include "descent/abi.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

using namespace descent;

TEST(Narrow, RoundsToNearestEven) {
  EXPECT_EQ(floatToBrain(1.0f), 0x3F80);
  // Half way between 1 and its successor goes to the even one, a little more goes up.
  EXPECT_EQ(floatToBrain(1.0f + 0x1p-8f), 0x3F80);
  EXPECT_EQ(floatToBrain(1.0f + 0x1p-8f + 0x1p-23f), 0x3F81);
  EXPECT_EQ(floatToBrain(1.0f + 3 * 0x1p-8f), 0x3F82);
  EXPECT_EQ(floatToBrain(-1.0f - 3 * 0x1p-8f), 0xBF82);
  EXPECT_EQ(floatToBrain(0x1.FFFFFEp127f), 0x7F80); // Beyond the largest bf16.
  EXPECT_EQ(floatToBrain(-INFINITY), 0xFF80);
  EXPECT_TRUE(std::isnan(brainToFloat(floatToBrain(NAN))));
  // A NaN whose set bits are all in the half that goes.
  EXPECT_TRUE(std::isnan(brainToFloat(floatToBrain(std::bit_cast<float>(0xFF800001u)))));
}

TEST(Narrow, EveryBrainFloatSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float wide = brainToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(wide)) {
      ASSERT_EQ(floatToBrain(wide), bits);
    }
  }
}

// The bit patterns of the types' definitions: IEEE 754 and the OCP's eight-bit formats.
TEST(Narrow, ReadsEveryType) {
  const uint16_t half[] = {0x3C00, 0x7BFF, 0x0001}, brain[] = {0xC049};
  const uint8_t e4m3[] = {0x38, 0x7E, 0x01, 0xFE, 0x7F, 0x08}, e5m2[] = {0x3C, 0x7B, 0x7C, 0x01};
  EXPECT_EQ(floatAt(half, DESCENT_F16, 1), 65504.0f);
  EXPECT_EQ(floatAt(half, DESCENT_F16, 2), 0x1p-24f);
  EXPECT_EQ(floatAt(brain, DESCENT_BF16, 0), -3.140625f);
  EXPECT_EQ(floatAt(e4m3, DESCENT_F8E4M3, 0), 1.0f);
  EXPECT_EQ(floatAt(e4m3, DESCENT_F8E4M3, 1), 448.0f);
  EXPECT_EQ(floatAt(e4m3, DESCENT_F8E4M3, 2), 0x1p-9f);
  EXPECT_EQ(floatAt(e4m3, DESCENT_F8E4M3, 3), -448.0f);
  EXPECT_TRUE(std::isnan(floatAt(e4m3, DESCENT_F8E4M3, 4)));
  EXPECT_EQ(floatAt(e4m3, DESCENT_F8E4M3, 5), 0x1p-6f);
  EXPECT_EQ(floatAt(e5m2, DESCENT_F8E5M2, 0), 1.0f);
  EXPECT_EQ(floatAt(e5m2, DESCENT_F8E5M2, 1), 57344.0f);
  EXPECT_EQ(floatAt(e5m2, DESCENT_F8E5M2, 2), INFINITY);
  EXPECT_EQ(floatAt(e5m2, DESCENT_F8E5M2, 3), 0x1p-16f);
}

TEST(Narrow, FindsTheFirstValueThatIsNotFinite) {
  std::vector<float> floats(10000, 1.0f);
  EXPECT_EQ(findNonfinite(floats.data(), DESCENT_F32, 10000), -1);
  floats[9999] = -INFINITY;
  floats[4097] = NAN;
  EXPECT_EQ(findNonfinite(floats.data(), DESCENT_F32, 10000), 4097);
  EXPECT_EQ(findNonfinite(floats.data(), DESCENT_F32, 4097), -1);
  EXPECT_EQ(findNonfinite(floats.data(), DESCENT_I32, 10000), -1);

  // The largest finite value is not found, its neighbour is.
  const uint16_t half[] = {0x7BFF, 0xFBFF, 0xFC00}, brain[] = {0x7F7F, 0xFF7F, 0x7FC0};
  const uint8_t e4m3[] = {0x7E, 0x78, 0xFF}, e5m2[] = {0x7B, 0xFB, 0xFC};
  EXPECT_EQ(findNonfinite(half, DESCENT_F16, 3), 2);
  EXPECT_EQ(findNonfinite(brain, DESCENT_BF16, 3), 2);
  EXPECT_EQ(findNonfinite(e4m3, DESCENT_F8E4M3, 3), 2);
  EXPECT_EQ(findNonfinite(e5m2, DESCENT_F8E5M2, 3), 2);
}
