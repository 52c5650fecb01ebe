//===- Rounding.h - What an element type keeps of a double ----------------===//
//
// The reference's only place that rounds. Each function rounds once, from the double to the type:
// going through f32 on the way would round some midpoints twice and land one step off.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_ROUNDING_H
#define DESCENT_DIALECTS_NN_ROUNDING_H

#include "dialects/NN/ReferenceTensor.h"
#include "mlir/IR/BuiltinTypes.h"

namespace descent::nn {

/// A binary floating-point type, as far as rounding is concerned.
struct FloatFormat {
  int mantissa;       ///< explicit bits
  int leastExponent;  ///< of a normal number; subnormals keep its spacing
  double largest;     ///< finite
  bool hasInfinities; ///< f8E4M3FN has none: what is too large becomes NaN

  static FloatFormat of(mlir::FloatType type);
  /// f32 that keeps 10 bits of mantissa: what tf32 products read.
  static FloatFormat tf32() { return {10, -126, 0x1.FFCp127, true}; }

  double leastNormal() const;
  double leastSubnormal() const;
  /// Half the distance from 1 to the next number: the largest relative error of one rounding.
  double unitRoundoff() const;
};

enum class Overflow { Infinite, Saturate };

/// The nearest number of the format, ties to even. What rounds beyond `largest` becomes infinite
/// (NaN where there is no infinity), or with Saturate +-largest, infinities too. NaN stays NaN and
/// zeros keep their sign.
double roundToFormat(double value, const FloatFormat &format,
                     Overflow overflow = Overflow::Infinite);

/// What a value of this element type keeps: floats as roundToFormat; integers and booleans are
/// whole already.
double roundToType(double value, mlir::Type element, Overflow overflow = Overflow::Infinite);

/// roundToType of every element.
void roundTensor(reference::Tensor &tensor, mlir::Type type,
                 Overflow overflow = Overflow::Infinite);

/// bf16 next to a f32 value, towards zero when `uniform` (in [0, 1)) is 0 and away from it with a
/// probability that grows with the distance: floor(uniform * 2^16) is added to the low half of the
/// f32's bits, then the low half is dropped. Infinities and NaN stay. `value` is rounded to f32
/// first.
double roundStochastically(double value, double uniform);

} // namespace descent::nn

#endif // DESCENT_DIALECTS_NN_ROUNDING_H
