//===- DecomposeOps.cpp - Named computations become primitives ------------===//
//
// Fusion forms kernels of elementwise ops and reductions over the last or the first axes; softmax,
// layer_norm, the losses and reductions over other axes are names for programs of those. They are
// kept until after differentiation, because their gradients are known in closed form.
//
//   1. Each DecomposableOp builds its replacement in front of itself; what the replacement holds is
//   visited in turn.
//   2. An op that returns its own results is primitive already.
//   3. Equal ops are merged by the CSE that follows in the pipeline, not here: a gradient then
//   finds its forward's statistics.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_DECOMPOSEOPS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct DecomposeOps : descent::impl::DecomposeOpsBase<DecomposeOps> {
  void runOnOperation() override {
    SmallVector<DecomposableOp> worklist;
    getOperation()->walk([&](DecomposableOp op) { worklist.push_back(op); });
    // In program order: an op is replaced before its users are built anew from it.
    for (size_t next = 0; next < worklist.size(); ++next) {
      DecomposableOp op = worklist[next];
      OpBuilder builder(op);
      Operation *before = op->getPrevNode();
      FailureOr<SmallVector<Value>> values = op.decompose(builder);
      if (failed(values))
        return signalPassFailure();
      if (llvm::equal(*values, op->getResults()))
        continue;
      Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
      for (Operation *built = first; built != op.getOperation(); built = built->getNextNode())
        if (auto nested = dyn_cast<DecomposableOp>(built))
          worklist.push_back(nested);
      op->replaceAllUsesWith(*values);
      op->erase();
      ++decomposed;
    }
  }
};

} // namespace
