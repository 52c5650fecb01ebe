//===- NarrowFloats.h - Conversions of floats narrower than f32 -----------===//
//
// Widening, rounding and saturation as arithmetic on scalars or vectors of any length. What a CPU
// has an instruction for, or `expand-math` a pattern, stays an arith op (bf16 and f16); the 8-bit
// types become integer arithmetic on 32-bit patterns, since no arith op on them has machine code.
// Everything is exact for every input: subnormals of the narrow types exist on both sides.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_NARROWFLOATS_H
#define DESCENT_DIALECTS_NN_NARROWFLOATS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace descent {

/// A float, or a vector of floats, of any type that nn knows, as f32. Exact.
mlir::Value widenFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// f32 rounded to nearest even in `element`. bf16 and f16 overflow to infinity; the 8-bit types
/// saturate at their largest number, infinity included. NaN stays NaN.
mlir::Value narrowFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                        mlir::Type element);

/// f32 rounded to nearest even to 10 explicit bits of the mantissa, still f32. Infinity and NaN
/// stay.
mlir::Value roundToTf32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

/// f32 to bf16, up or down with the probability of the part cut off: floor(65536 u) is added to the
/// low 16 bits of x's pattern, which are then cut. `u` is f32 in [0, 1). Infinity and NaN stay.
mlir::Value roundStochastically(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                                mlir::Value u);

} // namespace descent

#endif // DESCENT_DIALECTS_NN_NARROWFLOATS_H
