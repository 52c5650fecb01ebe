//===- PhiloxTest.cpp - Known answers and properties of the generator -----------------------===//
#include "runtime/core/Philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace descent;

// The three known answers that the authors of the SC11 paper publish with Random123 (kat_vectors,
// philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, HashesNamesAsFnv1aSays) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

// A value depends on (seed, name, element) and on nothing else: a prefix of a longer fill is the
// shorter fill.
TEST(Philox, ElementsDoNotDependOnTheCount) {
  std::vector<float> small(5), large(50001);
  fillNormal(small.data(), 5, 7, "w", 0, 1);
  fillNormal(large.data(), 50001, 7, "w", 0, 1);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  // Nor on where the fill begins.
  fillNormal(small.data(), 5, 7, "w", 0, 1, 40000);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin() + 40000));
  fillNormal(small.data(), 5, 7, "w", 0, 1);
  std::vector<float> other(5);
  fillNormal(other.data(), 5, 7, "v", 0, 1);
  EXPECT_NE(small, other);
  fillNormal(other.data(), 5, 8, "w", 0, 1);
  EXPECT_NE(small, other);
}

TEST(Philox, NormalHasItsMoments) {
  int64_t n = 200000;
  std::vector<float> x(n);
  fillNormal(x.data(), n, 1, "moments", 3.0, 0.5);
  double sum = 0, square = 0;
  for (float v : x)
    sum += v;
  double mean = sum / n;
  for (float v : x)
    square += (v - mean) * (v - mean);
  // Five standard errors of each estimate.
  EXPECT_LE(std::abs(mean - 3.0), 5 * 0.5 / std::sqrt(n));
  EXPECT_LE(std::abs(std::sqrt(square / n) - 0.5), 5 * 0.5 / std::sqrt(2.0 * n));
}

// The interval is half open even where rounding to float would reach its end.
TEST(Philox, UniformStaysInItsInterval) {
  std::vector<float> x(200000);
  fillUniform(x.data(), x.size(), 1, "interval", 1.0, 1.0 + 0x1p-22);
  for (float v : x) {
    ASSERT_GE(v, 1.0f);
    ASSERT_LT(v, 1.0f + 0x1p-22f);
  }
}
