//===- PlanCommand.cpp - descent plan -------------------------------------===//

#include "compiler/Report/Plan.h"
#include "tools/descent/Commands.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace descent::tool {

namespace {

struct PlanArguments {
  ProjectArguments project;
  std::string product;
  bool json = false;
};

} // namespace

static int runPlan(const PlanArguments &arguments) {
  std::optional<CompileOptions> options = arguments.project.resolve();
  if (!options)
    return 1;
  std::optional<CudaTarget> cuda = options->cuda;
  if (!arguments.product.empty()) {
    if (!cuda)
      return fail("--product names a GPU, and the target is cpu; add --target cuda:sm_90");
    if (llvm::Error error = chooseProduct(*cuda, arguments.product))
      return fail("--product: " + llvm::toString(std::move(error)));
  }
  Session session;
  Compilation compilation(session.context(), std::move(*options));
  // Types are decided on the model as the Import phase leaves it, which the phases after it
  // replace.
  FailureOr<ModuleOp> model = compilation.lowerTo(Level::NN);
  if (failed(model))
    return 1;
  FailureOr<std::vector<Plan::Tensor>> tensors = readTypes(*model);
  if (failed(tensors))
    return 1;
  FailureOr<ModuleOp> schedule = compilation.lowerTo(Level::Exec);
  if (failed(schedule) || failed(compilation.generate()))
    return 1;
  Plan plan;
  if (cuda) {
    FailureOr<std::optional<Cubin>> cubin = compilation.emitDeviceCubin();
    if (failed(cubin))
      return 1;
    plan = makePlan(*schedule, compilation.getKernels(), *cuda, *cubin ? &**cubin : nullptr);
  } else {
    plan = makePlan(*schedule, compilation.getKernels());
  }
  plan.tensors = std::move(*tensors);
  llvm::outs() << (arguments.json ? printPlanJson(plan) : printPlan(plan));
  return 0;
}

void addPlan(CLI::App &app, int &status) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App *command =
      app.add_subcommand("plan", "show memory, parameters, kernels: before anything runs");
  arguments->project.add(*command);
  command->add_option(
      "--product", arguments->product,
      "GPU that times are predicted for, of a CUDA target: part of a name, as H200; the "
      "chip's usual one without it");
  command->add_flag("--json", arguments->json, "machine-readable");
  command->callback([arguments, &status] { status = runPlan(*arguments); });
}

} // namespace descent::tool
