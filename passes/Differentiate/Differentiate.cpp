//===- Differentiate.cpp - From the model to the training step ------------===//
//
// Reverse-mode differentiation of a straight-line tensor program with one scalar loss.
//
//   1. nn.parameter ops become train.parameter symbols; @step and @evaluate get clones of the body that read them.
//   2. In @step, values on a path from a trainable parameter are marked (needed). Ops on a path between them and the loss are visited in
//      reverse; each is asked, through DifferentiableOp, for the gradients of its needed operands.
//   3. Contributions to one value are added as they come, so the order is the reverse order of use: fixed, whatever later passes do.
//   4. Each trainable parameter's sum is recorded by train.gradient. The seed is the gradient of the loss *sum*: one. Nothing is divided here; the
//      only division by the weight is made by insert-optimizer, after accumulation.
//
// Rejected, all at once: ops on a path to the loss without a gradient (with the parameters they cut off), parameters that do not reach the loss.
// Left in the IR: forward ops keep their place; the backward ops follow, so the program stays a straight line.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/Train/Train.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace descent {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct Differentiate : descent::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override;

private:
  void declareParameters(nn::ModelOp model);
  train::FuncOp cloneBody(nn::ModelOp model, StringRef name, bool withPredictions);
  LogicalResult buildGradients(train::FuncOp step);
};

/// Gradients per value, as they accumulate.
class GradientTable {
public:
  explicit GradientTable(OpBuilder &builder) : builder(builder) {}

  Value lookup(Value value) const { return gradients.lookup(value); }
  /// Returns whether this was a second or later contribution.
  bool add(Value value, Value contribution) {
    Value &sum = gradients[value];
    bool again = static_cast<bool>(sum);
    sum = again ? nn::AddOp::create(builder, contribution.getLoc(), sum, contribution) : contribution;
    return again;
  }

private:
  OpBuilder &builder;
  DenseMap<Value, Value> gradients; // looked up, never iterated
};

} // namespace

void Differentiate::declareParameters(nn::ModelOp model) {
  OpBuilder builder(model);
  for (auto parameter : model.getBody().front().getOps<nn::ParameterOp>())
    train::ParameterOp::create(builder, parameter.getLoc(), parameter.getName(),
                               parameter.getValue().getType(), parameter.getInit(),
                               parameter.getFrozen(), /*group=*/StringAttr(),
                               /*rate_scale=*/APFloat(1.0), /*weight_decay=*/APFloat(0.0));
}

/// Nothing is random in @evaluate: dropout is the identity there.
static void eraseRandomness(train::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getBody().getOps<RandomizedOp>())) {
    op->getResult(0).replaceAllUsesWith(op.getEvaluationValue());
    op->erase();
  }
}

train::FuncOp Differentiate::cloneBody(nn::ModelOp model, StringRef name, bool withPredictions) {
  OpBuilder builder(model);
  nn::LossOp loss = model.getLoss();
  SmallVector<Value> results{loss.getSum(), loss.getWeight()};
  SmallVector<StringRef> names{"loss_sum", "loss_weight"};
  if (withPredictions) {
    results.push_back(loss.getPredictions());
    names.push_back("predictions");
  }
  auto type = builder.getFunctionType(model.getArgumentTypes(), ValueRange(results).getTypes());
  auto function = train::FuncOp::create(builder, model.getLoc(), name, type, model.getArgAttrsAttr(),
                                        ArrayAttr());
  Block *block = builder.createBlock(&function.getBody());
  IRMapping mapping;
  for (BlockArgument argument : model.getBody().getArguments())
    mapping.map(argument, block->addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : model.getBody().front().without_terminator()) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op))
      mapping.map(parameter.getValue(),
                  train::ReadOp::create(builder, op.getLoc(), parameter.getValue().getType(),
                                        parameter.getName()));
    else
      builder.clone(op, mapping);
  }
  for (Value &result : results)
    result = mapping.lookup(result);
  train::ReturnOp::create(builder, loss.getLoc(), builder.getStrArrayAttr(names), results);
  return function;
}

LogicalResult Differentiate::buildGradients(train::FuncOp step) {
  Block &body = step.getBody().front();
  train::ReturnOp ret = step.getReturn();
  OpBuilder builder(ret);
  auto module = step->getParentOfType<ModuleOp>();

  // Forward: which values depend on a trainable parameter.
  DenseSet<Value> needed;
  SmallVector<train::ReadOp> reads;
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator()) {
    forward.push_back(&op);
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto parameter = module.lookupSymbol<train::ParameterOp>(read.getSymbol());
      if (parameter && !parameter.getFrozen()) {
        reads.push_back(read);
        needed.insert(read.getValue());
      }
      continue;
    }
    if (llvm::any_of(op.getOperands(), [&](Value v) { return needed.contains(v); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          needed.insert(result);
  }

  Value lossSum = ret.getValues()[0];
  GradientTable gradients(builder);
  auto one = DenseElementsAttr::get(cast<ShapedType>(lossSum.getType()), 1.0f);
  gradients.add(lossSum, nn::ConstantOp::create(builder, lossSum.getLoc(), one));

  // Backward. An op may be re-created while its gradient is built (attention saves its log-sum-exp), so it is not touched afterwards.
  bool broken = false;
  for (Operation *op : llvm::reverse(forward)) {
    SmallVector<Value> resultGradients;
    for (Value result : op->getResults())
      resultGradients.push_back(needed.contains(result) ? gradients.lookup(result) : Value());
    SmallVector<Value> operands(op->getOperands());
    SmallVector<bool> operandNeeded;
    for (Value operand : operands)
      operandNeeded.push_back(needed.contains(operand));
    if (llvm::none_of(resultGradients, [](Value v) { return static_cast<bool>(v); }) ||
        llvm::none_of(operandNeeded, [](bool n) { return n; })) {
      ++skipped;
      continue;
    }
    auto differentiable = dyn_cast<DifferentiableOp>(op);
    if (!differentiable) {
      InFlightDiagnostic error =
          op->emitOpError("has no gradient but stands between the loss and ");
      llvm::interleaveComma(operands, error, [&](Value v) { error << v.getType(); });
      error << "; freeze the parameters behind it or write the model without it";
      broken = true;
      continue;
    }
    SmallVector<Value> operandGradients;
    if (failed(differentiable.buildGradient(builder, resultGradients, operandNeeded, operandGradients)))
      return failure();
    ++differentiated;
    for (auto [operand, gradient, isNeeded] :
         llvm::zip_equal(operands, operandGradients, operandNeeded))
      if (isNeeded && gradient)
        accumulated += gradients.add(operand, gradient);
  }
  if (broken)
    return failure();

  for (train::ReadOp read : reads) {
    Value gradient = gradients.lookup(read.getValue());
    if (!gradient)
      return emitError(read.getLoc())
             << "parameter '" << read.getSymbol()
             << "' has no path to the loss; remove it, use it, or freeze it";
    train::GradientOp::create(builder, read.getLoc(), read.getSymbol(), gradient);
  }
  return success();
}

void Differentiate::runOnOperation() {
  auto models = getOperation().getOps<nn::ModelOp>();
  if (!llvm::hasSingleElement(models)) {
    getOperation().emitError("differentiate needs exactly one nn.model in the module");
    return signalPassFailure();
  }
  nn::ModelOp model = *models.begin();
  declareParameters(model);
  train::FuncOp step = cloneBody(model, "step", /*withPredictions=*/false);
  eraseRandomness(cloneBody(model, "evaluate", /*withPredictions=*/true));
  model.erase();
  if (failed(buildGradients(step)))
    signalPassFailure();
}
