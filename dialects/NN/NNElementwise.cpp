//===- NNElementwise.cpp - The arithmetic of one element ------------------===//
//
// emitElement of every elementwise op, on scalars or vectors alike: arith and math ops are
// elementwise themselves, so only the type of a constant depends on which it is. Narrow floats are
// widened, computed in f32 and rounded once at the end; a chain inside one kernel then rounds once
// an op, as the program says, and never inside an op.
//
// Only `contract` is set on float arithmetic: NaN, infinities and signed zeros behave as IEEE 754
// says, and nothing is reassociated.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

namespace {

/// `element` in the shape of `sample`: itself for a scalar, a vector of it for a vector.
Type withShapeOf(Type sample, Type element) {
  if (auto vector = dyn_cast<VectorType>(sample))
    return vector.cloneWith(std::nullopt, element);
  return element;
}

/// Arithmetic on scalars or vectors of one shape. Floats are f32 here.
struct Emitter {
  OpBuilder &builder;
  Location loc;

  arith::FastMathFlagsAttr flags() {
    return arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::contract);
  }
  Value splat(TypedAttr scalar, Type like) {
    if (auto vector = dyn_cast<VectorType>(like))
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(vector, Attribute(scalar)));
    return arith::ConstantOp::create(builder, loc, scalar);
  }
  Value constant(double value, Type like) {
    return splat(builder.getFloatAttr(getElementTypeOrSelf(like), value), like);
  }
  Value integer(int64_t value, Type like) {
    return splat(builder.getIntegerAttr(getElementTypeOrSelf(like), value), like);
  }
  template <typename OpTy> Value unary(Value x) { return OpTy::create(builder, loc, x, flags()); }
  template <typename OpTy> Value binary(Value a, Value b) {
    return OpTy::create(builder, loc, a, b, flags());
  }
  Value add(Value a, Value b) { return binary<arith::AddFOp>(a, b); }
  Value add(Value a, double b) { return add(a, constant(b, a.getType())); }
  Value sub(Value a, Value b) { return binary<arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) { return binary<arith::MulFOp>(a, b); }
  Value mul(Value a, double b) { return mul(a, constant(b, a.getType())); }
  Value div(Value a, Value b) { return binary<arith::DivFOp>(a, b); }
  Value neg(Value x) { return unary<arith::NegFOp>(x); }
  Value exp(Value x) { return unary<math::ExpOp>(x); }

  /// Narrow floats to f32; everything else as it is.
  Value widen(Value x) {
    return isa<FloatType>(getElementTypeOrSelf(x)) ? widenFloat(builder, loc, x) : x;
  }
  /// f32 to the element type of a result, rounding to nearest even.
  Value narrow(Value x, Type element) { return narrowFloat(builder, loc, x, element); }

  /// 1 / (1 + exp(-x)): relative accuracy holds for negative x too, where 0.5 + 0.5 tanh(x / 2)
  /// would cancel.
  Value sigmoid(Value x) {
    Value one = constant(1.0, x.getType());
    return div(one, add(exp(neg(x)), one));
  }
  /// x / (1 + exp(-w)).
  Value timesSigmoid(Value x, Value w) { return div(x, add(exp(neg(w)), 1.0)); }

  static constexpr double sqrtTwoOverPi = 0.79788456080286535588;
  static constexpr double geluCubic = 0.044715;

  /// 2 sqrt(2 / pi) (x + 0.044715 x^3): 0.5 (1 + tanh(w / 2)) = sigmoid(w) turns the tanh form into
  /// one exponential.
  Value geluArgument(Value x, Value square) {
    return mul(mul(x, add(mul(square, geluCubic), 1.0)), 2.0 * sqrtTwoOverPi);
  }
  Value gelu(Value x, GeluForm form) {
    if (form == GeluForm::tanh)
      return timesSigmoid(x, geluArgument(x, mul(x, x)));
    return mul(mul(x, 0.5), add(unary<math::ErfOp>(mul(x, std::numbers::sqrt2 / 2)), 1.0));
  }
  Value geluGrad(Value x, GeluForm form) {
    Value square = mul(x, x);
    if (form == GeluForm::tanh) {
      // d/dx x s(w) = s + x s (1 - s) w'.
      Value s = sigmoid(geluArgument(x, square));
      Value slope = mul(add(mul(square, 3.0 * geluCubic), 1.0), 2.0 * sqrtTwoOverPi);
      Value rest = mul(mul(x, s), mul(sub(constant(1.0, x.getType()), s), slope));
      return add(s, rest);
    }
    // Phi(x) + x phi(x).
    Value phi = mul(exp(mul(square, -0.5)), sqrtTwoOverPi * 0.5);
    Value cumulative = mul(add(unary<math::ErfOp>(mul(x, std::numbers::sqrt2 / 2)), 1.0), 0.5);
    return add(cumulative, mul(x, phi));
  }

  /// Truncating division in which no operand traps: x / 0 is 0, and the smallest integer over -1
  /// wraps to itself.
  Value divInteger(Value a, Value b) {
    Value zero = integer(0, b.getType()), one = integer(1, b.getType());
    Value isZero = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, b, zero);
    Value isMinusOne =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, b, integer(-1, b.getType()));
    Value unsafe = arith::OrIOp::create(builder, loc, isZero, isMinusOne);
    Value divisor = arith::SelectOp::create(builder, loc, unsafe, one, b);
    Value quotient = arith::DivSIOp::create(builder, loc, a, divisor);
    Value negated = arith::SubIOp::create(builder, loc, zero, a);
    quotient = arith::SelectOp::create(builder, loc, isMinusOne, negated, quotient);
    return arith::SelectOp::create(builder, loc, isZero, zero, quotient);
  }

  Value floatToInteger(Value x, Type element) {
    Type type = withShapeOf(x.getType(), element);
    if (element.isInteger(1)) // any nonzero value, NaN included, is true
      return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, x,
                                   constant(0.0, x.getType()));
    // The conversion itself is undefined outside the type's range. NaN becomes 0 and the rest
    // saturates.
    unsigned width = element.getIntOrFloatBitWidth();
    double bound = std::ldexp(1.0, static_cast<int>(width) - 1);
    Value ordered = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, x, x);
    Value low = constant(-bound, x.getType()), high = constant(bound, x.getType());
    Value atLow = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, x, low);
    Value atHigh = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, x, high);
    Value outside = arith::OrIOp::create(builder, loc, atLow, atHigh);
    Value zero = constant(0.0, x.getType());
    Value safe = arith::SelectOp::create(builder, loc, ordered, x, zero);
    safe = arith::SelectOp::create(builder, loc, outside, zero, safe);
    Value result = arith::FPToSIOp::create(builder, loc, type, safe);
    int64_t largest = width == 64 ? INT64_MAX : (int64_t{1} << (width - 1)) - 1;
    result = arith::SelectOp::create(builder, loc, atHigh, integer(largest, type), result);
    return arith::SelectOp::create(builder, loc, atLow, integer(-largest - 1, type), result);
  }

  Value convert(Value x, Type to) {
    Type from = getElementTypeOrSelf(x);
    Type type = withShapeOf(x.getType(), to);
    if (from == to)
      return x;
    if (isa<FloatType>(from))
      return isa<FloatType>(to) ? narrow(widen(x), to) : floatToInteger(widen(x), to);
    if (isa<FloatType>(to)) {
      Type wide = withShapeOf(x.getType(), builder.getF32Type());
      Value f = from.isInteger(1) ? Value(arith::UIToFPOp::create(builder, loc, wide, x))
                                  : Value(arith::SIToFPOp::create(builder, loc, wide, x));
      return narrow(f, to);
    }
    if (to.isInteger(1))
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, x,
                                   integer(0, x.getType()));
    if (from.isInteger(1))
      return arith::ExtUIOp::create(builder, loc, type, x);
    if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtSIOp::create(builder, loc, type, x);
    return arith::TruncIOp::create(builder, loc, type, x);
  }
};

bool isFloat(Value x) { return isa<FloatType>(getElementTypeOrSelf(x)); }
bool isBool(Value x) { return getElementTypeOrSelf(x).isInteger(1); }

/// Widens x, applies `compute` in f32 and rounds to x's type.
template <typename Compute>
Value floatUnary(OpBuilder &builder, Location loc, Value x, Compute compute) {
  Emitter e{builder, loc};
  return e.narrow(compute(e, e.widen(x)), getElementTypeOrSelf(x));
}

/// Float form in f32, integer form, and the form on booleans.
template <typename Float, typename Integer, typename Bool>
Value arithmetic(OpBuilder &builder, Location loc, ValueRange operands) {
  Value a = operands[0], b = operands[1];
  Emitter e{builder, loc};
  if (isFloat(a))
    return e.narrow(e.binary<Float>(e.widen(a), e.widen(b)), getElementTypeOrSelf(a));
  if (isBool(a))
    return Bool::create(builder, loc, a, b);
  return Integer::create(builder, loc, a, b);
}

} // namespace

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

#define DESCENT_FLOAT_UNARY(Op, expression)                                                        \
  Value Op::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {                   \
    return floatUnary(builder, loc, operands[0],                                                   \
                      [&](Emitter &e, Value x) -> Value { return expression; });                   \
  }

DESCENT_FLOAT_UNARY(ExpOp, e.exp(x))
DESCENT_FLOAT_UNARY(LogOp, e.unary<math::LogOp>(x))
DESCENT_FLOAT_UNARY(SqrtOp, e.unary<math::SqrtOp>(x))
DESCENT_FLOAT_UNARY(RsqrtOp, e.unary<math::RsqrtOp>(x))
DESCENT_FLOAT_UNARY(SinOp, e.unary<math::SinOp>(x))
DESCENT_FLOAT_UNARY(CosOp, e.unary<math::CosOp>(x))
DESCENT_FLOAT_UNARY(TanhOp, e.unary<math::TanhOp>(x))
DESCENT_FLOAT_UNARY(ErfOp, e.unary<math::ErfOp>(x))
DESCENT_FLOAT_UNARY(SigmoidOp, e.sigmoid(x))
// arith.maximumf, unlike maxnumf, lets a NaN through: a diverged run must not look healthy behind a
// relu.
DESCENT_FLOAT_UNARY(ReluOp, e.binary<arith::MaximumFOp>(x, e.constant(0.0, x.getType())))
DESCENT_FLOAT_UNARY(SiluOp, e.timesSigmoid(x, x))
DESCENT_FLOAT_UNARY(GeluOp, e.gelu(x, getForm()))
DESCENT_FLOAT_UNARY(GeluGradOp, e.geluGrad(x, getForm()))

#undef DESCENT_FLOAT_UNARY

Value NegOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  Value x = operands[0];
  Emitter e{builder, loc};
  if (isFloat(x))
    return e.narrow(e.neg(e.widen(x)), getElementTypeOrSelf(x));
  return arith::SubIOp::create(builder, loc, e.integer(0, x.getType()), x);
}

Value AbsOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  Value x = operands[0];
  Emitter e{builder, loc};
  if (isFloat(x))
    return e.narrow(e.unary<math::AbsFOp>(e.widen(x)), getElementTypeOrSelf(x));
  return isBool(x) ? x : Value(math::AbsIOp::create(builder, loc, x));
}

//===----------------------------------------------------------------------===//
// Two and three operands
//===----------------------------------------------------------------------===//

// Booleans are integers modulo 2 under add, sub and mul, and ordered false < true.
Value AddOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arithmetic<arith::AddFOp, arith::AddIOp, arith::XOrIOp>(builder, loc, operands);
}
Value SubOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arithmetic<arith::SubFOp, arith::SubIOp, arith::XOrIOp>(builder, loc, operands);
}
Value MulOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arithmetic<arith::MulFOp, arith::MulIOp, arith::AndIOp>(builder, loc, operands);
}
Value MaximumOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arithmetic<arith::MaximumFOp, arith::MaxSIOp, arith::OrIOp>(builder, loc, operands);
}
Value MinimumOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arithmetic<arith::MinimumFOp, arith::MinSIOp, arith::AndIOp>(builder, loc, operands);
}

Value DivOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  Value a = operands[0], b = operands[1];
  Emitter e{builder, loc};
  if (isFloat(a))
    return e.narrow(e.div(e.widen(a), e.widen(b)), getElementTypeOrSelf(a));
  if (isBool(a)) // x / 0 is 0 and x / 1 is x
    return arith::AndIOp::create(builder, loc, a, b);
  return e.divInteger(a, b);
}

Value PowOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  Emitter e{builder, loc};
  return e.narrow(e.binary<math::PowFOp>(e.widen(operands[0]), e.widen(operands[1])),
                  getElementTypeOrSelf(operands[0]));
}

Value CompareOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  Value a = operands[0], b = operands[1];
  Emitter e{builder, loc};
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  // A NaN is unequal to everything and in no order with anything.
  static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  static constexpr I integers[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static constexpr I booleans[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  auto index = static_cast<size_t>(getPredicate());
  if (isFloat(a))
    return arith::CmpFOp::create(builder, loc, floats[index], e.widen(a), e.widen(b));
  return arith::CmpIOp::create(builder, loc, isBool(a) ? booleans[index] : integers[index], a, b);
}

Value WhereOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return arith::SelectOp::create(builder, loc, operands[0], operands[1], operands[2]);
}

Value CastOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return Emitter{builder, loc}.convert(operands[0], getElementTypeOrSelf(getY()));
}

Value RoundTf32Op::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return roundToTf32(builder, loc, operands[0]);
}

Value RoundStochasticallyOp::emitElement(OpBuilder &builder, Location loc, ValueRange operands) {
  return roundStochastically(builder, loc, operands[0], operands[1]);
}

//===----------------------------------------------------------------------===//
// Into linalg
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> descent::lowerElementwiseToLinalg(Operation *op, OpBuilder &builder,
                                                                ValueRange operands) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!elementwise || !type || !type.hasStaticShape())
    return op->emitOpError() << "has no elementwise form in linalg: its result must be one tensor "
                                "of static shape, not "
                             << op->getResult(0).getType();
  Location loc = op->getLoc();
  int64_t rank = type.getRank();

  // A splat constant becomes a scalar of the body; every other operand is read through a map that
  // aligns its axes at the end and pins axes of size 1.
  SmallVector<Value> inputs;
  SmallVector<TypedAttr> literals(operands.size());
  SmallVector<AffineMap> maps;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    DenseElementsAttr splat;
    if (matchPattern(operand, m_Constant(&splat)) && splat.isSplat()) {
      literals[index] = splat.getSplatValue<TypedAttr>();
      continue;
    }
    auto operandType = cast<RankedTensorType>(operand.getType());
    SmallVector<AffineExpr> exprs;
    for (int64_t axis = 0; axis < operandType.getRank(); ++axis) {
      int64_t position = rank - operandType.getRank() + axis;
      exprs.push_back(operandType.getDimSize(axis) == 1 && type.getDimSize(position) != 1
                          ? builder.getAffineConstantExpr(0)
                          : builder.getAffineDimExpr(position));
    }
    maps.push_back(AffineMap::get(rank, 0, exprs, builder.getContext()));
    inputs.push_back(operand);
  }
  maps.push_back(builder.getMultiDimIdentityMap(rank));

  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, inputs, empty, maps, iterators,
      [&](OpBuilder &nested, Location bodyLoc, ValueRange arguments) {
        SmallVector<Value> elements;
        size_t next = 0;
        for (TypedAttr literal : literals)
          elements.push_back(literal ? Value(arith::ConstantOp::create(nested, bodyLoc, literal))
                                     : arguments[next++]);
        linalg::YieldOp::create(nested, bodyLoc,
                                elementwise.emitElement(nested, bodyLoc, elements));
      });
  return SmallVector<Value>{generic.getResult(0)};
}
