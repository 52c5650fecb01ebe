//===- Text.h - Writing model text ----------------------------------------===//

#ifndef DESCENT_COMPILER_GALLERY_TEXT_H
#define DESCENT_COMPILER_GALLERY_TEXT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace descent::gallery {

/// Replaces each `$name$` in a template. Every name must be known; a template is code, so a stray
/// one is a bug that shows in its first test as text that does not parse.
std::string fill(std::string_view text,
                 const std::vector<std::pair<std::string, std::string>> &values);

/// "tensor<?x64x128xf32>": the batch, then `shape`.
std::string batchOf(const std::vector<int64_t> &shape, const char *element = "f32");
/// "tensor<64x128xf32>".
std::string tensor(const std::vector<int64_t> &shape);

/// A number with at most six digits, and with a point, so that it reads as a float.
std::string decimal(double value);

/// Adds an error unless low <= value <= high.
void checkSize(const char *name, int64_t value, int64_t low, int64_t high,
               std::vector<std::string> &errors);

} // namespace descent::gallery

#endif // DESCENT_COMPILER_GALLERY_TEXT_H
