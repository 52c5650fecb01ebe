//===- Rounding.cpp - What an element type keeps of a double --------------===//
//
// A number of the format near x is a multiple of a power of two, the quantum: the spacing of the
// format's numbers in x's binade, or of its subnormals. Adding and subtracting 1.5 * 2^52 quanta in
// double rounds to a multiple, ties to even, since doubles of that size are spaced by one quantum.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/Rounding.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>
#include <cstdint>
#include <limits>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

FloatFormat FloatFormat::of(FloatType type) {
  if (type.isF32())
    return {23, -126, 0x1.FFFFFEp127, true};
  if (type.isBF16())
    return {7, -126, 0x1.FEp127, true};
  if (type.isF16())
    return {10, -14, 65504.0, true};
  if (isa<Float8E4M3FNType>(type))
    return {3, -6, 448.0, false};
  if (isa<Float8E5M2Type>(type))
    return {2, -14, 57344.0, true};
  if (type.isF64())
    return {52, -1022, std::numeric_limits<double>::max(), true};
  llvm::report_fatal_error("no rounding rule for this float type");
}

double FloatFormat::leastNormal() const { return std::ldexp(1.0, leastExponent); }
double FloatFormat::leastSubnormal() const { return std::ldexp(1.0, leastExponent - mantissa); }
double FloatFormat::unitRoundoff() const { return std::ldexp(1.0, -mantissa - 1); }

/// 2^exponent for exponents of normal doubles.
static double powerOfTwo(int exponent) {
  return llvm::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

/// floor(log2(|value|)); for zero and subnormal doubles something below every format's exponents.
static int binadeOf(double value) {
  return static_cast<int>((llvm::bit_cast<uint64_t>(value) >> 52) & 0x7FF) - 1023;
}

double nn::roundToFormat(double value, const FloatFormat &format, Overflow overflow) {
  if (format.mantissa == 52 || std::isnan(value))
    return value;
  double magnitude = std::fabs(value);
  // Far beyond, where the quantum's multiples would leave the range of double.
  double rounded = std::numeric_limits<double>::infinity();
  if (magnitude < 2.0 * format.largest) {
    int binade = std::max(binadeOf(magnitude), format.leastExponent);
    double shift = powerOfTwo(binade - format.mantissa) * 0x1.8p52;
    rounded = (magnitude + shift) - shift;
  }
  if (rounded > format.largest) {
    if (overflow == Overflow::Saturate)
      rounded = format.largest;
    else if (format.hasInfinities)
      rounded = std::numeric_limits<double>::infinity();
    else
      return std::numeric_limits<double>::quiet_NaN();
  }
  return std::copysign(rounded, value);
}

double nn::roundToType(double value, Type element, Overflow overflow) {
  auto type = dyn_cast<FloatType>(element);
  return type ? roundToFormat(value, FloatFormat::of(type), overflow) : value;
}

void nn::roundTensor(reference::Tensor &tensor, Type type, Overflow overflow) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  if (!element)
    return;
  FloatFormat format = FloatFormat::of(element);
  for (double &value : tensor.values)
    value = roundToFormat(value, format, overflow);
}

double nn::roundStochastically(double value, double uniform) {
  auto single = static_cast<float>(value);
  if (!std::isfinite(single))
    return single;
  auto bits = llvm::bit_cast<uint32_t>(single);
  bits += static_cast<uint32_t>(uniform * 0x1p16);
  return llvm::bit_cast<float>(bits & 0xFFFF0000u);
}
