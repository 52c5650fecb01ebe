//===- PlanCommand.cpp - descent plan -------------------------------------===//

#include "compiler/Report/Plan.h"
#include "tools/descent/Commands.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace descent::tool {

namespace {

struct PlanArguments {
  ProjectArguments project;
  bool json = false;
};

} // namespace

static int runPlan(const PlanArguments &arguments) {
  std::optional<CompileOptions> options = arguments.project.resolve();
  if (!options)
    return 1;
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
  Plan plan = makePlan(*schedule, compilation.getKernels());
  plan.tensors = std::move(*tensors);
  llvm::outs() << (arguments.json ? printPlanJson(plan) : printPlan(plan));
  return 0;
}

void addPlan(CLI::App &app, int &status) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App *command =
      app.add_subcommand("plan", "show memory, parameters, kernels: before anything runs");
  arguments->project.add(*command);
  command->add_flag("--json", arguments->json, "machine-readable");
  command->callback([arguments, &status] { status = runPlan(*arguments); });
}

} // namespace descent::tool
