//===- VerifyTrain.cpp - The end of the Differentiate phase ---------------===//
//
// What later phases rely on and no single op can check: which functions exist, what they return,
// that state changes in one commit at the end of
// @step and nowhere else, and that no parameter is forgotten or updated twice.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace descent {
#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct VerifyTrain : descent::impl::VerifyTrainBase<VerifyTrain> {
  void runOnOperation() override {
    if (failed(verifyFunctions()) || failed(verifyUpdates()))
      signalPassFailure();
  }

private:
  LogicalResult verifyFunctions();
  LogicalResult verifyUpdates();
};

} // namespace

/// The results that every program has come first; what passes such as insert-loss-scaling add
/// follows.
static LogicalResult verifyResults(train::FuncOp function, ArrayRef<StringRef> expected) {
  train::ReturnOp ret = function.getReturn();
  auto names = llvm::to_vector(ret.getNames().getAsValueRange<StringAttr>());
  if (ArrayRef(names).take_front(expected.size()) == expected)
    return success();
  InFlightDiagnostic error = ret.emitOpError()
                             << "of @" << function.getSymName() << " must return ";
  llvm::interleaveComma(expected, error);
  return error;
}

LogicalResult VerifyTrain::verifyFunctions() {
  auto step = getOperation().lookupSymbol<train::FuncOp>("step");
  auto evaluate = getOperation().lookupSymbol<train::FuncOp>("evaluate");
  if (!step || !evaluate)
    return getOperation().emitError()
           << "train.func @" << (step ? "evaluate" : "step") << " is missing";
  if (failed(verifyResults(
          step, {"loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"})) ||
      failed(verifyResults(evaluate, {"loss_sum", "loss_weight", "predictions"})))
    return failure();
  for (Operation &op : evaluate.getBody().front())
    if (isa<train::CommitOp, train::WriteOp, train::GradientOp>(op))
      return op.emitOpError("stands in @evaluate, which must not change state");
  Operation *last = step.getReturn()->getPrevNode();
  for (Operation &op : step.getBody().front()) {
    if (isa<train::GradientOp>(op))
      return op.emitOpError("is left over; insert-optimizer consumes it");
    if (isa<train::SeedOp>(op))
      return op.emitOpError("is left over; insert-loss-scaling replaces it");
    if (isa<train::WriteOp>(op))
      return op.emitOpError("stands outside train.commit");
    if (isa<train::CommitOp>(op) && &op != last)
      return op.emitOpError("must be the one commit, right before train.return");
  }
  if (!isa_and_nonnull<train::CommitOp>(last))
    return step.emitOpError("changes no state: train.commit is missing before train.return");
  return success();
}

LogicalResult VerifyTrain::verifyUpdates() {
  auto step = getOperation().lookupSymbol<train::FuncOp>("step");
  auto commit = cast<train::CommitOp>(step.getReturn()->getPrevNode());
  llvm::StringSet<> updated;
  for (auto update : commit.getBody().getOps<train::UpdateOp>())
    for (auto name : update.getParameters().getAsRange<FlatSymbolRefAttr>())
      if (!updated.insert(name.getValue()).second)
        return update.emitOpError() << "updates " << name << " a second time";
  for (auto parameter : getOperation().getOps<train::ParameterOp>())
    if (!parameter.getFrozen() && !updated.contains(parameter.getSymName()))
      return parameter.emitOpError()
             << "'" << parameter.getSymName() << "' is trainable but no train.update changes it";
  return success();
}
