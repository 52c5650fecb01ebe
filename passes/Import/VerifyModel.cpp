//===- VerifyModel.cpp - What Differentiate may rely on -------------------===//
//
// The end of the Import phase. Rejected, each with its reason:
//   * anything but one nn.model at the top; instances inside it;
//   * ops of other dialects, and ops that only training creates;
//   * sizes that are not known;
//   * parameters that do nothing: unused ones, and trainable ones without a path to the loss
//   (through values of floating type, as gradients flow);
//   * a loss weight that depends on a trainable parameter: the step divides by it, and its gradient
//   is not taken.
//
// All parameters without a path are reported, not only the first.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct VerifyModel : descent::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override;

private:
  LogicalResult verifyParameters(nn::ModelOp model);
};

} // namespace

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// Everything that `root` is computed from, as far as gradients flow. Of the weight that a loss op
/// yields only the class weights are a source: it counts targets.
static DenseSet<Value> collectSources(Value root, bool isWeight) {
  DenseSet<Value> values;
  SmallVector<Value> pending{root};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!isFloat(value) || !values.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (!isWeight || !isa<RowWeightedOp>(op))
      llvm::append_range(pending, op->getOperands());
    else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op); loss && loss.getClassWeights())
      pending.push_back(loss.getClassWeights());
  }
  return values;
}

static LogicalResult verifyOp(Operation &op) {
  if (op.getDialect() != op.getContext()->getLoadedDialect<nn::NNDialect>())
    return op.emitOpError("does not belong into a model, which holds nn ops only");
  if (isa<nn::InstantiateOp>(op))
    return op.emitOpError("is still here; run inline-modules first");
  if (op.hasTrait<nn::GradientOnly>())
    return op.emitOpError("is created by differentiation and may not stand in a model");
  for (Type type : op.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
      return op.emitOpError() << "has a result of type " << type << "; run bind-batch first";
  return success();
}

LogicalResult VerifyModel::verifyParameters(nn::ModelOp model) {
  DenseSet<Value> behindSum = collectSources(model.getLoss().getSum(), /*isWeight=*/false);
  DenseSet<Value> behindWeight = collectSources(model.getLoss().getWeight(), /*isWeight=*/true);
  LogicalResult result = success();
  for (auto parameter : model.getBody().front().getOps<nn::ParameterOp>()) {
    ++parametersChecked;
    if (parameter.getValue().use_empty())
      result = parameter.emitOpError()
               << "'" << parameter.getName() << "' is never used; remove it, or use it";
    else if (!parameter.getFrozen() && !behindSum.contains(parameter.getValue()))
      result = parameter.emitOpError()
               << "'" << parameter.getName()
               << "' has no path to the loss, so it would never change; use it, or "
                  "mark it frozen";
    else if (!parameter.getFrozen() && behindWeight.contains(parameter.getValue()))
      result = parameter.emitOpError()
               << "'" << parameter.getName()
               << "' changes the weight that the loss is divided by, whose gradient "
                  "is not taken; mark it frozen";
  }
  return result;
}

void VerifyModel::runOnOperation() {
  nn::ModelOp model;
  for (Operation &op : *getOperation().getBody()) {
    auto found = dyn_cast<nn::ModelOp>(op);
    if (!found || model) {
      op.emitOpError(!found ? "may not stand beside nn.model here; run inline-modules first"
                            : "is a second model; a program trains one");
      return signalPassFailure();
    }
    model = found;
  }
  if (!model) {
    getOperation().emitError("no nn.model to train");
    return signalPassFailure();
  }
  for (auto [number, type] : llvm::enumerate(model.getArgumentTypes()))
    if (!cast<RankedTensorType>(type).hasStaticShape()) {
      model.emitError() << "input " << number << " is " << type << "; run bind-batch first";
      return signalPassFailure();
    }
  for (Operation &op : model.getBody().front())
    if (failed(verifyOp(op)))
      return signalPassFailure();
  if (failed(verifyParameters(model)))
    signalPassFailure();
}
