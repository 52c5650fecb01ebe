//===- Convert.cpp - Element types of data files to those of the program --===//
//
// Every pair of types goes through one template. An exact conversion is a copy or a cast; whether
// it is exact is decided by converting and comparing in a type that holds both sides (long double
// has 64 bits of mantissa or more, enough for all of int64, uint64 and double).
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Convert.h"
#include "runtime/data/Bytes.h"
#include "runtime/include/descent/abi.h"

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

namespace descent::data {

namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Truth { // i1: one byte, 0 or 1.
  uint8_t value;
};

float toFloat(Half half) {
  uint32_t sign = uint32_t(half.bits & 0x8000) << 16;
  uint32_t exponent = (half.bits >> 10) & 31, mantissa = half.bits & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float magnitude = float(mantissa) * 0x1p-24f; // Zero or subnormal: exact in f32.
  return sign ? -magnitude : magnitude;
}

/// Rounds to a float format with `digits` bits of precision (the hidden one included) and least
/// normal exponent `least`, to nearest even. The result is still a double; what exceeds `largest`
/// becomes infinite.
double roundTo(double value, int digits, int least, double largest) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::max(std::ilogb(value), least);
  double unit = std::ldexp(1.0, exponent - digits + 1);
  // Both divisions are by a power of two, so the only rounding is nearbyint's.
  double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > largest
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : rounded;
}

BFloat toBFloat(double value) {
  if (std::isnan(value))
    return {0x7fc0};
  auto rounded = static_cast<float>(roundTo(value, 8, -126, 0x1.fep127));
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16)};
}

Half toHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return {uint16_t(sign | 0x7e00)};
  double magnitude = std::fabs(roundTo(value, 11, -14, 65504.0));
  if (std::isinf(magnitude))
    return {uint16_t(sign | 0x7c00)};
  if (magnitude < 0x1p-14)
    return {uint16_t(sign | static_cast<uint16_t>(magnitude * 0x1p24))};
  int exponent = std::ilogb(magnitude);
  auto mantissa = static_cast<uint16_t>(std::ldexp(magnitude, 10 - exponent)); // 1024 .. 2047
  return {uint16_t(sign | (exponent + 15) << 10 | (mantissa & 1023))};
}

template <typename T> struct Raw {
  using Type = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
};

template <typename T> T load(const unsigned char *in, bool bigEndian) {
  using Bits = typename Raw<T>::Type;
  auto bits = loadLittle<Bits>(in);
  if (bigEndian) {
    if constexpr (sizeof(Bits) == 2)
      bits = __builtin_bswap16(bits);
    else if constexpr (sizeof(Bits) == 4)
      bits = __builtin_bswap32(bits);
    else if constexpr (sizeof(Bits) == 8)
      bits = __builtin_bswap64(bits);
  }
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else
    return std::bit_cast<T>(bits);
}

/// The arithmetic value of a loaded element.
template <typename S> auto arithmetic(S value) {
  if constexpr (std::is_same_v<S, Half>)
    return toFloat(value);
  else
    return value;
}

/// Converts; out-of-range floats and integers become something defined, never undefined behaviour.
template <typename D, typename S> D cast(S value) {
  if constexpr (std::is_same_v<D, Half>) {
    return toHalf(static_cast<double>(value));
  } else if constexpr (std::is_same_v<D, BFloat>) {
    return toBFloat(static_cast<double>(value));
  } else if constexpr (std::is_same_v<D, Truth>) {
    return {static_cast<uint8_t>(value != S(0))};
  } else if constexpr (std::is_integral_v<D> && std::is_floating_point_v<S>) {
    constexpr S bound = static_cast<S>(0x1p62) * 2; // 2^63; int32 is narrowed from int64.
    return value >= -bound && value < bound ? static_cast<D>(static_cast<int64_t>(value)) : D(0);
  } else {
    return static_cast<D>(value);
  }
}

template <typename D> long double widen(D value) {
  if constexpr (std::is_same_v<D, Half>)
    return toFloat(value);
  else if constexpr (std::is_same_v<D, BFloat>)
    return std::bit_cast<float>(uint32_t(value.bits) << 16);
  else if constexpr (std::is_same_v<D, Truth>)
    return value.value;
  else
    return static_cast<long double>(value);
}

template <typename F> decltype(auto) withElement(Element type, F &&f) {
  switch (type) {
  case Element::Bool:
    return f(bool{});
  case Element::I8:
    return f(int8_t{});
  case Element::U8:
    return f(uint8_t{});
  case Element::I16:
    return f(int16_t{});
  case Element::U16:
    return f(uint16_t{});
  case Element::I32:
    return f(int32_t{});
  case Element::U32:
    return f(uint32_t{});
  case Element::I64:
    return f(int64_t{});
  case Element::U64:
    return f(uint64_t{});
  case Element::F16:
    return f(Half{});
  case Element::F32:
    return f(float{});
  case Element::F64:
    break;
  }
  return f(double{});
}

template <typename F> decltype(auto) withDtype(int32_t dtype, F &&f) {
  switch (dtype) {
  case DESCENT_BF16:
    return f(BFloat{});
  case DESCENT_F16:
    return f(Half{});
  case DESCENT_I32:
    return f(int32_t{});
  case DESCENT_I64:
    return f(int64_t{});
  case DESCENT_I1:
    return f(Truth{});
  default:
    return f(float{});
  }
}

} // namespace

int64_t elementBytes(Element type) {
  return withElement(type, [](auto sample) -> int64_t { return sizeof(sample); });
}

const char *elementName(Element type) {
  static constexpr const char *names[] = {"bool",   "int8",    "uint8",   "int16",
                                          "uint16", "int32",   "uint32",  "int64",
                                          "uint64", "float16", "float32", "float64"};
  return names[static_cast<int>(type)];
}

int64_t dtypeBytes(int32_t dtype) {
  return withDtype(dtype, [](auto sample) -> int64_t { return sizeof(sample); });
}

const char *dtypeName(int32_t dtype) {
  static constexpr const char *names[] = {"f32", "bf16", "f16", "i32", "i64", "i1"};
  return names[dtype];
}

const char *dtypeArray(int32_t dtype) {
  // NumPy has no bfloat16: float32 values with zero low halves are how it stores them.
  static constexpr const char *names[] = {"float32", "float32", "float16",
                                          "int32",   "int64",   "bool"};
  return names[dtype];
}

bool alwaysExact(Element from, int32_t dtype) {
  bool narrow = from == Element::Bool || from == Element::I8 || from == Element::U8;
  bool short16 = narrow || from == Element::I16 || from == Element::U16;
  switch (dtype) {
  case DESCENT_F32:
    return short16 || from == Element::F16 || from == Element::F32;
  case DESCENT_F16:
    return narrow || from == Element::F16;
  case DESCENT_BF16:
    return narrow; // 8 bits of precision hold 0 .. 256.
  case DESCENT_I32:
    return short16 || from == Element::I32;
  case DESCENT_I64:
    return short16 || from == Element::I32 || from == Element::U32 || from == Element::I64;
  default:
    return from == Element::Bool;
  }
}

int64_t firstInexact(Element from, bool bigEndian, const unsigned char *in, int64_t count,
                     int32_t dtype) {
  if (alwaysExact(from, dtype))
    return -1;
  return withElement(from, [&](auto source) {
    return withDtype(dtype, [&](auto target) -> int64_t {
      using S = decltype(source);
      using D = decltype(target);
      for (int64_t i = 0; i < count; ++i) {
        auto value = arithmetic(load<S>(in + i * sizeof(S), bigEndian));
        long double wide = static_cast<long double>(value);
        bool bothNaN = wide != wide && !std::is_integral_v<D> && !std::is_same_v<D, Truth>;
        if (widen(cast<D>(value)) != wide && !bothNaN)
          return i;
      }
      return -1;
    });
  });
}

std::string elementText(Element from, bool bigEndian, const unsigned char *in) {
  return withElement(from, [&](auto source) {
    auto value = arithmetic(load<decltype(source)>(in, bigEndian));
    std::ostringstream text;
    text.precision(17);
    if constexpr (sizeof(value) == 1)
      text << int(value);
    else
      text << value;
    return text.str();
  });
}

void convert(Element from, bool bigEndian, const unsigned char *in, int64_t count, int32_t dtype,
             double scale, void *out) {
  withElement(from, [&](auto source) {
    withDtype(dtype, [&](auto target) {
      using S = decltype(source);
      using D = decltype(target);
      auto *destination = static_cast<D *>(out);
      if (scale != 1.0) {
        for (int64_t i = 0; i < count; ++i) {
          auto value = arithmetic(load<S>(in + i * sizeof(S), bigEndian));
          destination[i] = cast<D>(static_cast<double>(value) * scale);
        }
        return;
      }
      if (std::is_same_v<S, D> && !bigEndian) {
        std::memcpy(out, in, count * sizeof(D));
        return;
      }
      for (int64_t i = 0; i < count; ++i)
        destination[i] = cast<D>(arithmetic(load<S>(in + i * sizeof(S), bigEndian)));
    });
  });
}

} // namespace descent::data
