//===- Commands.h - The subcommands of descent ----------------------------===//
//
// Each adds itself to the command line and returns what to run when it was chosen. The result is
// the exit status: 0 done, 1 refused or failed.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_TOOLS_DESCENT_COMMANDS_H
#define DESCENT_TOOLS_DESCENT_COMMANDS_H

#define CLI11_HAS_FILESYSTEM 1
#include <CLI/CLI.hpp>

#include "compiler/Pipelines/Compile.h"

#include <functional>
#include <optional>

namespace descent::tool {

void addNew(CLI::App &app, int &status);
void addCompile(CLI::App &app, int &status);
void addPlan(CLI::App &app, int &status);
void addVerify(CLI::App &app, int &status);
void addRecipe(CLI::App &app, int &status);

/// What names a model and a recipe, shared by compile, plan and verify.
struct ProjectArguments {
  std::string folder, model, recipe, target, cpu = "native";
  std::vector<std::string> overrides;

  void add(CLI::App &command);
  /// Reads and checks the recipe; prints errors on stderr.
  std::optional<CompileOptions> resolve() const;
};

/// Prints "descent: error: message" on stderr and returns 1.
int fail(const std::string &message);

/// A context that knows all dialects and prints diagnostics on stderr with the line they are about.
class Session {
public:
  Session();
  ~Session();
  mlir::MLIRContext &context();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace descent::tool

#endif // DESCENT_TOOLS_DESCENT_COMMANDS_H
