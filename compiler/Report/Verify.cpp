//===- Verify.cpp - The compiled step against double precision ------------===//
//
// The program that is compared is the very program that would train: built, linked and started as a
// process, fed through its own data loader, observed through the gradients it dumps, the weights it
// exports and the loss it logs.
//
// Where types are narrow the reference rounds as they do. What remains are values that lie so near
// the middle of two numbers that the order of an f32 sum decides: they round the other way, one
// unit in the last place, and every later op passes that on with the rounding of its own. A chain
// of D narrow ops so differs by about the square root of D roundings.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Verify.h"

#include "compiler/Report/Files.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/Rounding.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#define FMT_HEADER_ONLY
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace descent::reference;

namespace descent {

bool VerifyReport::passed() const {
  auto isClose = [&](const VerifiedTensor &t) { return t.difference <= tolerance; };
  return lossDifference <= tolerance && llvm::all_of(gradients, isClose) &&
         llvm::all_of(parameters, isClose);
}

static LogicalResult refuse(MLIRContext &context, const llvm::Twine &message) {
  return emitError(UnknownLoc::get(&context)) << message;
}

/// The longest sum of the model: contracted or reduced elements behind one result element, by the
/// flops of its ops.
static double longestSum(ModuleOp module) {
  double longest = 1.0;
  module.walk([&](CostOp op) {
    double results = 0.0;
    for (Type type : op->getResultTypes())
      results += static_cast<double>(cast<ShapedType>(type).getNumElements());
    longest = std::max(longest, op.getFlops() / std::max(1.0, 2.0 * results));
  });
  return longest;
}

/// Half a unit in the last place of what an op rounds its results to; 0 for f32 and integers.
static double narrowRoundoff(Operation &op) {
  if (isa<nn::RoundTf32Op>(op))
    return nn::FloatFormat::tf32().unitRoundoff();
  double most = 0.0;
  for (Type type : op.getResultTypes())
    if (auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
        element && element.getWidth() < 32)
      most = std::max(most, nn::FloatFormat::of(element).unitRoundoff());
  return most;
}

namespace {

/// What narrow types do to a block of ops.
struct NarrowChain {
  double coarsest = 0.0; ///< largest unit roundoff of an op's results
  double roundoff = 0.0; ///< the same where f8 counts as what two orders of a sum differ by in it
  int length = 0;        ///< of the longest chain of ops that round
  /// Between the program and the interpreter, relative to the largest element: a walk of `length`
  /// roundings, none of which agrees. Small programs, where hardly a value rounds the other way,
  /// stay far below.
  double tolerance() const { return roundoff * std::sqrt(static_cast<double>(length)); }
  /// Between a program and the same without some of the roundings.
  double roundingTolerance() const { return coarsest * std::sqrt(static_cast<double>(length)); }
};

} // namespace

/// Of @step, or of the model. Values that products read in f8 are rounded from 16-bit ones that
/// differ rarely, by 2^-9: of steps of 2^-4 that flips so few that their mean square is the product
/// of both.
static NarrowChain narrowChain(ModuleOp module) {
  Operation *function = module.lookupSymbol<train::FuncOp>("step");
  if (!function)
    function = *module.getOps<nn::ModelOp>().begin();
  NarrowChain chain;
  DenseMap<Value, int> depths;
  for (Operation &op : function->getRegion(0).front()) {
    double roundoff = 0.0;
    op.walk([&](Operation *nested) { roundoff = std::max(roundoff, narrowRoundoff(*nested)); });
    chain.coarsest = std::max(chain.coarsest, roundoff);
    constexpr double sixteenBits = 0x1p-9;
    if (roundoff > sixteenBits)
      roundoff = std::sqrt(roundoff * sixteenBits);
    int depth = roundoff > 0.0;
    for (Value operand : op.getOperands())
      depth = std::max(depth, depths.lookup(operand) + (roundoff > 0.0));
    for (Value result : op.getResults())
      depths[result] = depth;
    chain.roundoff = std::max(chain.roundoff, roundoff);
    chain.length = std::max(chain.length, depth);
  }
  return chain;
}

/// Inputs as arrays for the program's npz loader; what the runtime itself provides (row weights,
/// random keys) is left out.
static std::vector<NamedArray> batchArrays(nn::ModelOp model, const StepInputs &inputs) {
  std::vector<NamedArray> arrays;
  for (auto [number, type] : llvm::enumerate(model.getArgumentTypes())) {
    auto role = model.getArgAttrOfType<StringAttr>(number, "nn.role").getValue();
    if (role == "row_weights" || role == "rng")
      continue;
    auto name = model.getArgAttrOfType<StringAttr>(number, "nn.name");
    arrays.push_back({name.str(), !isa<FloatType>(cast<RankedTensorType>(type).getElementType()),
                      inputs.inputs[number]});
  }
  return arrays;
}

static llvm::Error runProgram(ArrayRef<std::string> command, const std::string &log) {
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log), StringRef(log)};
  if (llvm::sys::ExecuteAndWait(command[0], arguments, std::nullopt, redirects) == 0)
    return llvm::Error::success();
  auto output = llvm::MemoryBuffer::getFile(log);
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "the compiled program failed:\n" +
                                     (output ? (*output)->getBuffer() : StringRef()));
}

static llvm::Expected<double> readLoss(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(buffer.getError(), "cannot read " + path);
  StringRef line = (*buffer)->getBuffer().split('\n').first;
  auto json = nlohmann::json::parse(line, nullptr, false);
  return json.is_object() && json["loss"].is_number() ? json["loss"].get<double>() : NAN;
}

static std::vector<VerifiedTensor> compare(const NamedTensors &expected,
                                           const NamedTensors &actual) {
  std::vector<VerifiedTensor> table;
  for (const auto &[name, tensor] : expected) {
    auto found = actual.find(name);
    table.push_back(
        {name, found == actual.end() ? INFINITY : relativeDifference(tensor, found->second)});
  }
  return table;
}

static NamedTensors scaled(NamedTensors tensors, double factor) {
  for (auto &[name, tensor] : tensors)
    for (double &element : tensor.values)
      element *= factor;
  return tensors;
}

/// The step in the program's own arithmetic. A dynamic loss scale is halved until the step would be
/// taken; the recipe is changed to start there, for the program.
static FailureOr<StepResult> interpretRounded(ModuleOp module, StepInputs &inputs,
                                              PrecisionSettings &precision) {
  while (true) {
    if (precision.scalesDynamically())
      inputs.values["loss_scale"] = Tensor({}, precision.scaleInitial);
    FailureOr<StepResult> result = interpretStep(module, inputs, Arithmetic::Rounded);
    if (failed(result) || areFinite(result->gradients))
      return result;
    if (!precision.scalesDynamically() || precision.scaleInitial <= precision.scaleFloor)
      return module.emitError()
             << "gradients overflow on the random inputs of verify at loss scale "
             << precision.staticScale().value_or(
                    precision.scalesDynamically() ? precision.scaleInitial : 1.0)
             << "; a skipped step has nothing to compare. `descent verify --precision` says which "
                "scale fits";
    precision.scaleInitial =
        std::max(precision.scaleFloor, precision.scaleInitial * precision.scaleBackoff);
  }
}

FailureOr<VerifyReport> verifyProgram(MLIRContext &context, const CompileOptions &given,
                                      const VerifyOptions &verify) {
  CompileOptions options = given;
  options.recipe.data.format =
      "npz"; // the batch comes from a file of exact arrays, whatever the recipe trains on
  options.recipe.data.path.clear();
  options.recipe.data.inputs.clear();
  options.recipe.data.targets.clear();
  options.recipe.data.scale.reset();
  options.recipe.data.validation = 0.0;

  // The reference.
  Compilation model(context, options), train(context, options);
  FailureOr<ModuleOp> nnModule = model.lowerTo(Level::NN);
  if (failed(nnModule))
    return failure();
  StepInputs inputs = makeInputs(*nnModule, verify.seed);
  FailureOr<ModuleOp> trainModule = train.lowerTo(Level::Train);
  if (failed(trainModule))
    return failure();
  NarrowChain narrow = narrowChain(*trainModule);
  bool isRounded = narrow.length > 0;
  FailureOr<StepResult> exact = interpretStep(*trainModule, inputs);
  if (failed(exact))
    return failure();
  FailureOr<StepResult> reference =
      isRounded ? interpretRounded(*trainModule, inputs, options.recipe.precision) : exact;
  if (failed(reference))
    return failure();

  // The program.
  Compilation program(context, options);
  SmallString<128> folder;
  if (auto code = llvm::sys::fs::createUniqueDirectory("descent-verify", folder))
    return refuse(context, "cannot create a temporary folder: " + code.message());
  auto cleanUp = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  std::string base(folder);
  if (failed(program.lowerTo(Level::Exec)) || failed(program.generate()))
    return failure();
  FailureOr<std::vector<ObjectBytes>> objects = program.emitObjects();
  if (failed(objects))
    return failure();
  auto toResult = [&](llvm::Error error) -> LogicalResult {
    return error ? refuse(context, llvm::toString(std::move(error))) : success();
  };
  NamedTensors weights;
  nn::ModelOp nnModel = *nnModule->getOps<nn::ModelOp>().begin();
  for (auto parameter : nnModel.getBody().front().getOps<nn::ParameterOp>())
    weights[parameter.getName().str()] = inputs.values.at(parameter.getName().str());
  if (failed(toResult(linkExecutable(*objects, base + "/train", options.isEmulated()))) ||
      failed(toResult(writeNpz(base + "/batch.npz", batchArrays(nnModel, inputs)))) ||
      failed(toResult(writeSafetensors(base + "/weights.safetensors", weights))) ||
      failed(toResult(
          runProgram({base + "/train", "--data", base + "/batch.npz", "--no-shuffle", "--steps",
                      "1", "--seed", std::to_string(verify.seed), "--out", base + "/run",
                      "--init-from", base + "/weights.safetensors", "--dump-gradients",
                      base + "/gradients.safetensors", "--export", base + "/updated.safetensors"},
                     base + "/log"))))
    return failure();
  auto gradients = readSafetensors(base + "/gradients.safetensors");
  auto updated = readSafetensors(base + "/updated.safetensors");
  auto loss = readLoss(base + "/run/metrics.jsonl");
  for (auto *result : {&gradients, &updated})
    if (!*result)
      return toResult(result->takeError());
  if (!loss)
    return toResult(loss.takeError());

  VerifyReport report;
  report.isRounded = isRounded;
  double weight = reference->scalars["loss_weight"].values[0];
  report.referenceLoss = reference->scalars["loss_sum"].values[0] / weight;
  report.exactLoss = exact->scalars["loss_sum"].values[0] / weight;
  report.programLoss = *loss;
  report.lossDifference = std::abs(report.programLoss - report.referenceLoss) /
                          std::max(1e-30, std::abs(report.referenceLoss));
  if (std::isnan(report.lossDifference))
    report.lossDifference = INFINITY;
  const PrecisionSettings &precision = options.recipe.precision;
  report.lossScale = precision.scalesDynamically() ? precision.scaleInitial
                                                   : precision.staticScale().value_or(1.0);
  report.gradients = compare(scaled(reference->gradients, 1.0 / weight), *gradients);
  if (isRounded) {
    std::vector<VerifiedTensor> errors =
        compare(scaled(exact->gradients, 1.0 / weight), *gradients);
    for (auto [line, error] : llvm::zip_equal(report.gradients, errors))
      line.error = error.difference;
    // The gradients differ by roundings, which the first step of Adam turns into whole steps where
    // they decide a sign.
    if (failed(applyUpdates(*trainModule, inputs, scaled(*gradients, weight), Arithmetic::Rounded,
                            *reference)))
      return failure();
  }
  NamedTensors updatedParameters;
  for (const auto &[name, tensor] : reference->updated)
    if (weights.count(name))
      updatedParameters[name] = tensor;
  report.parameters = compare(updatedParameters, *updated);
  report.tolerance = verify.tolerance > 0.0
                         ? verify.tolerance
                         : 16.0 * 0x1p-23 * std::sqrt(longestSum(*nnModule)) + narrow.tolerance();
  return report;
}

FailureOr<std::vector<VerifiedPass>> verifyEachPass(MLIRContext &context,
                                                    const CompileOptions &given, uint64_t seed) {
  Compilation model(context, given);
  FailureOr<ModuleOp> nnModule = model.lowerTo(Level::NN);
  if (failed(nnModule))
    return failure();
  StepInputs inputs = makeInputs(*nnModule, seed);
  FailureOr<StepResult> start = interpretStep(*nnModule, inputs);
  if (failed(start))
    return failure();

  // Each part is compared with its first appearance: the loss with the model's, gradients with
  // those of differentiate.
  StepResult first = std::move(*start), before; // of rounded arithmetic: before the pass
  double narrowest = 0.0;
  std::vector<VerifiedPass> passes;
  CompileOptions options = given;
  bool isBound =
      false; // before the Import phase ends, arguments and shapes are not those of the inputs
  options.afterEachPass = [&](ModuleOp module, StringRef pass) -> LogicalResult {
    isBound |= pass == "verify-model";
    if (!isBound)
      return success();
    FailureOr<StepResult> result = interpretStep(module, inputs);
    narrowest = std::max(narrowest, narrowChain(module).roundingTolerance());
    FailureOr<StepResult> rounded = StepResult();
    if (narrowest > 0.0)
      rounded = interpretStep(module, inputs, Arithmetic::Rounded);
    if (failed(result) || failed(rounded))
      return failure();
    auto largest = [](NamedTensors &expected, const NamedTensors &actual) {
      if (expected.empty())
        expected = actual;
      double most = 0.0;
      for (const VerifiedTensor &tensor : compare(expected, actual))
        most = std::max(most, tensor.difference);
      return most;
    };
    auto sumsOf = [](StepResult &step) {
      return NamedTensors{{"loss_sum", step.scalars["loss_sum"]},
                          {"loss_weight", step.scalars["loss_weight"]}};
    };
    NamedTensors firstSums = sumsOf(first);
    VerifiedPass line{pass.str(), largest(firstSums, sumsOf(*result)),
                      result->gradients.empty() ? 0.0 : largest(first.gradients, result->gradients),
                      result->updated.empty() ? 0.0 : largest(first.updated, result->updated),
                      std::nullopt};
    constexpr double reassociation =
        1e-9; // of double, over the longest sums a model has; a wrong op is many orders above
    // Literals that become operands of narrow ops are rounded, in exact arithmetic too.
    bool roundsLiterals = pass == "insert-precision-casts" && narrowest > 0.0;
    line.changed = !(std::max({line.loss, line.gradients, line.updates}) <=
                     (roundsLiterals ? narrowest : reassociation));
    if (roundsLiterals)
      first = *result;
    // A loss scale is there to change what narrow gradients lose.
    bool isScale = pass == "insert-loss-scaling";
    if (!before.scalars.empty() && !rounded->scalars.empty() && !isScale) {
      NamedTensors sumsBefore = sumsOf(before);
      line.rounding = largest(sumsBefore, sumsOf(*rounded));
      if (!before.gradients.empty())
        line.rounding = std::max(*line.rounding, largest(before.gradients, rounded->gradients));
      line.changed |= !(*line.rounding <= narrowest);
    }
    before = std::move(*rounded);
    passes.push_back(line);
    return success();
  };
  Compilation followed(context, options);
  if (failed(followed.lowerTo(Level::Exec)))
    return failure();
  return passes;
}

std::string printVerifyReport(const VerifyReport &report) {
  std::string out =
      fmt::format("{:<34}{:>16}{:>16}{:>14}\n", "", "reference", "program", "difference");
  out += fmt::format("{:<34}{:>16.8f}{:>16.8f}{:>14.2e}\n", "loss", report.referenceLoss,
                     report.programLoss, report.lossDifference);
  if (report.isRounded)
    out += fmt::format("{:<34}{:>16.8f}\n", "loss in double precision", report.exactLoss);
  out += fmt::format("\n{:<34}{:>16}{:>16}", "parameter", "gradient", "after update");
  out += report.isRounded ? fmt::format("{:>20}\n", "gradient to double") : "\n";
  for (const VerifiedTensor &gradient : report.gradients) {
    auto updated =
        llvm::find_if(report.parameters, [&](const auto &t) { return t.name == gradient.name; });
    double update = updated == report.parameters.end() ? NAN : updated->difference;
    out += fmt::format("{:<34}{:>16.2e}{:>16.2e}", gradient.name, gradient.difference, update);
    if (report.isRounded)
      out += fmt::format("{:>20.2e}", gradient.error);
    bool isClose = gradient.difference <= report.tolerance && update <= report.tolerance;
    out += isClose ? "\n" : "   <- above tolerance\n";
  }
  if (report.isRounded)
    out += "\nThe reference rounds to the program's types; the last column is what that costs.\n";
  if (report.lossScale != 1.0)
    out += fmt::format("Loss scale {:.10g}.\n", report.lossScale);
  out += fmt::format("\n{}: differences are relative to the largest element; tolerance {:.1e}\n",
                     report.passed() ? "passed" : "FAILED", report.tolerance);
  return out;
}

std::string printVerifiedPasses(const std::vector<VerifiedPass> &passes) {
  bool anyRounds =
      llvm::any_of(passes, [](const VerifiedPass &p) { return p.rounding.has_value(); });
  std::string out =
      fmt::format("{:<28}{:>12}{:>12}{:>12}", "after pass", "loss", "gradients", "updates");
  out += anyRounds ? fmt::format("{:>12}\n", "rounding") : "\n";
  bool wasSound = true;
  for (const VerifiedPass &pass : passes) {
    out += fmt::format("{:<28}{:>12.1e}{:>12.1e}{:>12.1e}", pass.pass, pass.loss, pass.gradients,
                       pass.updates);
    if (anyRounds)
      out += pass.rounding ? fmt::format("{:>12.1e}", *pass.rounding) : fmt::format("{:>12}", "");
    out += pass.changed && wasSound ? "   <- changed the meaning\n" : "\n";
    wasSound &= !pass.changed;
  }
  return out + (wasSound ? "passed: no pass changed the meaning\n" : "FAILED\n");
}

} // namespace descent
