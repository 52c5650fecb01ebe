//===- NarrowFloats.cpp - Conversions of floats narrower than f32 ---------===//
//
// The 8-bit types, by their relation to types with hardware conversions:
//
//   f8E5M2 is the upper byte of f16, so widening is a shift and f16's conversion.
//   f8E4M3FN, shifted left by 7, is the f16 of 2^-8 times its value, subnormals included (their
//   exponents differ by 8 in bias, their mantissas are both without the leading one). Its one NaN a
//   sign stands where a finite number would be, and is put in by a select.
//
// Rounding has two cases. From the smallest normal number on, half a unit (less one where the last
// kept bit is 0, so that ties go to even) is added below the bits that stay and the exponent's bias
// is changed. Below, |x| is added to the power of two whose f32 neighbours are the type's smallest
// subnormal apart: the sum's own rounding is the one wanted, and its low bits count those units.
// Rounding by way of f16 would round twice.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NarrowFloats.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace descent {

namespace {

/// Integer arithmetic on bit patterns, in the shape of one sample value.
class Bits {
public:
  Bits(OpBuilder &builder, Location loc, Value sample)
      : builder(builder), loc(loc), vector(dyn_cast<VectorType>(sample.getType())) {}

  Type shaped(Type element) const {
    return vector ? Type(vector.cloneWith(std::nullopt, element)) : element;
  }
  Type integer(unsigned width) const { return shaped(builder.getIntegerType(width)); }
  Type f32() const { return shaped(builder.getF32Type()); }

  Value constant(Type like, uint64_t bits) {
    Type element = getElementTypeOrSelf(like);
    return splat(like, builder.getIntegerAttr(element, APInt(element.getIntOrFloatBitWidth(), bits,
                                                             /*isSigned=*/false,
                                                             /*implicitTrunc=*/true)));
  }
  Value number(float value) { return splat(f32(), builder.getF32FloatAttr(value)); }
  Value as(Type type, Value x) { return arith::BitcastOp::create(builder, loc, type, x); }
  Value extend(unsigned width, Value x) {
    return arith::ExtUIOp::create(builder, loc, integer(width), x);
  }
  Value truncate(unsigned width, Value x) {
    return arith::TruncIOp::create(builder, loc, integer(width), x);
  }
  template <typename OpTy> Value op(Value a, uint64_t b) {
    return OpTy::create(builder, loc, a, constant(a.getType(), b));
  }
  Value band(Value a, uint64_t b) { return op<arith::AndIOp>(a, b); }
  Value add(Value a, uint64_t b) { return op<arith::AddIOp>(a, b); }
  Value shl(Value a, unsigned b) { return op<arith::ShLIOp>(a, b); }
  Value shr(Value a, unsigned b) { return op<arith::ShRUIOp>(a, b); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value bor(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
  /// Patterns below have their upper bit clear, so a signed comparison, which AVX2 has, will do.
  Value above(Value a, uint64_t b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, a,
                                 constant(a.getType(), b));
  }
  Value equal(Value a, uint64_t b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a,
                                 constant(a.getType(), b));
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// x + 2^(shift - 1), less 1 where bit `shift` of x is clear: cutting `shift` bits then rounds to
  /// nearest even.
  Value addHalf(Value x, unsigned shift) {
    Value odd = band(shr(x, shift), 1);
    return add(add(x, (uint64_t(1) << (shift - 1)) - 1), odd);
  }

private:
  OpBuilder &builder;
  Location loc;
  VectorType vector;

  Value splat(Type like, TypedAttr scalar) {
    if (auto type = dyn_cast<VectorType>(like))
      return arith::ConstantOp::create(
          builder, loc, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef<Attribute>{scalar})));
    return arith::ConstantOp::create(builder, loc, scalar);
  }
};

constexpr uint64_t f32Infinity = 0x7f800000, f32Magnitude = 0x7fffffff;

/// An 8-bit format.
struct Float8 {
  unsigned mantissa; ///< explicit bits
  int bias;
  unsigned largest; ///< pattern of the largest number
  unsigned nan;

  static Float8 of(Type element) {
    return isa<Float8E4M3FNType>(element) ? Float8{3, 7, 0x7e, 0x7f} : Float8{2, 15, 0x7b, 0x7e};
  }
  /// The f32 pattern of 2^exponent.
  static uint64_t power(int exponent) { return uint64_t(exponent + 127) << 23; }
  unsigned shift() const { return 23 - mantissa; }
  uint64_t largestF32() const {
    return (uint64_t(largest) << shift()) + (uint64_t(127 - bias) << 23);
  }
};

Value widenFloat8(OpBuilder &builder, Location loc, Value x) {
  Bits b(builder, loc, x);
  bool e4m3 = isa<Float8E4M3FNType>(getElementTypeOrSelf(x));
  Value code = b.extend(16, b.as(b.integer(8), x));
  Type half = b.shaped(builder.getF16Type());
  auto extend = [&](Value pattern) -> Value {
    return arith::ExtFOp::create(builder, loc, b.f32(), b.as(half, pattern));
  };
  if (!e4m3)
    return extend(b.shl(code, 8));
  Value magnitude = b.band(code, 0x7f);
  Value sign = b.shl(b.band(code, 0x80), 8);
  Value scaled = extend(b.bor(b.shl(magnitude, 7), sign));
  Value number = arith::MulFOp::create(builder, loc, scaled, b.number(256.0f));
  return b.select(b.equal(magnitude, 0x7f), b.number(std::numeric_limits<float>::quiet_NaN()),
                  number);
}

Value narrowFloat8(OpBuilder &builder, Location loc, Value x, Type element) {
  Bits b(builder, loc, x);
  Float8 format = Float8::of(element);
  Value bits = b.as(b.integer(32), x);
  Value magnitude = b.band(bits, f32Magnitude), sign = b.band(b.shr(bits, 24), 0x80);
  Value isNaN = b.above(magnitude, f32Infinity);
  Value large = b.above(magnitude, format.largestF32());
  Value finite = b.select(large, b.constant(bits.getType(), format.largestF32()), magnitude);

  Value normal = b.shr(b.addHalf(finite, format.shift()), format.shift());
  normal = b.add(normal, -(uint64_t(127 - format.bias) << format.mantissa));
  int smallestNormal = 1 - format.bias;
  // f32 has 23 bits behind the point: at 2^e its numbers are 2^(e - 23) apart.
  int unit = smallestNormal - int(format.mantissa), anchor = unit + 23;
  Value anchored = arith::AddFOp::create(builder, loc, b.as(b.f32(), finite),
                                         b.number(std::ldexp(1.0f, anchor)));
  Value subnormal =
      b.add(b.as(b.integer(32), anchored), -Float8::power(anchor)); // may be the smallest normal
  Value code = b.select(b.above(finite, Float8::power(smallestNormal) - 1), normal, subnormal);
  code = b.select(isNaN, b.constant(bits.getType(), format.nan), code);
  return b.as(b.shaped(element), b.truncate(8, b.bor(code, sign)));
}

} // namespace

Value widenFloat(OpBuilder &builder, Location loc, Value x) {
  Type element = getElementTypeOrSelf(x);
  if (element.isF32())
    return x;
  if (nn::isF8(element))
    return widenFloat8(builder, loc, x);
  return arith::ExtFOp::create(builder, loc, Bits(builder, loc, x).f32(), x);
}

Value narrowFloat(OpBuilder &builder, Location loc, Value x, Type element) {
  if (getElementTypeOrSelf(x) == element)
    return x;
  if (nn::isF8(element))
    return narrowFloat8(builder, loc, x, element);
  return arith::TruncFOp::create(builder, loc, Bits(builder, loc, x).shaped(element), x);
}

Value roundToTf32(OpBuilder &builder, Location loc, Value x) {
  Bits b(builder, loc, x);
  constexpr unsigned cut = 13;
  Value bits = b.as(b.integer(32), x);
  Value rounded = b.band(b.addHalf(bits, cut), ~((uint64_t(1) << cut) - 1));
  Value special = b.above(b.band(bits, f32Magnitude), f32Infinity - 1);
  return b.as(b.f32(), b.select(special, bits, rounded));
}

Value roundStochastically(OpBuilder &builder, Location loc, Value x, Value u) {
  Bits b(builder, loc, x);
  Value bits = b.as(b.integer(32), x), magnitude = b.band(bits, f32Magnitude);
  // u < 1, so the product is below 2^16 and the conversion, signed or not, cuts towards 0.
  Value share = arith::FPToSIOp::create(builder, loc, b.integer(32),
                                        arith::MulFOp::create(builder, loc, u, b.number(65536.0f)));
  Value special = b.above(magnitude, f32Infinity - 1);
  // A NaN whose payload lies in the bits to be cut would become infinity: one bit above them stays.
  Value kept = b.select(b.above(magnitude, f32Infinity),
                        b.bor(bits, b.constant(bits.getType(), 0x00400000)), bits);
  Value pattern = b.shr(b.select(special, kept, b.add(bits, share)), 16);
  return b.as(b.shaped(builder.getBF16Type()), b.truncate(16, pattern));
}

} // namespace descent
