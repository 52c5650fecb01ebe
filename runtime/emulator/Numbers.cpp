//===- Numbers.cpp - Arithmetic of the device -------------------------------------------------===//
//
// Rounded operations are exact: the host rounds as the instruction says. Approximations (ex2, lg2,
// rsqrt, sin, cos) are the C library's values, where the hardware is off by a unit or two in the
// last place: a kernel that depends on those bits depends on the chip.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Numbers.h"

#include <descent/emulator.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

namespace descent::emulator {

uint16_t toNarrow(double value, bool half, bool towardsZero) {
  if (std::isnan(value))
    return 0x7fff;
  int mantissa = half ? 10 : 7, bias = half ? 15 : 127;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  uint16_t infinity = static_cast<uint16_t>(((2 * bias + 1) << mantissa));
  if (std::isinf(value))
    return sign | infinity;
  int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  double scaled = std::ldexp(value, mantissa - exponent); // exact: a unit in the last place is 1
  double rounded = towardsZero ? std::trunc(scaled) : std::nearbyint(scaled);
  auto units = static_cast<uint32_t>(rounded);
  // A carry runs into the exponent by itself.
  uint32_t bits = (static_cast<uint32_t>(exponent + bias - 1) << mantissa) + units;
  if (bits >= infinity)
    bits = towardsZero ? infinity - 1u : infinity;
  return sign | static_cast<uint16_t>(bits);
}

float fromNarrow(uint16_t bits, bool half) {
  if (!half)
    return floatOf(uint32_t(bits) << 16);
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float value = exponent == 31  ? (mantissa ? std::numeric_limits<float>::quiet_NaN() : INFINITY)
                : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits >> 15 ? -value : value;
}

float fromE4M3(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float value = exponent == 15 && mantissa == 7 ? std::numeric_limits<float>::quiet_NaN()
                : exponent == 0                 ? std::ldexp(static_cast<float>(mantissa), -9)
                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits >> 7 ? -value : value;
}

float fromE5M2(uint8_t bits) { return fromNarrow(static_cast<uint16_t>(bits << 8), true); }

double mmaElement(int type, uint32_t bits, int index) {
  switch (type) {
  case DESCENT_MMA_BF16:
  case DESCENT_MMA_F16:
    return fromNarrow(static_cast<uint16_t>(bits >> (16 * index)), type == DESCENT_MMA_F16);
  case DESCENT_MMA_TF32:
    return floatOf(bits & ~0x1fffu); // the lower 13 bits are not looked at
  case DESCENT_MMA_E4M3:
    return fromE4M3(static_cast<uint8_t>(bits >> (8 * index)));
  default:
    return fromE5M2(static_cast<uint8_t>(bits >> (8 * index)));
  }
}

/// Sets the host's rounding for a scope.
class Rounding {
public:
  explicit Rounding(uint32_t code) : before(std::fegetround()) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[code >> 8 & 3]);
  }
  ~Rounding() { std::fesetround(before); }

private:
  int before;
};

template <typename Float> static Float flush(Float value) {
  return std::fabs(value) < std::numeric_limits<Float>::min() ? std::copysign(Float(0), value)
                                                              : value;
}

template <typename Float> static Float extreme(uint32_t code, Float a, Float b) {
  if (std::isnan(a) || std::isnan(b))
    return (code & DESCENT_ARITHMETIC_NAN) || (std::isnan(a) && std::isnan(b))
               ? std::numeric_limits<Float>::quiet_NaN()
           : std::isnan(a) ? b
                           : a;
  bool smaller = a < b || (a == b && std::signbit(a)); // -0 is less than +0
  return smaller == ((code & 0xff) == DESCENT_ARITHMETIC_MIN) ? a : b;
}

template <typename Float> static Float compute(uint32_t code, Float x, Float y, Float z) {
  // volatile: the compiler may neither fold these nor move them across the change of rounding.
  volatile Float a = x, b = y, c = z, result = 0;
  Rounding rounding(code);
  switch (code & 0xff) {
  case DESCENT_ARITHMETIC_ADD:
    result = a + b;
    break;
  case DESCENT_ARITHMETIC_MUL:
    result = a * b;
    break;
  case DESCENT_ARITHMETIC_FMA:
    result = std::fma(a, b, c);
    break;
  case DESCENT_ARITHMETIC_DIV:
    result = a / b;
    break;
  case DESCENT_ARITHMETIC_RCP:
    result = Float(1) / a;
    break;
  case DESCENT_ARITHMETIC_SQRT:
    result = std::sqrt(a);
    break;
  case DESCENT_ARITHMETIC_RSQRT:
    result = static_cast<Float>(1.0 / std::sqrt(static_cast<double>(a)));
    break;
  case DESCENT_ARITHMETIC_EX2:
    result = std::exp2(a);
    break;
  case DESCENT_ARITHMETIC_LG2:
    result = std::log2(a);
    break;
  case DESCENT_ARITHMETIC_SIN:
    result = std::sin(a);
    break;
  case DESCENT_ARITHMETIC_COS:
    result = std::cos(a);
    break;
  case DESCENT_ARITHMETIC_MIN:
  case DESCENT_ARITHMETIC_MAX:
    result = extreme<Float>(code, a, b);
    break;
  case DESCENT_ARITHMETIC_ABS:
    result = std::fabs(a);
    break;
  case DESCENT_ARITHMETIC_FLOOR:
    result = std::floor(a);
    break;
  case DESCENT_ARITHMETIC_CEIL:
    result = std::ceil(a);
    break;
  case DESCENT_ARITHMETIC_TRUNC:
    result = std::trunc(a);
    break;
  case DESCENT_ARITHMETIC_ROUND:
    result = std::nearbyint(a);
    break;
  default:
    result = a;
    break;
  }
  return result;
}

template <typename Float> static Float arithmetic(uint32_t code, Float a, Float b, Float c) {
  bool ftz = code & DESCENT_ARITHMETIC_FTZ;
  if (ftz) {
    a = flush(a);
    b = flush(b);
    c = flush(c);
  }
  Float result = compute(code, a, b, c);
  if (ftz)
    result = flush(result);
  if (code & DESCENT_ARITHMETIC_SAT)
    result = std::isnan(result) ? Float(0) : std::clamp(result, Float(0), Float(1));
  if ((code & DESCENT_ARITHMETIC_RELU) && result < 0)
    result = 0;
  return result;
}

/// a b + c of narrow floats, rounded once. The product is exact in double; where the sum is not,
/// its last bit is set, so that the second rounding goes the way a single one would have gone.
static double narrowFma(double a, double b, double c) {
  double product = a * b, sum = product + c;
  if (!std::isfinite(sum))
    return sum;
  double back = sum - product, error = (product - (sum - back)) + (c - back);
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if (error == 0 || (bits & 1))
    return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

} // namespace descent::emulator

using namespace descent::emulator;

extern "C" {

float descent_emulate_arithmetic(uint32_t code, float a, float b, float c) {
  return arithmetic<float>(code, a, b, c);
}

double descent_emulate_arithmetic_double(uint32_t code, double a, double b, double c) {
  return arithmetic<double>(code, a, b, c);
}

uint16_t descent_emulate_arithmetic_narrow(uint32_t code, uint16_t a, uint16_t b, uint16_t c) {
  bool half = code & DESCENT_ARITHMETIC_HALF;
  double x = fromNarrow(a, half), y = fromNarrow(b, half), z = fromNarrow(c, half), result;
  auto tiny = [&](double value) {
    double least = half ? 0x1p-14 : 0x1p-126;
    return (code & DESCENT_ARITHMETIC_FTZ) && std::fabs(value) < least ? std::copysign(0.0, value)
                                                                       : value;
  };
  if ((code & 0xff) == DESCENT_ARITHMETIC_FMA)
    result = narrowFma(tiny(x), tiny(y), tiny(z));
  else
    result = compute<double>(code, tiny(x), tiny(y), tiny(z));
  if (code & DESCENT_ARITHMETIC_SAT)
    result = std::isnan(result) ? 0 : std::clamp(result, 0.0, 1.0);
  if ((code & DESCENT_ARITHMETIC_RELU) && result < 0)
    result = 0;
  return toNarrow(tiny(result), half);
}

uint32_t descent_emulate_arithmetic_pair(uint32_t code, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t low = descent_emulate_arithmetic_narrow(code, a & 0xffff, b & 0xffff, c & 0xffff);
  uint32_t high = descent_emulate_arithmetic_narrow(code, a >> 16, b >> 16, c >> 16);
  return high << 16 | low;
}

uint16_t descent_emulate_narrow(uint32_t code, float value) {
  if ((code & DESCENT_ARITHMETIC_RELU) && value < 0)
    value = 0;
  return toNarrow(value, code & DESCENT_ARITHMETIC_HALF,
                  (code & DESCENT_ROUND_UP) == DESCENT_ROUND_ZERO);
}

uint32_t descent_emulate_narrow_pair(uint32_t code, float high, float low) {
  return uint32_t(descent_emulate_narrow(code, high)) << 16 | descent_emulate_narrow(code, low);
}

/// cvt.rna.tf32.f32: to 10 bits of fraction, ties away from zero.
uint32_t descent_emulate_tf32(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7f800000) == 0x7f800000)
    return std::isnan(value) ? 0x7fffffff : bits;
  return (bits + 0x1000) & ~0x1fffu;
}

/// prmt.b32 in its default mode.
uint32_t descent_emulate_permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t select = selector >> (4 * i) & 15;
    auto byte = static_cast<uint8_t>(bytes >> (8 * (select & 7)));
    if (select & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * i);
  }
  return result;
}

} // extern "C"
