//===- VerifyCommand.cpp - descent verify ---------------------------------===//

#include "compiler/Report/Precision.h"
#include "compiler/Report/Verify.h"
#include "tools/descent/Commands.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace descent::tool {

namespace {

struct VerifyArguments {
  ProjectArguments project;
  VerifyOptions options;
  bool eachPass = false, precision = false, json = false;
};

/// Says on stderr how far a long interpretation is; short ones pass silently.
class Progress {
public:
  void operator()(double share) {
    using namespace std::chrono;
    auto now = steady_clock::now();
    if (now - last < seconds(5) || share <= 0.0)
      return;
    last = now;
    double elapsed = duration<double>(now - start).count();
    llvm::errs() << llvm::format("descent: %.0f %% interpreted, about %.0f s left\n", 100.0 * share,
                                 elapsed * (1.0 - share) / share);
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), last = start;
};

} // namespace

static int runPrecision(const VerifyArguments &arguments, const CompileOptions &options) {
  Session session;
  PrecisionOptions precision;
  precision.seed = arguments.options.seed;
  precision.progress = Progress();
  FailureOr<PrecisionReport> report = analysePrecision(session.context(), options, precision);
  if (failed(report))
    return 1;
  llvm::outs() << (arguments.json ? precisionReportJson(*report) : printPrecisionReport(*report));
  return 0;
}

static int runVerify(const VerifyArguments &arguments) {
  std::optional<CompileOptions> options = arguments.project.resolve();
  if (!options)
    return 1;
  if (arguments.precision)
    return runPrecision(arguments, *options);
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
  CLI::Option *eachPass = command->add_flag(
      "--each-pass", arguments->eachPass,
      "instead interpret the program after every pass and name the first that changed its meaning");
  CLI::Option *tolerance = command->add_option(
      "--tolerance", arguments->options.tolerance,
      "largest relative difference allowed (default: from the types and the longest sum)");
  CLI::Option *precision =
      command
          ->add_flag("--precision", arguments->precision,
                     "instead report what the recipe's types cost: the error of every gradient "
                     "beside that of fp32 and of everything narrow, which gradients a loss scale "
                     "saves, and what to set")
          ->excludes(eachPass)
          ->excludes(tolerance);
  command->add_flag("--json", arguments->json, "print the report of --precision as JSON")
      ->needs(precision);
  command->add_option("--seed", arguments->options.seed, "of the random weights and inputs")
      ->capture_default_str();
  command->footer(
      "The interpreter is slow on purpose; --set batch.size=2 makes a large model "
      "quick. Exit status 1 above tolerance; with --precision, only where the recipe is "
      "refused.");
  command->callback([arguments, &status] { status = runVerify(*arguments); });
}

} // namespace descent::tool
