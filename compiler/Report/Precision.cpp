//===- Precision.cpp - What a recipe's types cost in accuracy -------------===//
//
// One step, the same random inputs, several programs: the recipe's own and copies of it with other
// types. The programs differ only in what the precision passes do, so that the differences are
// theirs.
//
// Magnitudes come from exact arithmetic on the recipe's program: rounding would already have moved
// what is asked about, and a value lost at one op would be missing at all that follow it.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Precision.h"

#include "compiler/Reference/StepReference.h"
#include "dialects/NN/NN.h"
#include "dialects/Train/StateNames.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>

using namespace mlir;
using namespace descent::reference;

namespace descent {

namespace {

/// Interprets programs one after the other and reports progress in the flops of all of them.
class Runner {
public:
  Runner(const PrecisionOptions &options, int runs) : options(options), runs(runs) {}

  FailureOr<StepResult> run(ModuleOp module, const StepInputs &inputs, Arithmetic arithmetic,
                            const Interpreter::Observer &observer = nullptr) {
    auto step = module.lookupSymbol<train::FuncOp>("step");
    double work = 0.0, done = 0.0;
    step.walk([&](CostOp op) { work += op.getFlops(); });
    FailureOr<StepResult> result =
        interpretStep(module, inputs, arithmetic, [&](Operation &op, ArrayRef<Tensor> results) {
          if (observer)
            observer(op, results);
          if (auto cost = dyn_cast<CostOp>(op)) {
            done += cost.getFlops();
            report((finished + done / std::max(1.0, work)) / runs);
          }
        });
    ++finished;
    return result;
  }
  /// Steps that are run again because the first overflowed are more runs than were counted on.
  void addRun() { ++runs; }

private:
  void report(double share) const {
    if (options.progress)
      options.progress(std::min(1.0, share));
  }
  const PrecisionOptions &options;
  int runs;
  int finished = 0;
};

} // namespace

static std::string narrowTypeOf(const PrecisionSettings &precision) {
  if (precision.compute == "bf16" || precision.compute == "fp16")
    return precision.compute;
  if (precision.compute == "fp8")
    return "bf16"; // what its ops outside of products run in
  for (const PrecisionOverride &one : precision.overrides)
    if (one.type != "fp32")
      return one.type;
  return "";
}

static CompileOptions withFp32(CompileOptions options) {
  auto &precision = options.recipe.precision;
  precision.compute = "fp32";
  precision.lossScale = "none";
  precision.master = true;
  precision.state = "fp32";
  precision.overrides.clear();
  return options;
}

static CompileOptions withEverythingIn(CompileOptions options, const std::string &type) {
  options.recipe.precision.overrides = {{"", {}, type, ""}};
  return options;
}

/// Values that carry the scaled gradient: what depends on the seed and is not unscaled yet.
static DenseSet<Value> backwardValues(train::FuncOp step) {
  DenseSet<Value> values;
  for (Operation &op : step.getBody().front()) {
    bool isSeed = isa<train::SeedOp, train::ScaleLossOp>(op);
    if (!isSeed && (isa<train::UnscaleOp>(op) ||
                    llvm::none_of(op.getOperands(), [&](Value v) { return values.contains(v); })))
      continue;
    values.insert(op.result_begin(), op.result_end());
  }
  return values;
}

/// Ops that only move values round nothing; their results would be counted twice.
static bool computes(Operation &op) {
  auto fusible = dyn_cast<FusibleOp>(op);
  return fusible && fusible.getFusionClass() != FusionClass::View &&
         fusible.getFusionClass() != FusionClass::Copy;
}

static double distance(const Tensor &exact, const Tensor &actual) {
  double error = 0.0, norm = 0.0;
  for (size_t i = 0; i < exact.values.size(); ++i) {
    error += std::pow(actual.values[i] - exact.values[i], 2);
    norm += exact.values[i] * exact.values[i];
  }
  if (!std::isfinite(error))
    return INFINITY;
  return error == 0.0 ? 0.0 : std::sqrt(error) / std::max(1e-300, std::sqrt(norm));
}

static Tensor meanLoss(StepResult &result) {
  return Tensor({}, result.scalars["loss_sum"].values[0] / result.scalars["loss_weight"].values[0]);
}

/// Delayed fp8 scales come from the steps before; the first step has none, and says little about
/// the others.
static LogicalResult fillHistory(Runner &runner, ModuleOp module, StepInputs &inputs) {
  constexpr StringLiteral history = train::amaxHistoryState;
  if (!module.lookupSymbol<train::StateOp>(history))
    return success();
  runner.addRun();
  FailureOr<StepResult> first = runner.run(module, inputs, Arithmetic::Rounded);
  if (failed(first))
    return failure();
  auto found = first->updated.find(history);
  if (found != first->updated.end())
    inputs.values[history.str()] = found->second;
  return success();
}

/// The recipe's own step. A dynamic scale that overflows is halved as the program would halve it,
/// until the step would be taken.
static FailureOr<StepResult> runRecipe(Runner &runner, ModuleOp module, StepInputs inputs,
                                       const PrecisionSettings &precision,
                                       PrecisionReport &report) {
  if (failed(fillHistory(runner, module, inputs)))
    return failure();
  while (true) {
    if (precision.scalesDynamically())
      inputs.values[train::lossScaleState.str()] = Tensor({}, report.scaleUsed);
    FailureOr<StepResult> result = runner.run(module, inputs, Arithmetic::Rounded);
    if (failed(result) || !precision.scalesDynamically() || areFinite(result->gradients) ||
        report.scaleUsed <= precision.scaleFloor)
      return result;
    ++report.skipped;
    report.scaleUsed = std::max(precision.scaleFloor, report.scaleUsed * precision.scaleBackoff);
    runner.addRun();
  }
}

/// Magnitudes of what the backward pass rounds to f16. The program gets a dynamic scale, so that
/// its seed is an op of its own that values can be followed from.
static LogicalResult measureRange(MLIRContext &context, const CompileOptions &given, Runner &runner,
                                  const StepInputs &inputs, PrecisionReport &report) {
  CompileOptions options = given;
  constexpr double seedScale = 65536.0;
  options.recipe.precision.lossScale = "dynamic";
  options.recipe.precision.scaleInitial = seedScale;
  Compilation compilation(context, options);
  FailureOr<ModuleOp> module = compilation.lowerTo(Level::Train);
  if (failed(module))
    return failure();
  auto step = module->lookupSymbol<train::FuncOp>("step");
  DenseSet<Value> backward = backwardValues(step);
  if (llvm::none_of(backward, [](Value v) { return getElementTypeOrSelf(v).isF16(); }))
    return success();
  if (report.lossScale == "none")
    for (auto seed : step.getBody().getOps<train::ScaleLossOp>())
      report.scale = report.scaleUsed = seed.getExpected().convertToDouble();
  std::vector<double> scales{1.0};
  for (double scale : {report.scaleUsed, report.scale})
    if (!llvm::is_contained(scales, scale))
      scales.push_back(scale);
  GradientRange range(nn::FloatFormat::of(Float16Type::get(&context)), scales);
  auto observe = [&](Operation &op, ArrayRef<Tensor> results) {
    for (auto [value, tensor] : llvm::zip(op.getResults(), results))
      if (backward.contains(value) && getElementTypeOrSelf(value).isF16() && computes(op))
        range.add(tensor.values, seedScale);
  };
  if (failed(runner.run(*module, inputs, Arithmetic::Exact, observe)))
    return failure();
  report.range = std::move(range);
  return success();
}

FailureOr<PrecisionReport> analysePrecision(MLIRContext &context, const CompileOptions &options,
                                            const PrecisionOptions &precisionOptions) {
  const PrecisionSettings &precision = options.recipe.precision;
  PrecisionReport report;
  report.compute = precision.compute;
  report.narrowType = narrowTypeOf(precision);
  report.lossScale = precision.lossScale;
  report.scale = precision.scalesDynamically() ? precision.scaleInitial
                                               : precision.staticScale().value_or(1.0);
  report.scaleUsed = report.scale;
  bool isNarrow = !report.narrowType.empty();
  Runner runner(precisionOptions, 3 + 2 * isNarrow);

  Compilation model(context, options), fp32(context, withFp32(options)), own(context, options),
      all(context, withEverythingIn(options, report.narrowType));
  FailureOr<ModuleOp> nnModule = model.lowerTo(Level::NN);
  if (failed(nnModule))
    return failure();
  StepInputs inputs = makeInputs(*nnModule, precisionOptions.seed);
  FailureOr<ModuleOp> fp32Module = fp32.lowerTo(Level::Train);
  FailureOr<ModuleOp> ownModule = failed(fp32Module) ? fp32Module : own.lowerTo(Level::Train);
  if (failed(ownModule))
    return failure();
  FailureOr<StepResult> exact = runner.run(*fp32Module, inputs, Arithmetic::Exact);
  FailureOr<StepResult> single =
      failed(exact) ? exact : runner.run(*fp32Module, inputs, Arithmetic::Rounded);
  FailureOr<StepResult> recipe =
      failed(single) ? single : runRecipe(runner, *ownModule, inputs, precision, report);
  if (failed(recipe))
    return failure();
  FailureOr<StepResult> cast = recipe;
  if (isNarrow) {
    FailureOr<ModuleOp> allModule = all.lowerTo(Level::Train);
    if (failed(allModule))
      return failure();
    StepInputs scaled = inputs;
    if (precision.scalesDynamically())
      scaled.values[train::lossScaleState.str()] = Tensor({}, report.scaleUsed);
    if (failed(fillHistory(runner, *allModule, scaled)))
      return failure();
    cast = runner.run(*allModule, scaled, Arithmetic::Rounded);
    if (failed(cast) || failed(measureRange(context, options, runner, inputs, report)))
      return failure();
  }

  auto errorsOf = [&](const std::string &name, const Tensor &truth, auto of) {
    return PrecisionErrors{name, truth.size(), distance(truth, of(*single)),
                           distance(truth, of(*recipe)), distance(truth, of(*cast))};
  };
  report.loss = errorsOf("loss", meanLoss(*exact), meanLoss);
  for (const auto &[name, gradient] : exact->gradients)
    report.gradients.push_back(errorsOf(
        name, gradient, [&, &name = name](StepResult &result) { return result.gradients[name]; }));
  report.advice = advisePrecision(report);
  return report;
}

} // namespace descent
