//===- FoldAccumulations.cpp - Products that add onto a dead tensor -------===//
//
// A weight used twice gets its gradient in two parts. After fold-epilogues the second product reads
// the first part in its epilogue and writes the sum to a third place. Where that epilogue is the
// addition alone, the sum can go where the first part was: no further tensor.
//
// The fusion keeps its ops and its meaning does not hang on the attribute; `accumulate` tells the
// plan that result and operand share their place, which generated epilogues allow, since they read
// each element before they write it. The operand must come from another kernel (not from a
// parameter or an input, which must survive) and have no other use, directly or through views.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_FOLDACCUMULATIONS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct FoldAccumulationsPass : descent::impl::FoldAccumulationsBase<FoldAccumulationsPass> {
  void runOnOperation() override {
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      for (auto fusion : function.getFunctionBody().front().getOps<exec::FusionOp>())
        visit(fusion);
    });
  }

private:
  void visit(exec::FusionOp fusion);
};

} // namespace

void FoldAccumulationsPass::visit(exec::FusionOp fusion) {
  Block &body = fusion.getBody().front();
  // A matrix product alone; the generators of convolutions have no accumulating form.
  Operation *product = nullptr;
  for (Operation &op : body)
    if (isa<ContractionOp>(op))
      product = &op;
  if (!product || body.getOperations().size() < 3)
    return;
  auto result = dyn_cast<RankedTensorType>(product->getResult(0).getType());
  for (Operation *add : product->getUsers()) {
    if (!isa<nn::AddOp>(add) || add->getResult(0).getType() != result)
      continue;
    for (Value operand : add->getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (!argument || argument.getType() != result)
        continue;
      if (body.getOperations().size() != 3 || fusion->getNumResults() != 1 ||
          !add->getResult(0).hasOneUse()) {
        ++declinedEpilogue;
        return;
      }
      if (!argument.hasOneUse() || !diesHere(fusion.getInputs()[argument.getArgNumber()], fusion)) {
        ++declinedLive;
        return;
      }
      fusion->setAttr(
          accumulateAttrName,
          IntegerAttr::get(IntegerType::get(fusion.getContext(), 64), argument.getArgNumber()));
      ++accumulations;
      return;
    }
  }
}
