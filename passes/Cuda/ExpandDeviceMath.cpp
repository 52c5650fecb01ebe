//===- ExpandDeviceMath.cpp - Elementary functions on a device ------------===//
//
// convert-gpu-to-nvvm makes calls of CUDA's libdevice of the math dialect, and libdevice is not
// part of what Descent ships. What a device has an instruction for becomes that instruction; an
// exponential and a power are built on its base-2 exponential, with the rounding error of the
// argument carried along, because that error, not the instruction's, is what f32 would notice; the
// rest are MLIR's polynomials, the same as on CPUs. Vectors are taken apart only where an
// instruction has no vector form in LLVM: device registers hold scalars in any case.
//
// NaN, infinities and zeros come out as IEEE 754 and C say, powers included. Errors, in units in
// the last place of f32: exp and exp2 2, rsqrt 1, sqrt and division rounded correctly, powf 3.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace descent {

#define GEN_PASS_DEF_EXPANDDEVICEMATH
#include "passes/Passes.h.inc"

namespace {

/// Arithmetic on f32 or on vectors of it. Nothing is marked `contract`: where an error term is
/// computed, what is fused is written as such.
struct Floats {
  PatternRewriter &b;
  Location loc;
  Type type; ///< of all values: f32 or a vector of f32

  Type shaped(Type element) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Type bits() const { return shaped(b.getI32Type()); }
  Value splat(TypedAttr scalar) {
    if (auto vector = dyn_cast<VectorType>(shaped(scalar.getType())))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, Attribute(scalar)));
    return arith::ConstantOp::create(b, loc, scalar);
  }
  Value number(double value) { return splat(b.getF32FloatAttr(static_cast<float>(value))); }
  Value integer(int32_t value) { return splat(b.getI32IntegerAttr(value)); }

  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) { return LLVM::FMAOp::create(b, loc, x, y, z); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }

  /// An intrinsic of LLVM's that takes vectors too.
  Value intrinsic(StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), operands)
        .getResults();
  }
  Value absolute(Value x) { return intrinsic("llvm.fabs", x); }

  /// An instruction on one f32, for each element.
  Value instruction(StringRef name, Value x) {
    auto vector = dyn_cast<VectorType>(type);
    auto call = [&](Value element) -> Value {
      return LLVM::CallIntrinsicOp::create(b, loc, Type(b.getF32Type()), b.getStringAttr(name),
                                           ValueRange(element))
          .getResults();
    };
    if (!vector)
      return call(x);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(call(vector::ExtractOp::create(b, loc, x, ArrayRef<int64_t>{i})));
    return vector::FromElementsOp::create(b, loc, vector, elements);
  }

  Value exp2(Value x) { return instruction("llvm.nvvm.ex2.approx.f32", x); }
  /// 2 ^ (high + low), where low is below half a unit in high's last place, or a NaN where high is
  /// infinite.
  Value exp2(Value high, Value low) {
    Value power = exp2(high);
    Value corrected = fma(power, mul(low, number(std::numbers::ln2)), power);
    // Behind the largest power there is nothing to correct, and infinity less something is a NaN.
    Value inside = compare(arith::CmpFPredicate::OLT, absolute(high), number(128.0));
    return select(inside, corrected, power);
  }
};

/// A constant as the sum of two f32.
struct Split {
  double high, low;
  explicit Split(double value) : high(static_cast<float>(value)), low(value - high) {}
};

Value expandExp(Floats &f, math::ExpOp op) {
  const Split log2e(std::numbers::log2e);
  Value x = op.getOperand(), factor = f.number(log2e.high);
  Value high = f.mul(x, factor);
  Value low = f.fma(x, f.number(log2e.low), f.fma(x, factor, f.neg(high)));
  return f.exp2(high, low);
}

Value expandExp2(Floats &f, math::Exp2Op op) { return f.exp2(op.getOperand()); }

Value expandSqrt(Floats &f, math::SqrtOp op) {
  return f.instruction("llvm.nvvm.sqrt.rn.f", op.getOperand());
}
Value expandRsqrt(Floats &f, math::RsqrtOp op) {
  return f.instruction("llvm.nvvm.rsqrt.approx.f", op.getOperand());
}

Value expandLog10(Floats &f, math::Log10Op op) {
  return f.mul(math::LogOp::create(f.b, f.loc, op.getOperand()), f.number(std::numbers::log10e));
}

/// log2 |x| = high + low for a finite nonzero x, to about 2^-32 of itself: with x = 2^e m, m near 1
/// and s = (m - 1) / (m + 1), it is e + 2 / ln 2 (s + s^3 / 3 + s^5 / 5 + ...), where s and the
/// first product are kept with their remainders.
std::pair<Value, Value> splitLog2(Floats &f, Value magnitude) {
  OpBuilder &b = f.b;
  Location loc = f.loc;
  // Subnormal numbers get an exponent of their own.
  Value tiny = f.compare(arith::CmpFPredicate::OLT, magnitude, f.number(0x1p-126));
  Value normal = f.select(tiny, f.mul(magnitude, f.number(0x1p24)), magnitude);
  Value bias = f.select(tiny, f.number(-24.0), f.number(0.0));
  // The mantissa lies in [3/4, 3/2).
  constexpr int32_t threeQuarters = 0x3f400000;
  Value pattern = arith::BitcastOp::create(b, loc, f.bits(), normal);
  Value above = arith::SubIOp::create(b, loc, pattern, f.integer(threeQuarters));
  Value exponent =
      arith::AndIOp::create(b, loc, above, f.integer(static_cast<int32_t>(0xff800000)));
  Value m =
      arith::BitcastOp::create(b, loc, f.type, arith::SubIOp::create(b, loc, pattern, exponent));
  Value scaled = arith::SIToFPOp::create(b, loc, f.type, exponent);
  Value e = f.fma(scaled, f.number(0x1p-23), bias);

  Value one = f.number(1.0);
  Value numerator = f.sub(m, one), denominator = f.add(m, one);
  Value lost = f.sub(m, f.sub(denominator, one)); // of the denominator
  Value s = f.div(numerator, denominator);
  Value rest = f.fma(f.neg(s), denominator, numerator);
  Value sLow = f.div(f.fma(f.neg(s), lost, rest), denominator);
  Value square = f.mul(s, s);
  Value series = f.number(1.0 / 11);
  for (int odd : {9, 7, 5, 3})
    series = f.fma(series, square, f.number(1.0 / odd));
  Value tail = f.fma(f.mul(s, square), series, sLow);

  const Split factor(2.0 / std::numbers::ln2);
  Value first = f.mul(s, f.number(factor.high));
  Value second = f.fma(s, f.number(factor.high), f.neg(first));
  second = f.fma(s, f.number(factor.low), second);
  second = f.fma(tail, f.number(factor.high), second);
  // |e| is 0 or above |first|, so the sum's error is exact.
  Value high = f.add(e, first);
  Value low = f.add(f.add(f.sub(e, high), first), second);
  // The tail is far above a unit in high's last place.
  Value total = f.add(high, low);
  return {total, f.sub(low, f.sub(total, high))};
}

Value expandPow(Floats &f, math::PowFOp op) {
  using P = arith::CmpFPredicate;
  Value x = op.getLhs(), y = op.getRhs();
  Value zero = f.number(0.0), one = f.number(1.0);
  Value infinity = f.number(std::numeric_limits<double>::infinity());
  Value magnitude = f.absolute(x);
  auto [logHigh, logLow] = splitLog2(f, magnitude);
  Value high = f.mul(y, logHigh);
  Value low = f.fma(y, logLow, f.fma(y, logHigh, f.neg(high)));
  Value power = f.exp2(high, low);

  // |x| is 0, 1 or infinite, where the logarithm is not what the power needs.
  Value rises = f.compare(P::OGT, y, zero);
  power = f.select(f.compare(P::OEQ, magnitude, zero), f.select(rises, zero, infinity), power);
  power = f.select(f.compare(P::OEQ, magnitude, infinity), f.select(rises, infinity, zero), power);
  power = f.select(f.compare(P::OEQ, magnitude, one), one, power);

  // A negative base has powers at integers only; from 2^24 on all f32 are even integers.
  Value isInteger = f.compare(P::OEQ, f.intrinsic("llvm.floor", y), y);
  Value half = f.mul(y, f.number(0.5));
  Value isHalfInteger = f.compare(P::UNE, f.intrinsic("llvm.floor", half), half);
  Value signedBase = f.intrinsic("llvm.copysign", {one, x});
  Value negative = f.compare(P::OLT, signedBase, zero);
  Value flips = f.both(negative, f.both(isInteger, isHalfInteger));
  power = f.select(flips, f.neg(power), power);
  Value undefined = f.both(f.compare(P::OLT, x, zero),
                           f.both(f.compare(P::ONE, magnitude, infinity),
                                  f.compare(P::UNE, f.intrinsic("llvm.floor", y), y)));
  Value nan = f.number(std::numeric_limits<double>::quiet_NaN());
  power = f.select(undefined, nan, power);
  power = f.select(f.compare(P::UNO, x, y), nan, power);
  // Whatever the other one is, NaN included.
  return f.select(f.either(f.compare(P::OEQ, y, zero), f.compare(P::OEQ, x, one)), one, power);
}

template <typename OpTy> struct Expand : OpRewritePattern<OpTy> {
  using Expansion = Value (*)(Floats &, OpTy);
  Expand(MLIRContext *context, Expansion expansion)
      : OpRewritePattern<OpTy>(context, /*benefit=*/10), expansion(expansion) {}
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType();
    auto vector = dyn_cast<VectorType>(type);
    if (!getElementTypeOrSelf(type).isF32() || (vector && vector.getRank() != 1))
      return failure();
    Floats floats{rewriter, op.getLoc(), type};
    rewriter.replaceOp(op, expansion(floats, op));
    return success();
  }
  Expansion expansion;
};

/// An op that is one of LLVM's intrinsics, on any float type and on vectors.
template <typename OpTy> struct ToIntrinsic : OpRewritePattern<OpTy> {
  ToIntrinsic(MLIRContext *context, StringRef name)
      : OpRewritePattern<OpTy>(context, /*benefit=*/10), name(name) {}
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    auto call = LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(), op->getResult(0).getType(),
                                              rewriter.getStringAttr(name), op->getOperands());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
  StringRef name;
};

template <typename From, typename To> struct Rename : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op->getResult(0).getType(), op->getOperands());
    return success();
  }
};

struct ExpandAbs : OpRewritePattern<math::AbsIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::AbsIOp op, PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Value zero =
        arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getZeroAttr(x.getType()));
    Value negated = arith::SubIOp::create(rewriter, op.getLoc(), zero, x);
    rewriter.replaceOpWithNewOp<arith::MaxSIOp>(op, x, negated);
    return success();
  }
};

struct ExpandDeviceMathPass : impl::ExpandDeviceMathBase<ExpandDeviceMathPass> {
  using ExpandDeviceMathBase::ExpandDeviceMathBase;
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add(std::make_unique<Expand<math::ExpOp>>(context, expandExp));
    patterns.add(std::make_unique<Expand<math::Exp2Op>>(context, expandExp2));
    patterns.add(std::make_unique<Expand<math::SqrtOp>>(context, expandSqrt));
    patterns.add(std::make_unique<Expand<math::RsqrtOp>>(context, expandRsqrt));
    patterns.add(std::make_unique<Expand<math::Log10Op>>(context, expandLog10));
    patterns.add(std::make_unique<Expand<math::PowFOp>>(context, expandPow));
    patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
    patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
    patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
    patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil");
    patterns.add<ToIntrinsic<math::TruncOp>>(context, "llvm.trunc");
    patterns.add<ToIntrinsic<math::RoundOp>>(context, "llvm.round");
    patterns.add<ToIntrinsic<math::RoundEvenOp>>(context, "llvm.roundeven");
    patterns.add<ToIntrinsic<math::CtPopOp>>(context, "llvm.ctpop");
    // maxnum and minnum take the number where one operand is a NaN, as those of arith do.
    patterns.add<Rename<arith::MaxNumFOp, LLVM::MaxNumOp>, Rename<arith::MinNumFOp, LLVM::MinNumOp>,
                 Rename<math::FmaOp, LLVM::FMAOp>, ExpandAbs>(context);
    auto all = [](StringRef) { return true; };
    populateMathF32ExpansionPatterns(patterns, all);
    populateMathPolynomialApproximationPatterns(patterns, all);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    WalkResult left = getOperation()->walk([](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) && !isa<arith::RemFOp>(op))
        return WalkResult::advance();
      op->emitOpError("has no form in device code for ")
          << op->getResult(0).getType() << "; expand-device-math would have to learn one";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace descent
