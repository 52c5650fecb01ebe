//===- Differentiate.cpp - From the model to the training step ------------===//
//
// Reverse-mode differentiation of a straight-line tensor program with one scalar loss.
//
//   1. nn.parameter ops become train.parameter symbols; @step and @evaluate get clones of the body
//   that read them.
//   2. In @step, ReverseMode builds the gradients of what lies between the trainable parameters and
//   the loss.
//   3. Each trainable parameter's sum is recorded by train.gradient. The backward pass starts from
//      train.seed, the gradient of the loss *sum*, which insert-loss-scaling replaces. Nothing is
//      divided here; the only division by the weight is made by insert-optimizer, after
//      accumulation.
//
// Rejected, all at once: ops on a path to the loss without a gradient (with the parameters they cut
// off), parameters that do not reach the loss. Left in the IR: forward ops keep their place; the
// backward ops follow, so the program stays a straight line.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "dialects/Train/Train.h"
#include "passes/Differentiate/ReverseMode.h"
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
  auto function = train::FuncOp::create(builder, model.getLoc(), name, type,
                                        model.getArgAttrsAttr(), ArrayAttr());
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
  auto module = step->getParentOfType<ModuleOp>();
  SmallVector<train::ReadOp> reads;
  SmallVector<Value> sources;
  for (auto read : body.getOps<train::ReadOp>())
    if (auto parameter = module.lookupSymbol<train::ParameterOp>(read.getSymbol());
        parameter && !parameter.getFrozen()) {
      reads.push_back(read);
      sources.push_back(read.getValue());
    }

  OpBuilder builder(ret);
  ReverseMode reverse(body, sources);
  Value lossSum = ret.getValues()[0];
  reverse.contribute(builder, lossSum,
                     train::SeedOp::create(builder, lossSum.getLoc(), lossSum.getType()));
  if (failed(reverse.run(builder)))
    return failure();
  differentiated += reverse.differentiated;
  skipped += reverse.skipped;
  accumulated += reverse.accumulated;

  for (train::ReadOp read : reads) {
    Value gradient = reverse.gradientOf(read.getValue());
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
