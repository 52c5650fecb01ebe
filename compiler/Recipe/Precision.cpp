//===- Precision.cpp - What the keys of [precision] say together ----------===//

#include "compiler/Recipe/Recipe.h"

#include <algorithm>
#include <charconv>

namespace descent {

std::optional<double> PrecisionSettings::staticScale() const {
  double value = 0.0;
  const char *end = lossScale.data() + lossScale.size();
  auto [parsed, status] = std::from_chars(lossScale.data(), end, value);
  return status == std::errc() && parsed == end ? std::optional(value) : std::nullopt;
}

bool PrecisionSettings::isNarrow() const {
  return (compute != "fp32" && compute != "tf32") ||
         std::any_of(overrides.begin(), overrides.end(),
                     [](const PrecisionOverride &one) { return one.type != "fp32"; });
}

} // namespace descent
