//===- Gallery.h - Models to start from -----------------------------------===//
//
// `descent new gpt|mlp|convnet DIR` writes a model, a recipe and a README. The text is meant to be
// read and changed: it is formatted as a person would write it, with the paper's structure, not
// printed from IR.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_GALLERY_GALLERY_H
#define DESCENT_COMPILER_GALLERY_GALLERY_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace descent {

/// A pre-norm GPT: learned positions, causal attention, GELU (tanh form), output tied to the token
/// embedding.
struct GptSizes {
  int64_t layers = 4, heads = 4, width = 128, sequence = 64, vocabulary = 256, batch = 16;
};

/// Linear layers with ReLU between them, classifying vectors.
struct MlpSizes {
  int64_t inputs = 64;
  std::vector<int64_t> hidden = {128};
  int64_t classes = 10, batch = 64;
};

/// Stages of two 3x3 convolutions with ReLU and a 2x2 max pooling, then a linear layer, classifying
/// images [height, width, channels].
struct ConvnetSizes {
  int64_t height = 28, width = 28, channels = 1;
  std::vector<int64_t> filters = {32, 64}; ///< of each stage
  int64_t classes = 10, batch = 64;
};

/// The text of the files of one folder.
struct GalleryFiles {
  std::string model, recipe, readme;
};

/// Each checks its sizes first: an entry in `errors` for each that cannot work, saying why, and
/// then no files. `name` is the folder's name as the README's commands use it.
std::optional<GalleryFiles> galleryGpt(const GptSizes &sizes, const std::string &name,
                                       std::vector<std::string> &errors);
std::optional<GalleryFiles> galleryMlp(const MlpSizes &sizes, const std::string &name,
                                       std::vector<std::string> &errors);
std::optional<GalleryFiles> galleryConvnet(const ConvnetSizes &sizes, const std::string &name,
                                           std::vector<std::string> &errors);

/// Writes model.mlir, recipe.toml and README.md into `folder`, which must not exist or be empty.
/// All or nothing: the files are made in a temporary folder beside it that is renamed at the end.
/// Returns an error text, or nothing if all went well.
std::optional<std::string> writeGalleryFolder(const GalleryFiles &files, const std::string &folder);

} // namespace descent

#endif // DESCENT_COMPILER_GALLERY_GALLERY_H
