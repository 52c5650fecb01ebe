//===- Text.cpp - Writing model text and folders --------------------------===//

#include "compiler/Gallery/Text.h"
#include "compiler/Gallery/Gallery.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

namespace descent {

namespace gallery {

std::string fill(std::string_view text,
                 const std::vector<std::pair<std::string, std::string>> &values) {
  std::string out;
  size_t at = 0;
  while (true) {
    size_t open = text.find('$', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos)
      return out;
    size_t close = text.find('$', open + 1);
    std::string_view name = text.substr(open + 1, close - open - 1);
    bool known = false;
    for (const auto &[key, value] : values)
      if (key == name) {
        out += value;
        known = true;
      }
    if (!known)
      out += text.substr(open, close - open + 1);
    at = close + 1;
  }
}

static std::string dimensions(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text;
}

std::string batchOf(const std::vector<int64_t> &shape, const char *element) {
  return "tensor<?x" + dimensions(shape) + element + ">";
}

std::string tensor(const std::vector<int64_t> &shape) {
  return "tensor<" + dimensions(shape) + "f32>";
}

std::string decimal(double value) {
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%.6g", value);
  std::string text = buffer;
  // MLIR reads a float literal only with a point: 1e-05 becomes 1.0e-05.
  size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos)
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

void checkSize(const char *name, int64_t value, int64_t low, int64_t high,
               std::vector<std::string> &errors) {
  if (value < low || value > high)
    errors.push_back(std::string(name) + " is " + std::to_string(value) + ", expected " +
                     std::to_string(low) + " to " + std::to_string(high));
}

} // namespace gallery

std::optional<std::string> writeGalleryFolder(const GalleryFiles &files,
                                              const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code failure;
  fs::path target = fs::path(folder).lexically_normal();
  if (!target.has_filename()) // "dir/" is "dir".
    target = target.parent_path();
  if (target.empty() || target == "." || target == "..")
    target = fs::absolute(target).lexically_normal();
  if (fs::exists(target, failure)) {
    if (!fs::is_directory(target, failure))
      return folder + ": exists and is not a folder; give another name";
    bool empty = fs::is_empty(target, failure);
    if (failure)
      return folder + ": cannot be read: " + failure.message();
    if (!empty)
      return folder + ": exists and is not empty; give another name, or remove what is in it";
  }
  fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(parent, failure);
  if (failure)
    return parent.string() + ": cannot be made: " + failure.message();

  // Beside the target, so that the rename at the end stays on one file system and is atomic.
  std::string pattern = (parent / (".descent-new-XXXXXX")).string();
  if (!mkdtemp(pattern.data()))
    return parent.string() + ": cannot make a folder in it: " + std::strerror(errno);
  fs::path temporary = pattern;
  auto give = [&](const std::string &message) {
    fs::remove_all(temporary, failure);
    return message;
  };
  const std::pair<const char *, const std::string *> contents[] = {
      {"model.mlir", &files.model}, {"recipe.toml", &files.recipe}, {"README.md", &files.readme}};
  for (auto [name, text] : contents) {
    std::ofstream file(temporary / name, std::ios::binary);
    file << *text;
    file.close();
    if (!file)
      return give(folder + "/" + name + ": cannot be written: " + std::strerror(errno));
  }
  // mkdtemp makes a private folder; this one is the user's to share.
  fs::permissions(temporary,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  failure);
  fs::rename(temporary, target, failure); // Replaces an empty folder, and nothing else.
  if (failure)
    return give(folder + ": cannot be made: " + failure.message());
  return std::nullopt;
}

} // namespace descent
