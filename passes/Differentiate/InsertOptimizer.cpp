//===- InsertOptimizer.cpp - Gradients become an atomic update ------------===//
//
// The order is the one semantics demand: gradients are complete sums here; then the finite check,
// the norm, the clip and the update, in one commit. Scaling by one over the weight of the loss is
// not applied to the gradients in memory but handed to the update as a factor, together with the
// clip: each gradient element is read once more and never written again.
//
//   1. Sort trainable parameters into groups of equal settings, in order of first appearance.
//   2. Declare their states and the counter @updates.
//   3. Build norm, scale, rate and condition from rank-0 nn ops.
//   4. Build the commit and extend train.return.
//
// Rejected: groups that match nothing, a missing optimizer or schedule, gradients without a
// parameter.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/StateNames.h"
#include "dialects/Train/Train.h"
#include "passes/Differentiate/SymbolNames.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

namespace descent {
#define GEN_PASS_DEF_INSERTOPTIMIZER
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

/// Parameters updated with the same settings.
struct Group {
  double rateScale, weightDecay;
  SmallVector<train::ParameterOp> parameters;
  SmallVector<Value> gradients;
};

struct InsertOptimizer : descent::impl::InsertOptimizerBase<InsertOptimizer> {
  void runOnOperation() override;

private:
  LogicalResult readRecipe();
  LogicalResult sortIntoGroups(train::FuncOp step);
  LogicalResult declareStates();
  void buildUpdate(train::FuncOp step);

  train::OptimizerAttrInterface optimizer;
  train::ScheduleAttrInterface schedule;
  double weightDecay = 0.0;
  std::optional<double> clipNorm;
  llvm::MapVector<StringAttr, Group> sorted;
};

} // namespace

LogicalResult InsertOptimizer::readRecipe() {
  ModuleOp module = getOperation();
  optimizer = module->getAttrOfType<train::OptimizerAttrInterface>("train.optimizer");
  schedule = module->getAttrOfType<train::ScheduleAttrInterface>("train.schedule");
  if (!optimizer || !schedule)
    return module.emitError(
        "insert-optimizer needs the module attributes train.optimizer (for example "
        "#train.adam<...>) and train.schedule (for example #train.constant<...>)");
  if (auto decay = module->getAttrOfType<FloatAttr>("train.weight_decay"))
    weightDecay = decay.getValueAsDouble();
  if (auto clip = module->getAttrOfType<FloatAttr>("train.clip_norm"))
    clipNorm = clip.getValueAsDouble();
  return success();
}

LogicalResult InsertOptimizer::sortIntoGroups(train::FuncOp step) {
  ModuleOp module = getOperation();
  SmallVector<train::GroupAttr> patterns;
  if (auto attributes = module->getAttrOfType<ArrayAttr>("train.groups"))
    patterns = llvm::to_vector(attributes.getAsRange<train::GroupAttr>());
  SmallVector<bool> matched(patterns.size(), false);
  for (auto [pattern, isMatched] : llvm::zip(patterns, matched))
    isMatched = llvm::any_of(module.getOps<train::ParameterOp>(), [&](train::ParameterOp p) {
      return train::matchesPattern(p.getSymName(), pattern.getMatch());
    });

  for (auto gradient : llvm::make_early_inc_range(step.getBody().getOps<train::GradientOp>())) {
    auto parameter = module.lookupSymbol<train::ParameterOp>(gradient.getParameterAttr());
    if (!parameter)
      return gradient.emitOpError() << "names " << gradient.getParameterAttr()
                                    << ", which is no train.parameter of this module";
    bool isMatrix = parameter.getTensorType().getRank() > 1;
    double scale = 1.0, decay = isMatrix ? weightDecay : 0.0;
    std::string name = isMatrix ? "decay" : "no_decay";
    for (train::GroupAttr pattern : patterns) {
      if (!train::matchesPattern(parameter.getSymName(), pattern.getMatch()))
        continue;
      scale = pattern.getRateScale();
      decay = pattern.getWeightDecay() >= 0.0 ? double(pattern.getWeightDecay())
                                              : (isMatrix ? weightDecay : 0.0);
      name = pattern.getMatch().str() +
             (pattern.getWeightDecay() < 0.0 && !isMatrix ? ".no_decay" : "");
    }
    parameter.setGroup(name);
    parameter.setRateScale(APFloat(scale));
    parameter.setWeightDecay(APFloat(decay));
    Group &group =
        sorted.try_emplace(StringAttr::get(&getContext(), name), Group{scale, decay, {}, {}})
            .first->second;
    group.parameters.push_back(parameter);
    group.gradients.push_back(gradient.getGradient());
    gradient.erase();
    ++parameters;
  }
  groups += sorted.size();
  for (auto [pattern, isMatched] : llvm::zip(patterns, matched))
    if (!isMatched)
      return module.emitError() << "optimizer group '" << pattern.getMatch()
                                << "' matches no parameter; `descent plan` lists their names";
  return success();
}

LogicalResult InsertOptimizer::declareStates() {
  OpBuilder builder(&getContext());
  auto module = getOperation();
  auto firstFunction = *module.getOps<train::FuncOp>().begin();
  builder.setInsertionPoint(firstFunction);
  for (auto &[name, group] : sorted)
    for (train::ParameterOp parameter : group.parameters)
      for (StringRef state : optimizer.getStateNames()) {
        std::string stateName = (parameter.getSymName() + "." + state).str();
        if (failed(checkNameIsFree(module, stateName,
                                   ("the state of '" + parameter.getSymName() + "'").str())))
          return failure();
        train::StateOp::create(builder, parameter.getLoc(), stateName,
                               FlatSymbolRefAttr::get(parameter.getSymNameAttr()),
                               parameter.getType(), APFloat(0.0));
      }
  if (failed(checkNameIsFree(module, train::updatesState, "the number of updates")))
    return failure();
  train::StateOp::create(builder, module.getLoc(), train::updatesState, FlatSymbolRefAttr(),
                         RankedTensorType::get({}, builder.getI64Type()), APFloat(0.0));
  return success();
}

void InsertOptimizer::buildUpdate(train::FuncOp step) {
  train::ReturnOp ret = step.getReturn();
  Location loc = NameLoc::get(StringAttr::get(&getContext(), "optimizer"), ret.getLoc());
  OpBuilder builder(ret);
  train::ScalarMath math(builder, loc);
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  auto counter = RankedTensorType::get({}, builder.getI64Type());

  Value done = train::ReadOp::create(builder, loc, counter, train::updatesState);
  Value one = nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(counter, int64_t{1}));
  Value next = nn::AddOp::create(builder, loc, done, one);
  Value count = nn::CastOp::create(builder, loc, next, builder.getF32Type());
  Value rate = schedule.buildRate(builder, loc, count);

  SmallVector<Value> gradients;
  for (auto &[name, group] : sorted)
    llvm::append_range(gradients, group.gradients);
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  Value allFinite = train::AllFiniteOp::create(builder, loc, flag, gradients);
  Value norm = train::NormOp::create(builder, loc, scalar, gradients);
  Value inverse = math.div(math.constant(1.0), ret.getValues()[1]);
  Value meanNorm = math.mul(norm, inverse);
  Value scale = inverse;
  if (clipNorm) {
    Value limit = math.constant(*clipNorm);
    Value tooLong = math.compare(nn::ComparePredicate::gt, meanNorm, limit);
    scale = math.mul(scale, math.where(tooLong, math.div(limit, meanNorm), math.constant(1.0)));
  }
  // Finite gradients may still have a norm that is not: one that overflows f32, or 0 * inf in a
  // step without a counted target. Neither can be clipped or divided by.
  Value infinity = math.constant(std::numeric_limits<double>::infinity());
  Value finite = math.compare(nn::ComparePredicate::lt, meanNorm, infinity);
  Value sound = math.compare(nn::ComparePredicate::lt, math.abs(ret.getValues()[0]), infinity);
  Value no = nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(flag, false));
  finite = math.where(allFinite, math.where(sound, finite, no), no);

  // A group with its own rate multiplies the scheduled one; the products stand before the commit,
  // which holds updates only.
  SmallVector<Value> rates;
  for (auto &[name, group] : sorted)
    rates.push_back(group.rateScale == 1.0 ? rate : math.mul(rate, math.constant(group.rateScale)));

  auto commit = train::CommitOp::create(builder, loc, finite);
  OpBuilder inside = OpBuilder::atBlockBegin(&commit.getBody().emplaceBlock());
  for (auto [entry, groupRate] : llvm::zip(sorted, rates)) {
    Group &group = entry.second;
    SmallVector<Attribute> names;
    for (train::ParameterOp parameter : group.parameters)
      names.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    train::UpdateOp::create(inside, loc, entry.first, builder.getArrayAttr(names), group.gradients,
                            scale, groupRate, count, optimizer,
                            builder.getF64FloatAttr(group.weightDecay));
  }
  train::WriteOp::create(inside, loc, train::updatesState, next);

  SmallVector<Value> results(ret.getValues());
  llvm::append_values(results, meanNorm, rate, finite);
  SmallVector<Attribute> names(ret.getNames().getValue());
  for (StringRef name : {"grad_norm", "learning_rate", "committed"})
    names.push_back(builder.getStringAttr(name));
  train::ReturnOp::create(builder, ret.getLoc(), builder.getArrayAttr(names), results);
  ret.erase();
  step.setFunctionType(
      builder.getFunctionType(step.getArgumentTypes(), ValueRange(results).getTypes()));
}

void InsertOptimizer::runOnOperation() {
  auto step = getOperation().lookupSymbol<train::FuncOp>("step");
  if (!step) {
    getOperation().emitError("insert-optimizer needs train.func @step; run differentiate first");
    return signalPassFailure();
  }
  sorted.clear();
  if (failed(readRecipe()) || failed(sortIntoGroups(step)))
    return signalPassFailure();
  if (sorted.empty()) {
    step.emitError("has no train.gradient: nothing to train");
    return signalPassFailure();
  }
  if (failed(declareStates()))
    return signalPassFailure();
  buildUpdate(step);
}
