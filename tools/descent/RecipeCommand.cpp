//===- RecipeCommand.cpp - descent recipe ---------------------------------===//

#include "tools/descent/Commands.h"

#include "llvm/Support/raw_ostream.h"

namespace descent::tool {

void addRecipe(CLI::App &app, int &status) {
  CLI::App *command =
      app.add_subcommand("recipe", "print every key of recipe.toml with type, default and meaning");
  command->callback([&status] {
    llvm::outs() << recipeReference();
    status = 0;
  });
}

} // namespace descent::tool
