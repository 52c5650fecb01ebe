//===- ExpandMath.cpp - Elementary functions as arithmetic ----------------===//
//
// LLVM has no vector form of exp or tanh on x86: an intrinsic on 16 lanes becomes 16 calls of libm.
// MLIR's polynomial approximations keep the lanes together. They stand here as a pass because
// upstream offers them as patterns only. Divisions that round up or down (from index arithmetic)
// and, on request, bf16 conversions are expanded in the same sweep; arith-expand would do that as
// well, but also splits maxnumf and minnumf, which x86 has instructions for.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"

using namespace mlir;

namespace descent {

#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"

namespace {

struct ExpandMathPass : impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (bf16)
      arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace descent
