//===- ExpandMath.cpp - Elementary functions as arithmetic ----------------===//
//
// LLVM has no vector form of exp or tanh on x86: an intrinsic on 16 lanes becomes 16 calls of libm.
// MLIR's polynomial approximations keep the lanes together. They stand here as a pass because
// upstream offers them as patterns only. Divisions that round up or down (from index arithmetic)
// and, on request, bf16 conversions are expanded in the same sweep; arith-expand would do that as
// well, but also splits maxnumf and minnumf, which x86 has instructions for.
//
// Masked stores of one lane become stores of vectors of one element. LLVM's x86 backend does that
// too, but where the stored vector is a truncation, which it has made part of the store before, it
// stores the element in its full width, over its neighbours.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"

using namespace mlir;

namespace descent {

#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"

namespace {

/// A masked store whose mask is known to hold the first lane alone.
struct StoreOneLane : OpRewritePattern<vector::MaskedStoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::MaskedStoreOp store,
                                PatternRewriter &rewriter) const override {
    auto mask = store.getMask().getDefiningOp<vector::ConstantMaskOp>();
    if (!mask || mask.getMaskDimSizes() != ArrayRef<int64_t>{1})
      return failure();
    Value element = vector::ExtractStridedSliceOp::create(
        rewriter, store.getLoc(), store.getValueToStore(), ArrayRef<int64_t>{0},
        ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
    rewriter.replaceOpWithNewOp<vector::StoreOp>(store, element, store.getBase(),
                                                 store.getIndices());
    return success();
  }
};

struct ExpandMathPass : impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    patterns.add<StoreOneLane>(&getContext());
    if (bf16) {
      arith::populateExpandBFloat16Patterns(patterns);
      // The bits go straight to memory: seen as bf16 on their way to a masked store that AVX2 has
      // to take apart, each would become a scalar bf16, which lives as f32 and needs a call to
      // become bits again.
      arith::BitcastOp::getCanonicalizationPatterns(patterns, &getContext());
    }
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace descent
