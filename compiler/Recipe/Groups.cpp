//===- Groups.cpp - Which parameters a recipe freezes ---------------------===//

#include "compiler/Recipe/Recipe.h"
#include "dialects/Train/Train.h"

#include <algorithm>

namespace descent {

bool isFrozen(const Recipe &recipe, const std::string &parameter) {
  bool frozen = false;
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    if (std::any_of(group.match.begin(), group.match.end(), [&](const std::string &pattern) {
          return train::matchesPattern(parameter, pattern);
        }))
      frozen = group.frozen;
  return frozen;
}

} // namespace descent
