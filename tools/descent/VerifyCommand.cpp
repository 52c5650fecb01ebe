//===- VerifyCommand.cpp - descent verify ---------------------------------===//

#include "compiler/Report/Verify.h"
#include "tools/descent/Commands.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace descent::tool {

namespace {

struct VerifyArguments {
  ProjectArguments project;
  VerifyOptions options;
  bool eachPass = false;
};

} // namespace

static int runVerify(const VerifyArguments &arguments) {
  std::optional<CompileOptions> options = arguments.project.resolve();
  if (!options)
    return 1;
  Session session;
  if (arguments.eachPass) {
    FailureOr<std::vector<VerifiedPass>> passes =
        verifyEachPass(session.context(), *options, arguments.options.seed);
    if (failed(passes))
      return 1;
    llvm::outs() << printVerifiedPasses(*passes);
    return llvm::any_of(*passes, [](const VerifiedPass &pass) { return pass.changed; });
  }
  FailureOr<VerifyReport> report = verifyProgram(session.context(), *options, arguments.options);
  if (failed(report))
    return 1;
  llvm::outs() << printVerifyReport(*report);
  return report->passed() ? 0 : 1;
}

void addVerify(CLI::App &app, int &status) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App *command =
      app.add_subcommand("verify", "compare one compiled step with a double-precision reference");
  arguments->project.add(*command);
  command->add_flag(
      "--each-pass", arguments->eachPass,
      "instead interpret the program after every pass and name the first that changed its meaning");
  command->add_option(
      "--tolerance", arguments->options.tolerance,
      "largest relative difference allowed (default: from the type and the longest sum)");
  command->add_option("--seed", arguments->options.seed, "of the random weights and inputs")
      ->capture_default_str();
  command->footer("The interpreter is slow on purpose; --set batch.size=2 makes a large model "
                  "quick. Exit status 1 above tolerance.");
  command->callback([arguments, &status] { status = runVerify(*arguments); });
}

} // namespace descent::tool
