//===- Recipe.h - How a model is trained ----------------------------------===//
//
// A recipe is a TOML file. Its keys, their types, defaults, units and descriptions stand in one
// table (RecipeKeys.cpp) that parses the file, checks it, flattens it for the binary and generates
// docs/recipe.md, so that none of these can disagree.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_RECIPE_RECIPE_H
#define DESCENT_COMPILER_RECIPE_RECIPE_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace descent {

/// [[optimizer.group]]: parameters whose name matches a pattern and what differs for them. Where
/// several groups match a parameter, the last one counts.
struct OptimizerGroup {
  std::vector<std::string> match;
  double lrScale = 1.0;
  std::optional<double> weightDecay; ///< unset: as for parameters in no group
  bool frozen = false;
  std::string where; ///< "recipe.toml:12:1"
};

/// [[precision.override]]: ops that run in another type than their class says. Where several match
/// an op, the last one counts.
struct PrecisionOverride {
  std::string op;                 ///< kind as in "matmul"; empty: any
  std::vector<std::string> match; ///< patterns of instance paths or parameters; empty: any
  std::string type;               ///< fp32, bf16, fp16
  std::string where;              ///< "recipe.toml:12:1"
};

/// [precision].
struct PrecisionSettings {
  std::string compute;   ///< fp32, tf32, bf16, fp16, fp8
  std::string lossScale; ///< none, dynamic or a number; never empty once parsed
  double scaleInitial, scaleGrowth, scaleBackoff, scaleFloor; ///< of the dynamic scale
  int64_t scaleInterval;                                      ///< updates
  bool master;                                                ///< fp32 master weights
  std::string state;                                          ///< fp32, bf16
  std::string rounding;                                       ///< stochastic, nearest
  std::string fp8Scaling;                                     ///< delayed, current
  int64_t fp8History, fp8Margin;
  std::vector<PrecisionOverride> overrides;

  bool scalesDynamically() const { return lossScale == "dynamic"; }
  /// The number that loss_scale gives, if it is one.
  std::optional<double> staticScale() const;
  /// Whether any op may run in a type of 16 bits or fewer.
  bool isNarrow() const;
};

/// The parsed recipe. Paths are absolute; every value is in range; what is optional and not given
/// is empty.
struct Recipe {
  std::string path; ///< of the recipe itself

  struct {
    std::string file;
  } model;
  struct {
    std::string kind; ///< empty: the loss is in the model
    std::optional<int64_t> ignoreIndex;
    std::optional<double> labelSmoothing;
  } loss;
  struct {
    std::string format, path, validationPath;
    double validation;
    int64_t sequence; ///< 0: from the model's input
    std::vector<std::string> inputs, targets;
    std::optional<double> scale;
    std::string tokenType, vocabulary;
    bool shuffle;
  } data;
  struct {
    int64_t size;
    std::optional<int64_t> micro;
  } batch;
  struct {
    std::string kind; ///< sgd, adam, adamw
    double lr, momentum;
    bool nesterov;
    std::array<double, 2> betas;
    double eps, weightDecay, clip; ///< clip 0: off
    std::vector<OptimizerGroup> groups;
  } optimizer;
  struct {
    std::string kind; ///< constant, linear, cosine
    int64_t warmup;
    std::optional<int64_t> steps;
    double minLr;
  } schedule;
  PrecisionSettings precision;
  struct {
    std::string recompute;
    std::optional<int64_t> budget; ///< bytes
  } memory;
  struct {
    int64_t zero;
    std::optional<int64_t> bucket; ///< bytes
    int64_t tensor, pipeline;
  } parallel;
  struct {
    int64_t seed;
    std::string target;
    int64_t threads;                                  ///< 0: one for each core the process may use
    int64_t logEvery, checkpointEvery, validateEvery; ///< 0: never
  } run;

  /// Where each given key stands: "optimizer.lr" -> "recipe.toml:9:1" or "--set optimizer.lr=1".
  /// Keys at their default are absent.
  std::map<std::string, std::string> origins;
  bool isGiven(const std::string &key) const { return origins.count(key) != 0; }

  /// All keys that have a value, defaults included, in the table's order: ("optimizer.betas",
  /// "[0.9, 0.95]"). Groups follow as "optimizer.group.0.match", overrides as
  /// "precision.override.0.op". This is what the binary carries as descent_program::settings.
  std::vector<std::pair<std::string, std::string>> flatten() const;
};

/// One thing wrong with a recipe.
struct RecipeError {
  std::string where;   ///< "recipe.toml:9:1", "--set optimizer.lr=x"
  std::string message; ///< what is wrong and what would make it right
  std::string text() const { return where + ": error: " + message; }
};

/// Reads a recipe and applies `overrides`, each "table.key=value" with a TOML value (a string may
/// stand without quotes). All errors are collected in `errors`; the result is empty if there are
/// any.
std::optional<Recipe> parseRecipe(const std::string &path,
                                  const std::vector<std::string> &overrides,
                                  std::vector<RecipeError> &errors);

/// The same for text that is already in memory; `path` names it and anchors relative paths.
std::optional<Recipe> parseRecipeText(const std::string &text, const std::string &path,
                                      const std::vector<std::string> &overrides,
                                      std::vector<RecipeError> &errors);

/// Whether the parameter's group freezes it. The other settings of groups are resolved by
/// insert-optimizer, which also refuses patterns that match no parameter; freezing has to be known
/// earlier, before gradients are built.
bool isFrozen(const Recipe &recipe, const std::string &parameter);

/// "123B", "1KiB", "2GiB" or a plain number of bytes. Empty if it is none of these or does not fit.
std::optional<int64_t> parseSize(const std::string &text);

/// docs/recipe.md.
std::string recipeReference();

} // namespace descent

#endif // DESCENT_COMPILER_RECIPE_RECIPE_H
