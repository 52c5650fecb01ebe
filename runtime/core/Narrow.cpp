//===- Narrow.cpp - Element types narrower than float ---------------------------------------===//
#include "runtime/core/Narrow.h"

#include "descent/abi.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace descent;

float descent::halfToFloat(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0) { // Zero or subnormal: fraction * 2^-24 is exact.
    float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 0xFFu : exponent + 112) << 23 |
                              fraction << 13);
}

float descent::brainToFloat(uint16_t brain) {
  return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16);
}

uint16_t descent::floatToBrain(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) // Adding could carry a NaN into the sign; the set bit keeps it one.
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// The first element whose bits of `mask` are all set.
template <typename Bits> static int64_t findSet(const void *data, Bits mask, int64_t count) {
  const Bits *values = static_cast<const Bits *>(data);
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < count; begin += block) {
    int64_t end = std::min(count, begin + block);
    bool any = false;
    for (int64_t i = begin; i < end; ++i) // Without a way out, so that it becomes vectors.
      any |= (values[i] & mask) == mask;
    if (any)
      return std::find_if(values + begin, values + end,
                          [=](Bits bits) { return (bits & mask) == mask; }) -
             values;
  }
  return -1;
}

int64_t descent::findNonfinite(const void *data, int32_t dtype, int64_t count) {
  // Infinity and NaN have all bits of the exponent set. E4M3 has no infinity and one NaN, all ones.
  switch (dtype) {
  case DESCENT_F32:
    return findSet<uint32_t>(data, 0x7F800000, count);
  case DESCENT_BF16:
    return findSet<uint16_t>(data, 0x7F80, count);
  case DESCENT_F16:
    return findSet<uint16_t>(data, 0x7C00, count);
  case DESCENT_F8E4M3:
    return findSet<uint8_t>(data, 0x7F, count);
  case DESCENT_F8E5M2:
    return findSet<uint8_t>(data, 0x7C, count);
  default:
    return -1;
  }
}

static float fromE4M3(uint8_t bits) {
  int exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 0x7F) == 0x7F)
    return std::numeric_limits<float>::quiet_NaN();
  float value = exponent ? std::ldexp(1.0f + static_cast<float>(fraction) / 8.0f, exponent - 7)
                         : std::ldexp(static_cast<float>(fraction), -9);
  return bits & 0x80 ? -value : value;
}

float descent::floatAt(const void *data, int32_t dtype, int64_t position) {
  switch (dtype) {
  case DESCENT_BF16:
    return brainToFloat(static_cast<const uint16_t *>(data)[position]);
  case DESCENT_F16:
    return halfToFloat(static_cast<const uint16_t *>(data)[position]);
  case DESCENT_F8E4M3:
    return fromE4M3(static_cast<const uint8_t *>(data)[position]);
  case DESCENT_F8E5M2: // The upper half of an f16.
    return halfToFloat(static_cast<uint16_t>(static_cast<const uint8_t *>(data)[position] << 8));
  default:
    return static_cast<const float *>(data)[position];
  }
}
