//===- ApplyRecipe.cpp - From the recipe to attributes of the module ------===//
//
// The only place where the recipe meets the IR. Passes read attributes, so each can be run alone on
// printed IR without a recipe.
//
//===----------------------------------------------------------------------===//

#include "compiler/Import/ApplyRecipe.h"

#include "dialects/Train/Train.h"
#include "passes/Precision/PrecisionChoice.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

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

/// The type that narrow ops compute in. fp8 and tf32 are roundings of what goes into products, on
/// top of bf16 and f32.
static Type computeType(MLIRContext *context, StringRef name) {
  if (name == "bf16" || name == "fp8")
    return BFloat16Type::get(context);
  if (name == "fp16")
    return Float16Type::get(context);
  return Float32Type::get(context);
}

static std::vector<train::OverrideAttr> attributesOf(MLIRContext *context,
                                                     const PrecisionOverride &one) {
  std::vector<std::string> patterns = one.match;
  if (patterns.empty())
    patterns.emplace_back();
  std::vector<train::OverrideAttr> attributes;
  for (const std::string &pattern : patterns)
    attributes.push_back(train::OverrideAttr::get(context, StringRef(one.op), StringRef(pattern),
                                                  computeType(context, one.type)));
  return attributes;
}

/// Attributes stand only where they ask for something, so that an fp32 program's IR has none.
static void applyPrecision(ModuleOp module, const PrecisionSettings &precision) {
  MLIRContext *context = module.getContext();
  if (Type compute = computeType(context, precision.compute); !compute.isF32())
    module->setAttr("train.compute", TypeAttr::get(compute));

  SmallVector<Attribute> overrides;
  for (const PrecisionOverride &one : precision.overrides)
    llvm::append_range(overrides, attributesOf(context, one));
  if (!overrides.empty())
    module->setAttr("train.overrides", ArrayAttr::get(context, overrides));

  if (precision.scalesDynamically())
    module->setAttr("train.loss_scale",
                    train::DynamicScaleAttr::get(context, precision.scaleInitial,
                                                 precision.scaleGrowth, precision.scaleBackoff,
                                                 precision.scaleInterval, precision.scaleFloor));
  else if (std::optional<double> scale = precision.staticScale())
    module->setAttr("train.loss_scale", train::StaticScaleAttr::get(context, *scale));

  if (precision.compute == "fp8")
    module->setAttr("train.quantize",
                    train::QuantizeAttr::get(context, StringRef("fp8"),
                                             StringRef(precision.fp8Scaling), precision.fp8History,
                                             precision.fp8Margin));
  else if (precision.compute == "tf32")
    module->setAttr("train.quantize", train::QuantizeAttr::get(context, StringRef("tf32"),
                                                               StringRef("current"), 1, 0));

  bool isNarrowState = precision.state == "bf16";
  if (!precision.master || isNarrowState)
    module->setAttr("train.storage",
                    train::StorageAttr::get(context, precision.master,
                                            computeType(context, isNarrowState ? "bf16" : "fp32"),
                                            precision.rounding == "stochastic"));
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
  applyPrecision(module, recipe.precision);
  SmallVector<Attribute> groups;
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    if (!group.frozen)
      for (const std::string &pattern : group.match)
        groups.push_back(train::GroupAttr::get(context, StringRef(pattern), group.lrScale,
                                               group.weightDecay.value_or(-1.0)));
  if (!groups.empty())
    module->setAttr("train.groups", builder.getArrayAttr(groups));
}

/// An error at a place of the recipe, "recipe.toml:12:1", or at what the command line set.
static InFlightDiagnostic errorAt(MLIRContext *context, StringRef where) {
  auto [rest, column] = where.rsplit(':');
  auto [file, line] = rest.rsplit(':');
  unsigned lineNumber, columnNumber;
  if (!line.getAsInteger(10, lineNumber) && !column.getAsInteger(10, columnNumber))
    return emitError(FileLineColLoc::get(context, file, lineNumber, columnNumber));
  return std::move(emitError(UnknownLoc::get(context)) << where << ": ");
}

LogicalResult checkOverrides(ModuleOp module, const Recipe &recipe) {
  llvm::SetVector<StringRef> kinds, names;
  std::vector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (!canOverride(*op))
      return;
    ops.push_back(op);
    kinds.insert(op->getName().stripDialect());
    if (auto instance = dyn_cast<NameLoc>(op->getLoc()))
      names.insert(instance.getName().getValue());
  });
  module.walk([&](nn::ParameterOp parameter) { names.insert(parameter.getName()); });
  bool allMatch = true;
  auto error = [&](const PrecisionOverride &one) {
    allMatch = false;
    return std::move(errorAt(module.getContext(), one.where) << "precision override ");
  };
  for (const PrecisionOverride &one : recipe.precision.overrides) {
    if (!one.op.empty() && !kinds.contains(one.op)) {
      InFlightDiagnostic diagnostic = error(one);
      diagnostic << "of op '" << one.op << "' matches no op; the model has ";
      llvm::interleaveComma(kinds, diagnostic);
      continue;
    }
    for (train::OverrideAttr attribute : attributesOf(module.getContext(), one)) {
      if (llvm::any_of(ops, [&](Operation *op) { return matchesOverride(*op, attribute); }))
        continue;
      InFlightDiagnostic diagnostic = error(one);
      if (!one.op.empty())
        diagnostic << "of op '" << one.op << "' ";
      diagnostic << "in '" << attribute.getMatch()
                 << "' matches no op; instances and parameters of the model are ";
      llvm::interleaveComma(names, diagnostic);
    }
  }
  return success(allMatch);
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
      InFlightDiagnostic error = errorAt(module.getContext(), group.where);
      error << "optimizer group '" << pattern << "' matches no parameter; the model has ";
      llvm::interleaveComma(names, error);
      allMatch = false;
    }
  return success(allMatch);
}

} // namespace descent
