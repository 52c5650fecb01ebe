//===- CheckRecipe.cpp - Rules that tie keys together ---------------------===//
//
// Each rule here refuses a recipe whose keys are fine one by one. A key that the chosen kind has no
// use for is refused as well: who writes `momentum` under adam expects something to happen.
//
//===----------------------------------------------------------------------===//

#include "compiler/Recipe/CheckRecipe.h"
#include "compiler/Recipe/RecipeKeys.h"

#include <filesystem>

namespace descent {

namespace {

class Checker {
public:
  Checker(const Recipe &recipe, std::vector<RecipeError> &errors)
      : recipe(recipe), errors(errors) {}

  void run() {
    model();
    data();
    batch();
    optimizer();
    schedule();
    lossScale();
    storage();
    fp8();
    overrides();
  }

private:
  /// Reports at the key if it is given, otherwise at the recipe.
  void error(const std::string &key, const std::string &message) {
    auto origin = recipe.origins.find(key);
    errors.push_back({origin == recipe.origins.end() ? recipe.path : origin->second, message});
  }

  /// Refuses `key` if it is given.
  void useless(const std::string &key, const std::string &user, const std::string &because) {
    if (recipe.isGiven(key))
      error(key, key + " is used by " + user + " only, but " + because + "; remove the key");
  }

  void model() {
    if (std::filesystem::path(recipe.model.file).extension() == ".onnx")
      error("model.file", "model.file is '" + recipe.model.file +
                              "': importing ONNX is not supported yet; give a model.mlir");
  }

  void data() {
    if (recipe.data.validation > 0 && !recipe.data.validationPath.empty())
      error("data.validation", "both data.validation and data.validation_path say what to validate "
                               "on; remove one of them");
    std::string format = recipe.data.format, is = "data.format is '" + format + "'";
    bool language = format == "text" || format == "tokens";
    if (format != "text")
      useless("data.vocabulary", "format 'text'", is);
    if (format != "tokens")
      useless("data.token_type", "format 'tokens'", is);
    if (!language)
      useless("data.sequence", "formats 'text' and 'tokens'", is);
    if (language)
      useless("data.scale", "formats 'npz', 'npy' and 'idx'", is);
    if (format != "npz" && format != "npy")
      for (const char *key : {"data.inputs", "data.targets"})
        useless(key, "formats 'npz' and 'npy'", is);
    if (recipe.data.scale && *recipe.data.scale == 0.0)
      error("data.scale", "data.scale is 0, which makes all data 0; expected another number");
  }

  void batch() {
    int64_t micro = recipe.batch.micro.value_or(recipe.batch.size);
    if (micro != recipe.batch.size)
      error("batch.micro", "batch.micro is " + std::to_string(micro) + " and batch.size is " +
                               std::to_string(recipe.batch.size) +
                               ": accumulation over micro-batches is not supported yet; make them "
                               "equal or remove batch.micro");
  }

  void optimizer() {
    const auto &optimizer = recipe.optimizer;
    std::string is = "optimizer.kind is '" + optimizer.kind + "'";
    if (optimizer.kind != "sgd") {
      useless("optimizer.momentum", "kind 'sgd'", is);
      useless("optimizer.nesterov", "kind 'sgd'", is);
    } else {
      useless("optimizer.betas", "kinds 'adam' and 'adamw'", is);
      useless("optimizer.eps", "kinds 'adam' and 'adamw'", is);
      if (optimizer.nesterov && optimizer.momentum == 0.0)
        error("optimizer.nesterov",
              "optimizer.nesterov needs a momentum above 0; set optimizer.momentum");
    }
    for (const OptimizerGroup &group : optimizer.groups) {
      if (group.match.empty())
        errors.push_back({group.where, "an optimizer group needs match, a pattern of parameter "
                                       "names such as \"*.bias\""});
      if (group.frozen && (group.weightDecay || group.lrScale != 1.0))
        errors.push_back({group.where, "the group is frozen, so lr_scale and weight_decay have no "
                                       "effect; remove them or frozen"});
    }
  }

  void schedule() {
    const auto &schedule = recipe.schedule;
    bool falls = schedule.kind != "constant";
    if (falls && !schedule.steps)
      error("schedule.kind", "schedule.kind '" + schedule.kind +
                                 "' needs schedule.steps, the step at which it reaches min_lr");
    if (!falls)
      useless("schedule.min_lr", "kinds 'linear' and 'cosine'",
              "schedule.kind is '" + schedule.kind + "'");
    if (falls && schedule.minLr > recipe.optimizer.lr)
      error("schedule.min_lr", "schedule.min_lr is " + tomlText(schedule.minLr, KeyKind::Number) +
                                   ", above optimizer.lr, which is " +
                                   tomlText(recipe.optimizer.lr, KeyKind::Number));
    if (falls && schedule.steps && schedule.warmup >= *schedule.steps)
      error("schedule.warmup", "schedule.warmup is " + std::to_string(schedule.warmup) +
                                   ", but the whole schedule has only " +
                                   std::to_string(*schedule.steps) + " steps (schedule.steps)");
  }

  /// Scaling keeps small gradients of a narrow backward pass; fp32 has none to lose.
  void lossScale() {
    const auto &precision = recipe.precision;
    if (precision.lossScale != "none" && !precision.isNarrow())
      error("precision.loss_scale",
            "precision.loss_scale is " + precision.lossScale + ", but precision.compute is '" +
                precision.compute +
                "', whose gradients have the range of fp32 and need no scale; remove the key, or "
                "set precision.compute to fp16, bf16 or fp8");
    if (!precision.scalesDynamically()) {
      for (const char *key : {"loss_scale_initial", "loss_scale_growth", "loss_scale_backoff",
                              "loss_scale_interval", "loss_scale_floor"})
        useless(std::string("precision.") + key, "loss_scale 'dynamic'",
                "precision.loss_scale is '" + precision.lossScale + "'");
    } else if (precision.scaleFloor > precision.scaleInitial) {
      bool isFloorGiven = recipe.isGiven("precision.loss_scale_floor");
      error(isFloorGiven ? "precision.loss_scale_floor" : "precision.loss_scale_initial",
            "precision.loss_scale_floor is " + tomlText(precision.scaleFloor, KeyKind::Number) +
                ", above precision.loss_scale_initial, which is " +
                tomlText(precision.scaleInitial, KeyKind::Number) +
                "; the scale starts at or above its floor");
    }
  }

  /// What is stored in bf16, and how it is rounded.
  void storage() {
    const auto &precision = recipe.precision;
    if (!precision.master && precision.compute != "bf16")
      error("precision.master", "precision.master is false, which stores the parameters in bf16 "
                                "alone, but precision.compute is '" +
                                    precision.compute +
                                    "'; set precision.compute to bf16 or remove the key");
    bool hasState = recipe.optimizer.kind != "sgd" || recipe.optimizer.momentum != 0.0;
    if (precision.state == "bf16" && !hasState)
      error("precision.state", "precision.state is 'bf16', but optimizer.kind 'sgd' without "
                               "momentum has no state; remove the key");
    if (precision.master && precision.state == "fp32")
      useless("precision.rounding", "master = false and state = \"bf16\"",
              "nothing is stored in bf16 by the update");
  }

  void fp8() {
    const auto &precision = recipe.precision;
    if (precision.compute != "fp8") {
      for (const char *key : {"fp8_scaling", "fp8_history", "fp8_margin"})
        useless(std::string("precision.") + key, "compute 'fp8'",
                "precision.compute is '" + precision.compute + "'");
    } else if (precision.fp8Scaling == "current") {
      useless("precision.fp8_history", "fp8_scaling 'delayed'",
              "precision.fp8_scaling is 'current'");
    }
  }

  void overrides() {
    const std::string &compute = recipe.precision.compute;
    // Under tf32 an override to fp32 says something: it leaves a product's operands unrounded.
    bool isNarrow = compute != "fp32";
    for (const PrecisionOverride &one : recipe.precision.overrides) {
      if (one.op.empty() && one.match.empty())
        errors.push_back({one.where, "a precision override needs op, a kind of op such as "
                                     "\"matmul\", or match, a pattern such as \"h.0.*\", or both; "
                                     "to change the type of everything set precision.compute"});
      if (one.type.empty())
        errors.push_back(
            {one.where, "a precision override needs type, which is fp32, bf16 or fp16"});
      else if (one.type == "fp32" && !isNarrow)
        errors.push_back({one.where, "the override asks for fp32, which precision.compute and the "
                                     "overrides before it give already; remove it, or set "
                                     "precision.compute to a narrower type"});
      isNarrow |= one.type != "fp32";
    }
  }

  const Recipe &recipe;
  std::vector<RecipeError> &errors;
};

} // namespace

void checkRecipe(const Recipe &recipe, std::vector<RecipeError> &errors) {
  Checker(recipe, errors).run();
}

} // namespace descent
