//===- FoldCasts.cpp - Casts that need not be -----------------------------===//
//
// insert-precision-casts and differentiate put casts wherever types meet. Three rules remove those
// that change nothing, or only round where nothing need be rounded:
//
//   1. A cast of an exact cast is one cast: f32 -> bf16 of bf16 -> f32 is nothing.
//   2. A product whose narrow result is widened to leave the backward pass, as the gradient of a
//   parameter, yields its f32 sum directly: gradients of weights are never rounded to the narrow
//   type.
//   3. A widening cast moves up through reshapes and transposes, where 2 can find it.
//
// Casts that round (f32 -> bf16 -> f32) stay, and so do narrow products that something in f32 reads
// (logits, the gradient of a residual): they are what the recipe asked for, and half the bytes.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/Train/Train.h"
#include "passes/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace descent {
#define GEN_PASS_DEF_FOLDCASTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

/// Whether every value of `from` is a value of `to`.
bool isExact(Type from, Type to) {
  auto source = dyn_cast<FloatType>(from), target = dyn_cast<FloatType>(to);
  return source && target &&
         (source == target ||
          APFloat::isRepresentableBy(source.getFloatSemantics(), target.getFloatSemantics()));
}

Type elementOf(Value value) { return getElementTypeOrSelf(value); }

bool isAView(Operation *op) { return isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp>(op); }

/// Whether a value goes nowhere but into gradients of parameters, alone or added to others (a
/// parameter used twice).
bool leavesBackward(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<train::GradientOp>(user) ||
           ((isAView(user) || isa<nn::AddOp>(user)) && leavesBackward(user->getResult(0)));
  });
}

class CastOfCast : public OpRewritePattern<nn::CastOp> {
public:
  CastOfCast(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}
  LogicalResult matchAndRewrite(nn::CastOp cast, PatternRewriter &rewriter) const override {
    auto inner = cast.getX().getDefiningOp<nn::CastOp>();
    if (!inner || !isExact(elementOf(inner.getX()), elementOf(inner.getY())))
      return failure();
    ++count;
    if (inner.getX().getType() == cast.getY().getType())
      rewriter.replaceOp(cast, inner.getX());
    else
      rewriter.replaceOpWithNewOp<nn::CastOp>(cast, inner.getX(), cast.getToAttr());
    return success();
  }

private:
  Pass::Statistic &count;
};

class WidenedSum : public OpRewritePattern<nn::CastOp> {
public:
  WidenedSum(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}
  LogicalResult matchAndRewrite(nn::CastOp cast, PatternRewriter &rewriter) const override {
    auto sum = cast.getX().getDefiningOp<AccumulatingOp>();
    Type wanted = elementOf(cast.getY());
    if (!sum || sum->getNumResults() != 1 || !cast.getX().hasOneUse() || !wanted.isF32() ||
        !isExact(elementOf(cast.getX()), wanted) || !leavesBackward(cast.getY()))
      return failure();
    ++count;
    rewriter.modifyOpInPlace(sum, [&] {
      sum.setResultTypeAttr(TypeAttr::get(wanted));
      sum->getResult(0).setType(llvm::cast<RankedTensorType>(cast.getY().getType()));
    });
    rewriter.replaceOp(cast, sum->getResult(0));
    return success();
  }

private:
  Pass::Statistic &count;
};

class CastThroughView : public OpRewritePattern<nn::CastOp> {
public:
  CastThroughView(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}
  LogicalResult matchAndRewrite(nn::CastOp cast, PatternRewriter &rewriter) const override {
    Operation *view = cast.getX().getDefiningOp();
    if (!isAView(view) || !cast.getX().hasOneUse() || !leavesBackward(cast.getY()))
      return failure();
    Value source = view->getOperand(0);
    Type wanted = elementOf(cast.getY());
    Operation *def = source.getDefiningOp();
    if (!(isa_and_nonnull<AccumulatingOp>(def) || isAView(def)) || !source.hasOneUse() ||
        !isExact(elementOf(source), wanted))
      return failure();
    ++count;
    rewriter.setInsertionPoint(view);
    Value widened = nn::CastOp::create(rewriter, cast.getLoc(), source, cast.getToAttr());
    Operation *moved = rewriter.clone(*view);
    moved->setOperand(0, widened);
    moved->getResult(0).setType(cast.getY().getType());
    rewriter.replaceOp(cast, moved->getResult(0));
    return success();
  }

private:
  Pass::Statistic &count;
};

struct FoldCasts : descent::impl::FoldCastsBase<FoldCasts> {
  using FoldCastsBase::FoldCastsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<CastOfCast>(&getContext(), folded);
    patterns.add<WidenedSum>(&getContext(), sums);
    patterns.add<CastThroughView>(&getContext(), moved);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
