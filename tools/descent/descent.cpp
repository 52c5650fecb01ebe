//===- descent.cpp - The compiler's command line --------------------------===//

#include "compiler/Version.h"
#include "tools/descent/Commands.h"

int main(int argc, char **argv) {
  CLI::App app("Compiles a model and a recipe into a standalone training program.", "descent");
  app.set_version_flag("--version", descent::versionText());
  app.require_subcommand(1);
  app.footer("Start with: descent new gpt my-gpt && descent compile my-gpt -o my-gpt/train && "
             "my-gpt/train --help");
  int status = 0;
  descent::tool::addNew(app, status);
  descent::tool::addCompile(app, status);
  descent::tool::addPlan(app, status);
  descent::tool::addVerify(app, status);
  descent::tool::addRecipe(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return status;
}
