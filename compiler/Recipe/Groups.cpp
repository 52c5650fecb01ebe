//===- Groups.cpp - Which parameter gets which treatment ------------------===//

#include "compiler/Recipe/Recipe.h"

#include <algorithm>

namespace descent {

bool matchesPattern(const std::string &pattern, const std::string &name) {
  // Greedy with one point to fall back to: on a mismatch the last '*' swallows one character more.
  size_t p = 0, n = 0, star = std::string::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

ParameterTreatment treatmentOf(const Recipe &recipe, const std::string &parameter, int64_t rank) {
  ParameterTreatment treatment;
  treatment.weightDecay = rank > 1 ? recipe.optimizer.weightDecay : 0.0;
  const auto &groups = recipe.optimizer.groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    const OptimizerGroup &group = groups[i];
    if (std::none_of(group.match.begin(), group.match.end(), [&](const std::string &pattern) {
          return matchesPattern(pattern, parameter);
        }))
      continue;
    treatment.group = static_cast<int>(i);
    treatment.lrScale = group.lrScale;
    treatment.weightDecay = group.weightDecay.value_or(treatment.weightDecay);
    treatment.frozen = group.frozen;
    break;
  }
  return treatment;
}

void checkGroups(const Recipe &recipe, const std::vector<std::string> &parameters,
                 std::vector<RecipeError> &errors) {
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    for (const std::string &pattern : group.match)
      if (std::none_of(parameters.begin(), parameters.end(),
                       [&](const std::string &name) { return matchesPattern(pattern, name); })) {
        std::string names;
        for (size_t i = 0; i < std::min<size_t>(parameters.size(), 8); ++i)
          names += (i ? ", " : "") + parameters[i];
        errors.push_back({group.where, "pattern '" + pattern +
                                           "' matches no parameter of the model; it has " + names +
                                           (parameters.size() > 8 ? ", ..." : "")});
      }
}

} // namespace descent
