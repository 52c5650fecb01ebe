//===- RecipeKeys.h - The table of recipe keys ----------------------------===//

#ifndef DESCENT_COMPILER_RECIPE_RECIPEKEYS_H
#define DESCENT_COMPILER_RECIPE_RECIPEKEYS_H

#include "compiler/Recipe/Recipe.h"

#include <limits>
#include <variant>

namespace descent {

/// What a value looks like in the file. Several kinds share a C++ type.
enum class KeyKind {
  Text,
  Path,
  Names,
  Integer,
  Number,
  Pair,
  Boolean,
  Size,
  ChoiceOrNumber ///< one of `choices`, or a number in `range`; kept as its text
};

/// Limits of a number; infinite where there is none.
struct KeyRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool highOpen = false; ///< high itself is out
  bool lowOpen = false;
};

/// What is said of a key, whoever owns it.
struct KeyInfo {
  const char *table, *key;
  KeyKind kind;
  const char *standard; ///< default as TOML text, "" for none
  const char *unit;
  const char *text; ///< one or two sentences for the reference
  KeyRange range = {};
  std::vector<const char *> choices = {}; ///< of a Text

  /// The feature behind the key that does not exist yet, "" if it does. Then only `neutral` is
  /// accepted (TOML text; "" means that the key must be absent); with choices, only those in
  /// `laterChoices` are refused.
  const char *later = "";
  const char *neutral = "";
  std::vector<const char *> laterChoices = {};

  std::string name() const { return std::string(table) + "." + key; }
};

/// A key and the member it sets.
template <typename Owner> struct Key : KeyInfo {
  std::variant<std::string &(*)(Owner &), std::vector<std::string> &(*)(Owner &),
               int64_t &(*)(Owner &), std::optional<int64_t> &(*)(Owner &), double &(*)(Owner &),
               std::optional<double> &(*)(Owner &), std::array<double, 2> &(*)(Owner &),
               bool &(*)(Owner &)>
      field;
};

const std::vector<Key<Recipe>> &recipeKeys();
const std::vector<Key<OptimizerGroup>> &groupKeys();       ///< table "optimizer.group"
const std::vector<Key<PrecisionOverride>> &overrideKeys(); ///< table "precision.override"

/// Values as TOML text.
std::string tomlText(const std::string &value,
                     KeyKind kind); ///< unquoted, as settings carry scalars
std::string tomlText(const std::vector<std::string> &value, KeyKind kind);
std::string tomlText(int64_t value, KeyKind kind);
std::string tomlText(double value, KeyKind kind);
std::string tomlText(const std::array<double, 2> &value, KeyKind kind);
std::string tomlText(bool value, KeyKind kind);

} // namespace descent

#endif // DESCENT_COMPILER_RECIPE_RECIPEKEYS_H
