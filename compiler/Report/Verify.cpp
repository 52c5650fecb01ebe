//===- Verify.cpp - The compiled step against double precision ------------===//
//
// The program that is compared is the very program that would train: built, linked and started as a
// process, fed through its own data loader, observed through the gradients it dumps, the weights it
// exports and the loss it logs.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Verify.h"

#include "compiler/Report/Files.h"
#include "dialects/NN/NN.h"

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
  Compilation model(context, options), train(context, options), program(context, options);
  FailureOr<ModuleOp> nnModule = model.lowerTo(Level::NN);
  if (failed(nnModule))
    return failure();
  StepInputs inputs = makeInputs(*nnModule, verify.seed);
  FailureOr<ModuleOp> trainModule = train.lowerTo(Level::Train);
  if (failed(trainModule))
    return failure();
  FailureOr<StepResult> reference = interpretStep(*trainModule, inputs);
  if (failed(reference))
    return failure();

  // The program.
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
  if (failed(toResult(linkExecutable(*objects, base + "/train"))) ||
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
  double weight = reference->scalars["loss_weight"].values[0];
  report.referenceLoss = reference->scalars["loss_sum"].values[0] / weight;
  report.programLoss = *loss;
  report.lossDifference = std::abs(report.programLoss - report.referenceLoss) /
                          std::max(1e-30, std::abs(report.referenceLoss));
  if (std::isnan(report.lossDifference))
    report.lossDifference = INFINITY;
  for (auto &[name, gradient] : reference->gradients)
    for (double &element : gradient.values)
      element /= weight;
  report.gradients = compare(reference->gradients, *gradients);
  NamedTensors updatedParameters;
  for (const auto &[name, tensor] : reference->updated)
    if (weights.count(name))
      updatedParameters[name] = tensor;
  report.parameters = compare(updatedParameters, *updated);
  report.tolerance =
      verify.tolerance > 0.0 ? verify.tolerance : 16.0 * 0x1p-23 * std::sqrt(longestSum(*nnModule));
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
  StepResult first = std::move(*start);
  std::vector<VerifiedPass> passes;
  CompileOptions options = given;
  bool isBound =
      false; // before the Import phase ends, arguments and shapes are not those of the inputs
  options.afterEachPass = [&](ModuleOp module, StringRef pass) -> LogicalResult {
    isBound |= pass == "verify-model";
    if (!isBound)
      return success();
    FailureOr<StepResult> result = interpretStep(module, inputs);
    if (failed(result))
      return failure();
    auto largest = [](NamedTensors &expected, const NamedTensors &actual) {
      if (expected.empty())
        expected = actual;
      double most = 0.0;
      for (const VerifiedTensor &tensor : compare(expected, actual))
        most = std::max(most, tensor.difference);
      return most;
    };
    NamedTensors sums{{"loss_sum", result->scalars["loss_sum"]},
                      {"loss_weight", result->scalars["loss_weight"]}};
    NamedTensors firstSums{{"loss_sum", first.scalars["loss_sum"]},
                           {"loss_weight", first.scalars["loss_weight"]}};
    VerifiedPass line{pass.str(), largest(firstSums, sums),
                      result->gradients.empty() ? 0.0 : largest(first.gradients, result->gradients),
                      result->updated.empty() ? 0.0 : largest(first.updated, result->updated)};
    constexpr double reassociation =
        1e-9; // of double, over the longest sums a model has; a wrong op is many orders above
    line.changed = !(std::max({line.loss, line.gradients, line.updates}) <= reassociation);
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
  out += fmt::format("{:<34}{:>16.8f}{:>16.8f}{:>14.2e}\n\n", "loss", report.referenceLoss,
                     report.programLoss, report.lossDifference);
  out += fmt::format("{:<34}{:>16}{:>16}\n", "parameter", "gradient", "after update");
  for (size_t i = 0; i < report.gradients.size(); ++i) {
    auto updated = llvm::find_if(report.parameters,
                                 [&](const auto &t) { return t.name == report.gradients[i].name; });
    out += fmt::format(
        "{:<34}{:>16.2e}{:>16.2e}{}\n", report.gradients[i].name, report.gradients[i].difference,
        updated == report.parameters.end() ? NAN : updated->difference,
        report.gradients[i].difference <= report.tolerance ? "" : "   <- above tolerance");
  }
  out += fmt::format("\n{}: differences are relative to the largest element; tolerance {:.1e}\n",
                     report.passed() ? "passed" : "FAILED", report.tolerance);
  return out;
}

std::string printVerifiedPasses(const std::vector<VerifiedPass> &passes) {
  std::string out =
      fmt::format("{:<28}{:>12}{:>12}{:>12}\n", "after pass", "loss", "gradients", "updates");
  bool wasSound = true;
  for (const VerifiedPass &pass : passes) {
    out +=
        fmt::format("{:<28}{:>12.1e}{:>12.1e}{:>12.1e}{}\n", pass.pass, pass.loss, pass.gradients,
                    pass.updates, pass.changed && wasSound ? "   <- changed the meaning" : "");
    wasSound &= !pass.changed;
  }
  return out + (wasSound ? "passed: no pass changed the meaning\n" : "FAILED\n");
}

} // namespace descent
