//===- RoundingTest.cpp - Every code of every narrow type -----------------===//
//
// The rounding of the reference against the definition: a code is its own nearest number, the
// middle between two codes goes to the even one, and what is just beside the middle to the nearer
// one. For f32, whose codes are too many, the machine's own conversion is the other side.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/Rounding.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// All finite values of a type from +0 up, by code.
std::vector<double> nonNegativeValues(FloatType type) {
  std::vector<double> values;
  for (uint64_t code = 0; code < uint64_t{1} << (type.getWidth() - 1); ++code) {
    llvm::APFloat number(type.getFloatSemantics(), llvm::APInt(type.getWidth(), code));
    if (number.isFinite())
      values.push_back(number.convertToDouble());
  }
  return values;
}

class Rounding : public testing::Test {
protected:
  MLIRContext context;
  Builder builder{&context};
  std::vector<FloatType> narrow{builder.getBF16Type(), builder.getF16Type(),
                                builder.getType<Float8E4M3FNType>(),
                                builder.getType<Float8E5M2Type>()};
};

} // namespace

TEST_F(Rounding, EveryCodeIsItsOwnNearestNumber) {
  for (FloatType type : narrow) {
    FloatFormat format = FloatFormat::of(type);
    std::vector<double> values = nonNegativeValues(type);
    EXPECT_EQ(values.back(), format.largest);
    EXPECT_EQ(values[1], format.leastSubnormal());
    EXPECT_EQ(values[size_t{1} << format.mantissa], format.leastNormal());
    for (double value : values)
      for (double x : {value, -value}) {
        ASSERT_EQ(roundToType(x, type), x);
        ASSERT_EQ(std::signbit(roundToType(x, type)), std::signbit(x));
      }
  }
}

TEST_F(Rounding, MiddlesGoToTheEvenCodeAndTheirNeighboursToTheNearer) {
  for (FloatType type : narrow) {
    std::vector<double> values = nonNegativeValues(type);
    for (size_t code = 0; code + 1 < values.size(); ++code) {
      double low = values[code], high = values[code + 1], middle = low + (high - low) / 2;
      for (double sign : {1.0, -1.0}) {
        ASSERT_EQ(roundToType(sign * middle, type), sign * (code % 2 == 0 ? low : high)) << middle;
        ASSERT_EQ(roundToType(sign * std::nextafter(middle, 0.0), type), sign * low) << middle;
        ASSERT_EQ(roundToType(sign * std::nextafter(middle, infinity), type), sign * high)
            << middle;
      }
    }
  }
}

// Both a value one f32 step above a middle of bf16 and the middle itself would be ties for a
// rounding that went through f32: 1 + 2^-8 + 2^-30 must go up.
TEST_F(Rounding, IsOneRoundingNotTwo) {
  EXPECT_EQ(roundToType(1.0 + 0x1p-8, builder.getBF16Type()), 1.0);
  EXPECT_EQ(roundToType(1.0 + 0x1p-8 + 0x1p-30, builder.getBF16Type()), 1.0 + 0x1p-7);
}

TEST_F(Rounding, TooLargeBecomesInfiniteOrSaturates) {
  for (FloatType type : narrow) {
    FloatFormat format = FloatFormat::of(type);
    std::vector<double> values = nonNegativeValues(type);
    double step = values.back() - values[values.size() - 2], limit = format.largest + step / 2;
    double beyond = format.hasInfinities ? infinity : std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(roundToType(std::nextafter(limit, 0.0), type), format.largest);
    // The largest code is odd wherever the next one would be an infinity; E4M3's is even, its
    // middle falls back.
    for (double x :
         {format.hasInfinities ? limit : std::nextafter(limit, infinity), 1e300, infinity}) {
      double rounded = roundToType(x, type), negative = roundToType(-x, type);
      if (format.hasInfinities) {
        EXPECT_EQ(rounded, beyond);
        EXPECT_EQ(negative, -beyond);
      } else {
        EXPECT_TRUE(std::isnan(rounded) && std::isnan(negative));
      }
      EXPECT_EQ(roundToType(x, type, Overflow::Saturate), format.largest);
      EXPECT_EQ(roundToType(-x, type, Overflow::Saturate), -format.largest);
    }
    EXPECT_TRUE(std::isnan(roundToType(NAN, type)));
    EXPECT_TRUE(std::isnan(roundToType(NAN, type, Overflow::Saturate)));
  }
}

TEST_F(Rounding, UnderflowsToZeroOfTheSameSign) {
  for (FloatType type : narrow) {
    double least = FloatFormat::of(type).leastSubnormal();
    EXPECT_EQ(roundToType(least / 2, type), 0.0);
    EXPECT_TRUE(std::signbit(roundToType(-least / 2, type)));
    EXPECT_TRUE(std::signbit(roundToType(-0.0, type)));
    EXPECT_EQ(roundToType(std::nextafter(least / 2, 1.0), type), least);
  }
}

TEST_F(Rounding, F32AsTheMachineConverts) {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 2000000; ++i) {
    // Every exponent of f32 and some beyond, any mantissa; and exact middles.
    uint64_t bits = generator();
    auto exponent = static_cast<uint64_t>(1023 - 160 + static_cast<int>(generator() % 300));
    bits = (bits & ~(uint64_t{0x7FF} << 52)) | exponent << 52;
    if (i % 4 == 0)
      bits = (bits & ~uint64_t{0x1FFFFFFF}) | 0x10000000;
    auto x = llvm::bit_cast<double>(bits);
    ASSERT_EQ(roundToType(x, builder.getF32Type()), static_cast<double>(static_cast<float>(x)))
        << x;
  }
}

TEST_F(Rounding, NarrowTypesAsApFloatConverts) {
  std::mt19937_64 generator(2);
  for (FloatType type : narrow)
    for (int i = 0; i < 200000; ++i) {
      uint64_t bits = generator();
      auto exponent = static_cast<uint64_t>(1023 - 150 + static_cast<int>(generator() % 290));
      auto x = llvm::bit_cast<double>((bits & ~(uint64_t{0x7FF} << 52)) | exponent << 52);
      llvm::APFloat number(x);
      bool lost = false;
      number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
      double expected = number.convertToDouble(), actual = roundToType(x, type);
      ASSERT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
          << x << " became " << actual << " instead of " << expected;
    }
}

TEST_F(Rounding, Tf32KeepsTenBitsOfMantissa) {
  FloatFormat tf32 = FloatFormat::tf32();
  EXPECT_EQ(roundToFormat(1.0 + 0x1p-10, tf32), 1.0 + 0x1p-10);
  EXPECT_EQ(roundToFormat(1.0 + 0x1p-11, tf32), 1.0); // the middle, to even
  EXPECT_EQ(roundToFormat(1.0 + 0x1.8p-10, tf32), 1.0 + 0x1p-9);
  EXPECT_EQ(roundToFormat(0x1.FFEp127, tf32), infinity);
  EXPECT_EQ(roundToFormat(0x1.FFCp127, tf32), 0x1.FFCp127);
}

TEST_F(Rounding, IntegersAndF64StayAsTheyAre) {
  EXPECT_EQ(roundToType(0x1p40 + 1, builder.getI64Type()), 0x1p40 + 1);
  EXPECT_EQ(roundToType(0.1, builder.getF64Type()), 0.1);
}

// The result is one of the two neighbours, and over evenly spaced draws their mean is the value.
TEST_F(Rounding, StochasticRoundingIsUnbiased) {
  auto x = static_cast<double>(1.0f + 0x1p-9f + 0x1p-12f);
  double sum = 0.0;
  int draws = 1 << 16;
  for (int i = 0; i < draws; ++i) {
    double y = roundStochastically(x, i * 0x1p-16);
    ASSERT_TRUE(y == 1.0 || y == 1.0 + 0x1p-7);
    ASSERT_EQ(roundStochastically(-x, i * 0x1p-16), -y);
    sum += y;
  }
  EXPECT_EQ(sum / draws, x);
  EXPECT_EQ(roundStochastically(1.5, 0.999), 1.5); // a bf16 stays
  EXPECT_EQ(roundStochastically(infinity, 0.5), infinity);
  EXPECT_TRUE(std::isnan(roundStochastically(NAN, 0.999)));
}
