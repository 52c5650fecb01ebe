//===- ParseRecipe.cpp - From TOML to a checked recipe --------------------===//
//
// Steps:
//   1. every key gets its default from the table;
//   2. the file's tables are walked, each value is converted by its key's row, unknown names are
//   reported with the nearest known;
//   3. overrides go through the same conversion, so that they obey the same rules;
//   4. rules that tie keys together are checked (CheckRecipe.cpp).
// An error does not stop the walk: all that is wrong is reported at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/Recipe/CheckRecipe.h"
#include "compiler/Recipe/RecipeKeys.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace descent {

namespace fs = std::filesystem;

namespace {

/// Edits (insertions, deletions, replacements, swaps of neighbours) from one word to another.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

/// The known word with the fewest edits; among equals the one of the most similar length, so that
/// 'adamv' means adamw, not adam.
std::string nearest(const std::string &word, const std::vector<std::string> &known) {
  auto rank = [&](const std::string &other) {
    size_t longer = std::max(word.size(), other.size()),
           shorter = std::min(word.size(), other.size());
    return std::pair(distance(word, other), longer - shorter);
  };
  return *std::min_element(known.begin(), known.end(),
                           [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
}

std::string listed(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

std::vector<std::string> tableNames() {
  std::vector<std::string> names;
  for (const auto &key : recipeKeys())
    if (names.empty() || names.back() != key.table)
      names.push_back(key.table);
  return names;
}

template <typename Owner>
std::vector<std::string> keysOf(const std::vector<Key<Owner>> &keys, const std::string &table) {
  std::vector<std::string> names;
  for (const auto &key : keys)
    if (key.table == table)
      names.push_back(key.key);
  return names;
}

const char *kindName(const toml::node &node) {
  switch (node.type()) {
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return "an array";
  case toml::node_type::string:
    return "a string";
  case toml::node_type::integer:
    return "an integer";
  case toml::node_type::floating_point:
    return "a number";
  case toml::node_type::boolean:
    return "a boolean";
  default:
    return "a date or time";
  }
}

class Parser {
public:
  Parser(const std::string &path, std::vector<RecipeError> &errors) : path(path), errors(errors) {
    recipe.path = fs::absolute(path).lexically_normal().string();
    for (const auto &key : recipeKeys())
      setDefault(key, recipe);
  }

  void file(const std::string &text) {
    toml::parse_result result = toml::parse(std::string_view(text), path);
    if (!result) {
      error(position(result.error().source()),
            std::string(result.error().description()) + "; the file must be TOML");
      return;
    }
    root(result.table());
  }

  /// "table.key=value" or "optimizer.group.0.key=value".
  void override(const std::string &assignment) {
    std::string where = "--set " + assignment;
    size_t equals = assignment.find('=');
    std::string name = trimmed(assignment.substr(0, equals));
    size_t dot = name.rfind('.');
    if (equals == std::string::npos || dot == std::string::npos)
      return error(where, "expected table.key=value, as in batch.size=64");
    std::string table = name.substr(0, dot), key = name.substr(dot + 1);
    std::string value = trimmed(assignment.substr(equals + 1));
    if (table.rfind("optimizer.group", 0) == 0)
      return overrideElement(groupKeys(), recipe.optimizer.groups, "optimizer groups", table, key,
                             value, where);
    if (table.rfind("precision.override", 0) == 0)
      return overrideElement(overrideKeys(), recipe.precision.overrides, "precision overrides",
                             table, key, value, where);
    if (!knownTable(table, where))
      return;
    overrideKey(recipeKeys(), table, recipe, key, value, where);
  }

  Recipe recipe;

private:
  void error(const std::string &where, const std::string &message) {
    errors.push_back({where, message});
  }

  std::string position(const toml::source_region &region) const {
    return path + ":" + std::to_string(region.begin.line) + ":" +
           std::to_string(region.begin.column);
  }

  static std::string trimmed(const std::string &text) {
    size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
  }

  template <typename Owner> void setDefault(const Key<Owner> &key, Owner &owner) {
    if (!*key.standard) {
      std::visit([&](auto field) { field(owner) = {}; }, key.field);
      return;
    }
    toml::parse_result result = toml::parse("v = " + std::string(key.standard));
    set(key, owner, *result.table().get("v"), "default of " + key.name());
  }

  void root(const toml::table &tables) {
    for (auto &&[name, node] : tables) {
      std::string table(name.str());
      std::string where = position(name.source());
      const toml::table *body = node.as_table();
      if (!body) {
        if (keysOf(recipeKeys(), table).empty())
          error(where, "key '" + table + "' stands outside of any table; " + placeOf(table));
        else
          error(where,
                "'" + table + "' is " + kindName(node) + ", expected a table [" + table + "]");
        continue;
      }
      if (!knownTable(table, where))
        continue;
      for (auto &&[keyName, value] : *body) {
        std::string key(keyName.str());
        std::string at = position(keyName.source());
        if (table == "optimizer" && key == "group")
          elements(groupKeys(), recipe.optimizer.groups, value, at);
        else if (table == "precision" && key == "override")
          elements(overrideKeys(), recipe.precision.overrides, value, at);
        else if (const auto *known = findKey(recipeKeys(), table, key, at))
          give(*known, recipe, value, at, known->name());
      }
    }
  }

  /// The tables of an array such as [[optimizer.group]].
  template <typename Owner>
  void elements(const std::vector<Key<Owner>> &keys, std::vector<Owner> &list,
                const toml::node &node, const std::string &where) {
    std::string table = keys.front().table;
    const toml::array *array = node.as_array();
    if (!array || !array->is_homogeneous(toml::node_type::table)) {
      error(where, table + " is " + std::string(kindName(node)) + ", expected one or more [[" +
                       table + "]] tables");
      return;
    }
    for (const toml::node &element : *array) {
      Owner one;
      one.where = position(element.source());
      std::string prefix = table + "." + std::to_string(list.size()) + ".";
      for (auto &&[keyName, value] : *element.as_table()) {
        std::string at = position(keyName.source());
        if (const auto *known = findKey(keys, table, std::string(keyName.str()), at))
          give(*known, one, value, at, prefix + known->key);
      }
      list.push_back(std::move(one));
    }
  }

  /// Where a key of this name belongs, for one that was found outside of its table.
  std::string placeOf(const std::string &key) {
    std::vector<std::string> homes;
    for (const auto &known : recipeKeys())
      if (known.key == key)
        homes.push_back("[" + std::string(known.table) + "]");
    return homes.empty() ? "tables are [" + joined(tableNames(), "], [") + "]"
                         : "it belongs to " + listed(homes);
  }

  static std::string joined(const std::vector<std::string> &words, const std::string &by) {
    std::string text;
    for (const std::string &word : words)
      text += (text.empty() ? "" : by) + word;
    return text;
  }

  bool knownTable(const std::string &table, const std::string &where) {
    std::vector<std::string> names = tableNames();
    if (std::find(names.begin(), names.end(), table) != names.end())
      return true;
    error(where, "unknown table [" + table + "]; did you mean [" + nearest(table, names) + "]?");
    return false;
  }

  template <typename Owner>
  const Key<Owner> *findKey(const std::vector<Key<Owner>> &keys, const std::string &table,
                            const std::string &name, const std::string &where) {
    for (const auto &key : keys)
      if (key.table == table && key.key == name)
        return &key;
    std::string message = "unknown key " + table + "." + name;
    // The same key in another table explains more than a similar one in this.
    for (const auto &key : recipeKeys())
      if (key.key == name) {
        error(where, message + "; did you mean " + key.name() + "?");
        return nullptr;
      }
    error(where,
          message + "; did you mean " + table + "." + nearest(name, keysOf(keys, table)) + "?");
    return nullptr;
  }

  /// A key of one table of an array, named as "optimizer.group.0"; `noun` is what they are called.
  template <typename Owner>
  void overrideElement(const std::vector<Key<Owner>> &keys, std::vector<Owner> &list,
                       const std::string &noun, const std::string &table, const std::string &key,
                       const std::string &value, const std::string &where) {
    std::string name = keys.front().table;
    bool hasIndex = table.size() > name.size() + 1 && table[name.size()] == '.';
    std::string digits = hasIndex ? table.substr(name.size() + 1) : "";
    size_t index = 0;
    auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (list.empty())
      return error(where, "the recipe has no [[" + name + "]] to change; write one into the file");
    if (digits.empty() || parsed.ec != std::errc() || *parsed.ptr != 0 || index >= list.size())
      return error(where, "the recipe has " + std::to_string(list.size()) + " " + noun +
                              "; name one as " + name + ".0." + key);
    overrideKey(keys, name, list[index], key, value, where);
  }

  template <typename Owner>
  void overrideKey(const std::vector<Key<Owner>> &keys, const std::string &table, Owner &owner,
                   const std::string &name, const std::string &value, const std::string &where) {
    const Key<Owner> *key = findKey(keys, table, name, where);
    if (!key)
      return;
    bool isText = key->kind == KeyKind::Text || key->kind == KeyKind::Path ||
                  key->kind == KeyKind::Names || key->kind == KeyKind::Size;
    bool quoted = !value.empty() && (value[0] == '"' || value[0] == '\'' || value[0] == '[');
    bool isElement = table.find('.') != std::string::npos;
    std::string given = isElement ? where : key->name();
    bool isChoice =
        key->kind == KeyKind::ChoiceOrNumber &&
        std::find(key->choices.begin(), key->choices.end(), value) != key->choices.end();
    if ((isText && !quoted) || isChoice)
      return give(*key, owner, toml::value<std::string>(value), where, given);
    toml::parse_result result = toml::parse("v = " + value);
    const toml::node *node = result ? result.table().get("v") : nullptr;
    if (!node || result.table().size() != 1)
      return error(where, key->name() + " is '" + value + "', expected " + expectation(*key));
    give(*key, owner, *node, where, given);
  }

  /// Sets a key that the file or the command line gives.
  template <typename Owner>
  void give(const Key<Owner> &key, Owner &owner, const toml::node &node, const std::string &where,
            const std::string &name) {
    recipe.origins[name] = where;
    set(key, owner, node, where);
  }

  template <typename Owner>
  void set(const Key<Owner> &key, Owner &owner, const toml::node &node, const std::string &where) {
    std::visit(
        [&](auto field) {
          auto &target = field(owner);
          if (!read(key, node, target, where))
            error(where, key.name() + " is " + shown(node) + ", expected " + expectation(key));
        },
        key.field);
  }

  static std::string shown(const toml::node &node) {
    if (node.is_table() || node.is_date() || node.is_time() || node.is_date_time())
      return kindName(node);
    std::ostringstream text;
    node.visit([&](auto &&value) { text << value; });
    return std::string(kindName(node)) + " (" + text.str() + ")";
  }

  static std::string expectation(const KeyInfo &key) {
    switch (key.kind) {
    case KeyKind::Text:
      if (!key.choices.empty())
        return listed({key.choices.begin(), key.choices.end()});
      return "a string";
    case KeyKind::ChoiceOrNumber: {
      std::vector<std::string> words(key.choices.begin(), key.choices.end());
      words.push_back("a finite number" + limits(key.range));
      return listed(words);
    }
    case KeyKind::Path:
      return "a path in quotes";
    case KeyKind::Names:
      return "a name in quotes, or an array of such";
    case KeyKind::Integer:
      return "an integer" + limits(key.range);
    case KeyKind::Number:
      return "a finite number" + limits(key.range);
    case KeyKind::Pair:
      return "an array of two numbers" + limits(key.range);
    case KeyKind::Boolean:
      return "true or false";
    case KeyKind::Size:
      break;
    }
    return "a size such as \"512MiB\", or a number of bytes";
  }

  static std::string limits(const KeyRange &range) {
    auto number = [](double value) {
      std::ostringstream text;
      text.precision(10);
      text << value;
      return text.str();
    };
    std::string text;
    if (std::isfinite(range.low))
      text = (range.lowOpen ? " above " : " of at least ") + number(range.low);
    if (std::isfinite(range.high))
      text += (text.empty() ? " " : " and ") + std::string(range.highOpen ? "below " : "at most ") +
              number(range.high);
    return text;
  }

  static bool inRange(const KeyRange &range, double value) {
    return std::isfinite(value) && (range.lowOpen ? value > range.low : value >= range.low) &&
           (range.highOpen ? value < range.high : value <= range.high);
  }

  //===--------------------------------------------------------------------===//
  // One reader for each type of member. False: not what the key expects.
  //===--------------------------------------------------------------------===//

  /// Refuses, by name, a value whose feature does not exist yet.
  bool later(const KeyInfo &key, const std::string &value, const std::string &where) {
    bool refused = key.laterChoices.empty()
                       ? *key.later && (!*key.neutral || value != key.neutral)
                       : std::find(key.laterChoices.begin(), key.laterChoices.end(), value) !=
                             key.laterChoices.end();
    if (!refused || where.rfind("default of ", 0) == 0)
      return false;
    std::string cure = "remove the key";
    if (*key.neutral || !key.laterChoices.empty())
      cure += " or set it to " +
              (*key.neutral ? std::string(key.neutral) : std::string(supported(key)));
    error(where, key.name() + " = " + value + ": " + key.later + " is not supported yet; " + cure);
    return true;
  }

  static std::string supported(const KeyInfo &key) {
    std::vector<std::string> words;
    for (const char *choice : key.choices)
      if (std::none_of(key.laterChoices.begin(), key.laterChoices.end(),
                       [&](const char *one) { return std::string(one) == choice; }))
        words.push_back(choice);
    return listed(words);
  }

  bool read(const KeyInfo &key, const toml::node &node, std::string &target,
            const std::string &where) {
    std::optional<std::string> value = node.value_exact<std::string>();
    if (key.kind == KeyKind::ChoiceOrNumber) {
      double number = 0.0;
      if (node.is_number() && read(key, node, number, where))
        target = tomlText(number, key.kind);
      else if (value &&
               std::find(key.choices.begin(), key.choices.end(), *value) != key.choices.end())
        target = *value;
      else
        return false;
      return true;
    }
    if (!value)
      return false;
    if (value->find('\0') != std::string::npos || (key.kind == KeyKind::Path && value->empty()))
      return false;
    if (!key.choices.empty()) {
      std::vector<std::string> choices(key.choices.begin(), key.choices.end());
      if (std::find(choices.begin(), choices.end(), *value) == choices.end()) {
        error(where, "unknown " + key.name() + " '" + *value + "'; did you mean '" +
                         nearest(*value, choices) + "'? Known are " + listed(choices));
        return true;
      }
    }
    if (later(key, *value, where))
      return true;
    if (key.kind == KeyKind::Path)
      value = (fs::path(recipe.path).parent_path() / *value).lexically_normal().string();
    target = *value;
    return true;
  }

  bool read(const KeyInfo &key, const toml::node &node, std::vector<std::string> &target,
            const std::string &) {
    std::vector<std::string> names;
    if (const toml::array *array = node.as_array()) {
      for (const toml::node &element : *array)
        if (auto name = element.value_exact<std::string>())
          names.push_back(*name);
      if (names.size() != array->size())
        return false;
    } else if (auto name = node.value_exact<std::string>()) {
      names.push_back(*name);
    }
    if (names.empty() || std::any_of(names.begin(), names.end(), [](const std::string &name) {
          return name.empty() || name.find('\0') != std::string::npos;
        }))
      return false;
    target = names;
    return true;
  }

  bool read(const KeyInfo &key, const toml::node &node, int64_t &target, const std::string &where) {
    std::optional<int64_t> value = node.value_exact<int64_t>();
    if (key.kind == KeyKind::Size)
      if (auto text = node.value_exact<std::string>())
        value = parseSize(*text);
    if (!value || !inRange(key.range, static_cast<double>(*value)))
      return false;
    if (!later(key, std::to_string(*value), where))
      target = *value;
    return true;
  }

  bool read(const KeyInfo &key, const toml::node &node, double &target, const std::string &where) {
    std::optional<double> value = node.value_exact<double>();
    if (auto integer = node.value_exact<int64_t>())
      value = static_cast<double>(*integer);
    if (!value || !inRange(key.range, *value))
      return false;
    if (!later(key, tomlText(*value, key.kind), where))
      target = *value;
    return true;
  }

  template <typename T>
  bool read(const KeyInfo &key, const toml::node &node, std::optional<T> &target,
            const std::string &where) {
    T value{};
    if (!read(key, node, value, where))
      return false;
    target = value;
    return true;
  }

  bool read(const KeyInfo &key, const toml::node &node, std::array<double, 2> &target,
            const std::string &where) {
    const toml::array *array = node.as_array();
    return array && array->size() == 2 && read(key, (*array)[0], target[0], where) &&
           read(key, (*array)[1], target[1], where);
  }

  bool read(const KeyInfo &, const toml::node &node, bool &target, const std::string &) {
    std::optional<bool> value = node.value_exact<bool>();
    if (value)
      target = *value;
    return value.has_value();
  }

  const std::string &path;
  std::vector<RecipeError> &errors;
};

/// Defaults that depend on other keys.
void completeDefaults(Recipe &recipe) {
  auto &precision = recipe.precision;
  bool hasHalf = precision.compute == "fp16" ||
                 std::any_of(precision.overrides.begin(), precision.overrides.end(),
                             [](const PrecisionOverride &one) { return one.type == "fp16"; });
  if (precision.lossScale.empty())
    precision.lossScale = hasHalf ? "dynamic" : "none";
}

} // namespace

std::optional<Recipe> parseRecipeText(const std::string &text, const std::string &path,
                                      const std::vector<std::string> &overrides,
                                      std::vector<RecipeError> &errors) {
  size_t before = errors.size();
  Parser parser(path, errors);
  parser.file(text);
  for (const std::string &assignment : overrides)
    parser.override(assignment);
  completeDefaults(parser.recipe);
  // Rules between keys only confuse where the keys themselves are wrong.
  if (errors.size() == before)
    checkRecipe(parser.recipe, errors);
  if (errors.size() != before)
    return std::nullopt;
  return std::move(parser.recipe);
}

std::optional<Recipe> parseRecipe(const std::string &path,
                                  const std::vector<std::string> &overrides,
                                  std::vector<RecipeError> &errors) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) {
    errors.push_back({path, fs::exists(path, failure) ? "is not a file, expected a recipe in TOML"
                                                      : "no such file, expected a recipe in TOML"});
    return std::nullopt;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.bad()) {
    errors.push_back({path, "cannot be read"});
    return std::nullopt;
  }
  return parseRecipeText(text.str(), path, overrides, errors);
}

std::optional<int64_t> parseSize(const std::string &text) {
  int64_t number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || number < 0)
    return std::nullopt;
  std::string unit(end, text.data() + text.size());
  static const std::pair<const char *, int> units[] = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                       {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (auto [name, shift] : units)
    if (unit == name)
      return number > (std::numeric_limits<int64_t>::max() >> shift)
                 ? std::nullopt
                 : std::optional(number << shift);
  return std::nullopt;
}

} // namespace descent
