//===- Dataset.cpp - Picking a loader, and what loaders share -------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"

#include <cmath>
#include <cstdlib>

namespace descent::data {

std::unique_ptr<Dataset> open(const OpenRequest &request) {
  if (request.fields.empty())
    throw Error(request.path + ": the program has no inputs to load data for");
  if (request.isTarget.size() != request.fields.size())
    throw Error(request.path + ": every field needs to be marked as data or target");
  if (!(request.validation >= 0.0 && request.validation < 1.0))
    throw Error(request.path + ": data.validation is " + std::to_string(request.validation) +
                ", expected a fraction from 0 up to but not including 1");
  if (request.path.empty())
    throw Error("no data file: set data.path in the recipe or give --data FILE");
  const std::string &format = request.format;
  if (format == "text")
    return openText(request);
  if (format == "tokens")
    return openTokens(request);
  if (format == "npz" || format == "npy")
    return openNumpy(request);
  if (format == "idx")
    return openIdx(request);
  if (format == "cifar" || format == "csv")
    throw Error(request.path + ": data.format " + quote(format) +
                " is not supported yet; convert the data to npz");
  throw Error(request.path + ": unknown data.format " + quote(format) +
              ", expected text, tokens, npz, npy or idx");
}

Range selectPart(const OpenRequest &request, int64_t total, const std::string &items) {
  // The part is rounded to the nearest count rather than down, so that 0.1 of 1000 is 100 whatever
  // 0.1 is in binary.
  int64_t held = std::llround(request.validation * static_cast<double>(total));
  Range part = request.validationPart ? Range{total - held, held} : Range{0, total - held};
  if (request.validation == 0.0)
    part = {0, total};
  if (part.count < 1)
    throw Error(request.path + ": the " + (request.validationPart ? "validation" : "training") +
                " part is empty: data.validation = " +
                setting(request, "data.validation", std::to_string(request.validation)) + " of " +
                std::to_string(total) + " " + items +
                "; give more data or another fraction (0 turns validation off)");
  return part;
}

std::string setting(const OpenRequest &request, const std::string &key,
                    const std::string &fallback) {
  auto found = request.settings.find(key);
  return found == request.settings.end() || found->second.empty() ? fallback : found->second;
}

std::vector<std::string> settingNames(const OpenRequest &request, const std::string &key) {
  std::string text = setting(request, key);
  if (text.empty())
    return {};
  if (text.front() != '[')
    return {text};
  // A TOML array of basic strings, as the compiler writes it: ["a", "b\"c"].
  std::vector<std::string> names;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] != '"')
      continue;
    std::string name;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\' && i + 1 < text.size())
        ++i;
      name += text[i];
    }
    names.push_back(name);
  }
  return names;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string quote(const std::string &text) { return "'" + text + "'"; }

std::vector<double> fieldScales(const OpenRequest &request, double fallback) {
  std::string text = setting(request, "data.scale");
  double scale = fallback;
  if (!text.empty()) {
    char *end = nullptr;
    scale = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !std::isfinite(scale) || scale == 0.0)
      throw Error(request.path + ": data.scale is " + quote(text) +
                  ", expected a finite number other than 0");
  }
  std::vector<double> scales;
  bool used = false;
  for (size_t i = 0; i < request.fields.size(); ++i) {
    int32_t dtype = request.fields[i].dtype;
    bool isFloat = dtypeName(dtype)[0] == 'f' || dtypeName(dtype)[0] == 'b';
    bool scaled = !request.isTarget[i] && isFloat;
    used |= scaled;
    scales.push_back(scaled ? scale : 1.0);
  }
  if (!text.empty() && !used)
    throw Error(request.path + ": data.scale is set, but no data input of the program has a float "
                               "type; remove the key");
  return scales;
}

} // namespace descent::data
