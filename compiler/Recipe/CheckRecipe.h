//===- CheckRecipe.h - Rules that tie keys together -----------------------===//

#ifndef DESCENT_COMPILER_RECIPE_CHECKRECIPE_H
#define DESCENT_COMPILER_RECIPE_CHECKRECIPE_H

#include "compiler/Recipe/Recipe.h"

namespace descent {

void checkRecipe(const Recipe &recipe, std::vector<RecipeError> &errors);

} // namespace descent

#endif // DESCENT_COMPILER_RECIPE_CHECKRECIPE_H
