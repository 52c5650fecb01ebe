//===- WriteRecipe.cpp - Recipe settings for the binary, and the reference ===//

#include "compiler/Recipe/RecipeKeys.h"

#include <cmath>

namespace descent {

namespace {

/// The value as text, or nothing if an optional key is not given.
template <typename Owner>
std::optional<std::string> valueText(const Key<Owner> &key, const Owner &owner) {
  return std::visit(
      [&](auto field) -> std::optional<std::string> {
        // The accessors hand out references to set; nothing is set here.
        auto &value = field(const_cast<Owner &>(owner));
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                      std::is_same_v<T, std::optional<double>>) {
          if (!value)
            return std::nullopt;
          return tomlText(*value, key.kind);
        } else if constexpr (std::is_same_v<T, std::string> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          if (value.empty())
            return std::nullopt;
          return tomlText(value, key.kind);
        } else {
          return tomlText(value, key.kind);
        }
      },
      key.field);
}

std::string typeText(const KeyInfo &key) {
  switch (key.kind) {
  case KeyKind::Text:
  case KeyKind::ChoiceOrNumber: {
    if (key.choices.empty())
      return "string";
    std::string text;
    for (const char *choice : key.choices)
      text += (text.empty() ? "`" : ", `") + std::string(choice) + "`";
    return key.kind == KeyKind::ChoiceOrNumber ? text + " or a number" : text;
  }
  case KeyKind::Path:
    return "path";
  case KeyKind::Names:
    return "name or array of names";
  case KeyKind::Integer:
    return "integer";
  case KeyKind::Number:
    return "number";
  case KeyKind::Pair:
    return "two numbers";
  case KeyKind::Boolean:
    return "boolean";
  case KeyKind::Size:
    break;
  }
  return "size";
}

std::string row(const KeyInfo &key) {
  std::string standard = *key.standard ? "`" + std::string(key.standard) + "`" : "";
  std::string text = key.text;
  if (*key.later) {
    std::string what(key.later);
    what[0] = static_cast<char>(std::toupper(what[0]));
    if (key.laterChoices.empty())
      text += " *" + what + " is not supported yet.*";
    else {
      std::string names;
      for (const char *choice : key.laterChoices)
        names += (names.empty() ? "`" : ", `") + std::string(choice) + "`";
      text += " *" + names + ": not supported yet.*";
    }
  }
  return "| `" + std::string(key.key) + "` | " + typeText(key) + " | " + standard + " | " +
         key.unit + " | " + text + " |\n";
}

const char *heading = "\n| key | type | default | unit | |\n|---|---|---|---|---|\n";

} // namespace

std::vector<std::pair<std::string, std::string>> Recipe::flatten() const {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto &key : recipeKeys())
    if (auto text = valueText(key, *this))
      settings.emplace_back(key.name(), *text);
  for (size_t i = 0; i < optimizer.groups.size(); ++i)
    for (const auto &key : groupKeys())
      if (auto text = valueText(key, optimizer.groups[i]))
        settings.emplace_back("optimizer.group." + std::to_string(i) + "." + key.key, *text);
  for (size_t i = 0; i < precision.overrides.size(); ++i)
    for (const auto &key : overrideKeys())
      if (auto text = valueText(key, precision.overrides[i]))
        settings.emplace_back("precision.override." + std::to_string(i) + "." + key.key, *text);
  return settings;
}

std::string recipeReference() {
  std::string text =
      "# The recipe\n\n"
      "A recipe is a TOML file that says how a model is trained. This page is generated from the "
      "table that the compiler\nreads recipes with.\n\n"
      "- Relative paths are relative to the recipe.\n"
      "- Sizes are `123B`, `1KiB`, `25MiB`, `2GiB`, or a number of bytes.\n"
      "- `descent compile --set table.key=value` overrides any key; strings may stand without "
      "quotes. A key of the second\n  `[[optimizer.group]]` is `optimizer.group.1.key`, one of the "
      "first `[[precision.override]]`\n  `precision.override.0.key`.\n"
      "- An unknown key, a value out of range, a key that the chosen kind has no use for, and a "
      "key "
      "whose feature does not\n  exist yet are errors.\n";
  std::string table;
  auto repeated = [&](const char *name, const char *purpose, const auto &keys) {
    text += "\n## [[" + std::string(name) + "]]\n\nMay be repeated. " + purpose + "\n" + heading;
    for (const auto &key : keys)
      text += row(key);
  };
  auto endOf = [&](const std::string &finished) {
    if (finished == "optimizer")
      repeated("optimizer.group", "Treats the parameters whose names match differently.",
               groupKeys());
    if (finished == "precision")
      repeated("precision.override", "Gives ops another type than `compute` and their class do.",
               overrideKeys());
  };
  for (const auto &key : recipeKeys()) {
    if (table != key.table) {
      endOf(table);
      table = key.table;
      text += "\n## [" + table + "]\n" + heading;
    }
    text += row(key);
  }
  return text;
}

} // namespace descent
