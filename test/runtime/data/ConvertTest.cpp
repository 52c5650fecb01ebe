//===- ConvertTest.cpp - Element types of files and programs --------------===//

#include "runtime/data/Convert.h"
#include "Files.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace descent;
using namespace descent::data;

namespace {

template <typename D, typename S>
D one(Element from, S value, int32_t dtype, double scale = 1.0, bool bigEndian = false) {
  D out;
  convert(from, bigEndian, reinterpret_cast<const unsigned char *>(&value), 1, dtype, scale, &out);
  return out;
}

template <typename S> bool exact(Element from, S value, int32_t dtype) {
  return firstInexact(from, false, reinterpret_cast<const unsigned char *>(&value), 1, dtype) < 0;
}

// Every f16 bit pattern survives f16 -> f32 and f32 -> f16, NaN payloads aside.
TEST(Convert, AllHalves) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    auto wide = one<float>(Element::F16, half, DESCENT_F32);
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff)) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_TRUE(exact(Element::F32, wide, DESCENT_F16));
      continue;
    }
    ASSERT_EQ(one<uint16_t>(Element::F32, wide, DESCENT_F16), half);
    ASSERT_TRUE(exact(Element::F32, wide, DESCENT_F16));
  }
}

// Known halves: 1, the largest, the least subnormal.
TEST(Convert, KnownHalves) {
  EXPECT_EQ(one<uint16_t>(Element::F32, 1.0f, DESCENT_F16), 0x3c00);
  EXPECT_EQ(one<uint16_t>(Element::F32, -65504.0f, DESCENT_F16), 0xfbff);
  EXPECT_EQ(one<uint16_t>(Element::F32, 0x1p-24f, DESCENT_F16), 0x0001);
  EXPECT_FALSE(exact(Element::F32, 65520.0f, DESCENT_F16));
  EXPECT_FALSE(exact(Element::F32, 0x1p-25f, DESCENT_F16));
  EXPECT_FALSE(exact(Element::U16, uint16_t(2049), DESCENT_F16));
  EXPECT_TRUE(exact(Element::U16, uint16_t(2050), DESCENT_F16));
}

// bf16 is the upper half of f32: 256 has it, 257 has not.
TEST(Convert, BFloat) {
  EXPECT_EQ(one<uint16_t>(Element::F32, 1.0f, DESCENT_BF16), 0x3f80);
  EXPECT_EQ(one<uint16_t>(Element::U8, uint8_t(255), DESCENT_BF16), 0x437f);
  EXPECT_TRUE(exact(Element::I32, int32_t(256), DESCENT_BF16));
  EXPECT_FALSE(exact(Element::I32, int32_t(257), DESCENT_BF16));
  EXPECT_TRUE(exact(Element::F32, std::bit_cast<float>(0x00010000u), DESCENT_BF16));
  EXPECT_FALSE(exact(Element::F32, std::bit_cast<float>(0x00010001u), DESCENT_BF16));
}

// Integers beyond a float's mantissa, floats with a fraction or out of range in an integer, double
// beyond float.
TEST(Convert, FindsWhatDoesNotFit) {
  EXPECT_TRUE(exact(Element::I32, int32_t(1 << 24), DESCENT_F32));
  EXPECT_FALSE(exact(Element::I32, int32_t((1 << 24) + 1), DESCENT_F32));
  EXPECT_FALSE(exact(Element::I64, std::numeric_limits<int64_t>::max(), DESCENT_F32));
  EXPECT_TRUE(exact(Element::I64, std::numeric_limits<int64_t>::min(), DESCENT_F32));
  EXPECT_TRUE(exact(Element::I64, int64_t(-2147483648), DESCENT_I32));
  EXPECT_FALSE(exact(Element::I64, int64_t(2147483648), DESCENT_I32));
  EXPECT_FALSE(exact(Element::U64, uint64_t(1) << 63, DESCENT_I64));
  EXPECT_TRUE(exact(Element::F64, 3.0, DESCENT_I32));
  EXPECT_FALSE(exact(Element::F64, 3.5, DESCENT_I32));
  EXPECT_FALSE(exact(Element::F64, 1e300, DESCENT_I64));
  EXPECT_FALSE(exact(Element::F64, std::nan(""), DESCENT_I64));
  EXPECT_FALSE(exact(Element::F64, std::nan(""), DESCENT_I1));
  EXPECT_TRUE(exact(Element::F64, 0.5, DESCENT_F32));
  EXPECT_FALSE(exact(Element::F64, 0.1, DESCENT_F32));
  EXPECT_FALSE(exact(Element::F64, 1e300, DESCENT_F32));
  EXPECT_TRUE(exact(Element::F64, std::nan(""), DESCENT_F32));
  EXPECT_TRUE(exact(Element::F64, -std::numeric_limits<double>::infinity(), DESCENT_F32));
  EXPECT_TRUE(exact(Element::U8, uint8_t(1), DESCENT_I1));
  EXPECT_FALSE(exact(Element::U8, uint8_t(2), DESCENT_I1));
}

// What alwaysExact promises without looking holds at the extremes of each type.
TEST(Convert, AlwaysExactIsTrue) {
  auto check = [](Element from, auto value) {
    for (int32_t dtype : {DESCENT_F32, DESCENT_BF16, DESCENT_F16, DESCENT_I32, DESCENT_I64})
      if (alwaysExact(from, dtype)) {
        double back = 0;
        switch (dtype) {
        case DESCENT_F32:
          back = one<float>(from, value, dtype);
          break;
        case DESCENT_F16:
          back = one<float>(Element::F16, one<uint16_t>(from, value, dtype), DESCENT_F32);
          break;
        case DESCENT_BF16:
          back = std::bit_cast<float>(uint32_t(one<uint16_t>(from, value, dtype)) << 16);
          break;
        case DESCENT_I32:
          back = one<int32_t>(from, value, dtype);
          break;
        default:
          back = static_cast<double>(one<int64_t>(from, value, dtype));
        }
        EXPECT_EQ(back, static_cast<double>(value)) << elementName(from) << dtypeName(dtype);
      }
  };
  check(Element::I8, int8_t(-128));
  check(Element::I8, int8_t(127));
  for (int i = 0; i < 256; ++i)
    check(Element::U8, uint8_t(i));
  check(Element::I16, int16_t(-32768));
  check(Element::I16, int16_t(32767));
  check(Element::U16, uint16_t(65535));
  check(Element::I32, std::numeric_limits<int32_t>::max());
  check(Element::U32, std::numeric_limits<uint32_t>::max());
}

// Pixels of 0 .. 16 at scale 1/16 land on exact values; the product is rounded once.
TEST(Convert, Scales) {
  EXPECT_EQ(one<float>(Element::U8, uint8_t(16), DESCENT_F32, 0.0625), 1.0f);
  EXPECT_EQ(one<float>(Element::U8, uint8_t(255), DESCENT_F32, 1.0 / 255.0), 1.0f);
  EXPECT_EQ(one<float>(Element::U8, uint8_t(1), DESCENT_F32, 1.0 / 255.0), float(1.0 / 255.0));
}

TEST(Convert, BigEndian) {
  EXPECT_EQ(one<int32_t>(Element::I16, uint16_t(0x0102), DESCENT_I32, 1.0, true), 0x0201);
  EXPECT_EQ(one<float>(Element::F32, __builtin_bswap32(0x3f800000), DESCENT_F32, 1.0, true), 1.0f);
}

} // namespace
