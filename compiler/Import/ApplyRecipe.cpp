//===- ApplyRecipe.cpp - From the recipe to attributes of the module ------===//
//
// The only place where the recipe meets the IR. Passes read attributes, so each can be run alone on
// printed IR without a recipe.
//
//===----------------------------------------------------------------------===//

#include "compiler/Import/ApplyRecipe.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace descent {

static Attribute optimizerOf(MLIRContext *context, const Recipe &recipe) {
  const auto &o = recipe.optimizer;
  if (o.kind == "sgd")
    return train::SgdAttr::get(context, o.momentum, o.nesterov);
  return train::AdamAttr::get(context, o.betas[0], o.betas[1], o.eps,
                              /*decoupled=*/o.kind == "adamw");
}

static Attribute scheduleOf(MLIRContext *context, const Recipe &recipe) {
  const auto &s = recipe.schedule;
  double rate = recipe.optimizer.lr;
  if (s.kind == "linear")
    return train::LinearScheduleAttr::get(context, rate, s.minLr, s.warmup, *s.steps);
  if (s.kind == "cosine")
    return train::CosineScheduleAttr::get(context, rate, s.minLr, s.warmup, *s.steps);
  return train::ConstantScheduleAttr::get(context, rate, s.warmup);
}

void applyRecipe(ModuleOp module, const Recipe &recipe) {
  MLIRContext *context = module.getContext();
  context->getOrLoadDialect<train::TrainDialect>(); // the model file names none of its attributes
  Builder builder(context);
  for (auto model : module.getOps<nn::ModelOp>())
    module->setAttr("train.model", model.getSymNameAttr());
  module->setAttr("train.batch", builder.getI64IntegerAttr(recipe.batch.size));
  module->setAttr("train.optimizer", optimizerOf(context, recipe));
  module->setAttr("train.schedule", scheduleOf(context, recipe));
  module->setAttr("train.weight_decay", builder.getF64FloatAttr(recipe.optimizer.weightDecay));
  if (recipe.optimizer.clip > 0.0)
    module->setAttr("train.clip_norm", builder.getF64FloatAttr(recipe.optimizer.clip));
  SmallVector<Attribute> groups;
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    if (!group.frozen)
      for (const std::string &pattern : group.match)
        groups.push_back(train::GroupAttr::get(context, StringRef(pattern), group.lrScale,
                                               group.weightDecay.value_or(-1.0)));
  if (!groups.empty())
    module->setAttr("train.groups", builder.getArrayAttr(groups));
}

LogicalResult freezeParameters(ModuleOp module, const Recipe &recipe) {
  std::vector<std::string> names;
  module.walk([&](nn::ParameterOp parameter) {
    names.push_back(parameter.getName().str());
    if (isFrozen(recipe, names.back()))
      parameter.setFrozen(true);
  });
  bool allMatch = true;
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    for (const std::string &pattern : group.match) {
      if (llvm::any_of(
              names, [&](const std::string &name) { return train::matchesPattern(name, pattern); }))
        continue;
      InFlightDiagnostic error = emitError(UnknownLoc::get(module.getContext()))
                                 << group.where << ": optimizer group '" << pattern
                                 << "' matches no parameter; the model has ";
      llvm::interleaveComma(names, error);
      allMatch = false;
    }
  return success(allMatch);
}

} // namespace descent
