//===- Classifiers.cpp - An MLP and a convnet to start from ---------------===//
//
// Weights before a ReLU start normal with deviation sqrt(2 / fan-in) (He 2015), which keeps the
// variance from layer to layer; the last layer has no ReLU and starts with sqrt(1 / fan-in).
//
//===----------------------------------------------------------------------===//

#include "compiler/Gallery/Gallery.h"
#include "compiler/Gallery/Text.h"

#include <algorithm>
#include <cmath>

namespace descent {

using namespace gallery;

namespace {

constexpr const char *recipeText = R"(# How the model is trained. Every key: docs/recipe.md.
[model]
file = "model.mlir"

[data]
format = "npz"
inputs = "$input$"
targets = "labels"
validation = 0.1

[batch]
size = $batch$

[optimizer]
kind = "adamw"
lr = 1e-3
weight_decay = 0.01

[schedule]
kind = "cosine"
warmup = 50
steps = 1000
min_lr = 1e-5

[run]
seed = 0
)";

constexpr const char *readmeText = R"(# $name$

$what$
`model.mlir` is the model, `recipe.toml` says how it is trained; both are meant to be changed.

The data is an `.npz` with the arrays `$input$`, float32 $inputShape$, and `labels`, integers in [0, $classes$):

    numpy.savez("data.npz", $input$=x.astype("float32"), labels=y.astype("int32"))

    descent plan    $name$                  # memory and kernels, before anything runs
    descent compile $name$ -o train
    ./train --data data.npz --out run

The last tenth of the data is held out: the run prints the loss on it as well.
)";

/// A linear layer `name` from %in to %out, as text; both are batches of vectors.
std::string linear(const std::string &name, const std::string &in, const std::string &out,
                   int64_t from, int64_t to, double gain) {
  return fill(R"(  %$name$.w = nn.parameter "$name$.weight" normal(0.0, $deviation$) : $weight$
  %$name$.b = nn.parameter "$name$.bias" zeros : $bias$
  %$name$.product = nn.matmul $in$, %$name$.w : $from$, $weight$
  $out$ = nn.add %$name$.product, %$name$.b : $to$, $bias$
)",
              {{"name", name},
               {"in", in},
               {"out", out},
               {"deviation", decimal(std::sqrt(gain / static_cast<double>(from)))},
               {"weight", tensor({from, to})},
               {"bias", tensor({to})},
               {"from", batchOf({from})},
               {"to", batchOf({to})}});
}

std::string lossOf(const std::string &logits, int64_t classes) {
  return fill(R"(  %sum, %weight = nn.cross_entropy $logits$, %labels : $type$, tensor<?xi32>
  nn.loss %sum, %weight, $logits$ : $type$
}
)",
              {{"logits", logits}, {"type", batchOf({classes})}});
}

GalleryFiles withRecipe(std::string model, const std::string &what, const std::string &input,
                        const std::string &inputShape, int64_t classes, int64_t batch,
                        const std::string &name) {
  std::vector<std::pair<std::string, std::string>> values = {{"what", what},
                                                             {"input", input},
                                                             {"name", name},
                                                             {"classes", std::to_string(classes)},
                                                             {"inputShape", inputShape},
                                                             {"batch", std::to_string(batch)}};
  return {std::move(model), fill(recipeText, values), fill(readmeText, values)};
}

} // namespace

std::optional<GalleryFiles> galleryMlp(const MlpSizes &sizes, const std::string &name,
                                       std::vector<std::string> &errors) {
  size_t before = errors.size();
  checkSize("inputs", sizes.inputs, 1, 1 << 24, errors);
  for (int64_t hidden : sizes.hidden)
    checkSize("hidden", hidden, 1, 1 << 24, errors);
  checkSize("classes", sizes.classes, 2, 1 << 24, errors);
  checkSize("batch", sizes.batch, 1, 1 << 20, errors);
  if (errors.size() != before)
    return std::nullopt;

  std::string widths = std::to_string(sizes.inputs);
  for (int64_t hidden : sizes.hidden)
    widths += " - " + std::to_string(hidden);
  widths += " - " + std::to_string(sizes.classes);
  std::string text = "// A multilayer perceptron: " + widths +
                     ", ReLU between the layers.\n"
                     "// The `?` in the types is the batch; the recipe binds it.\n"
                     "nn.model @mlp(%x: " +
                     batchOf({sizes.inputs}) +
                     " {nn.role = \"data\"}, %labels: tensor<?xi32> {nn.role = \"target\"}) {\n";
  std::string value = "%x";
  int64_t width = sizes.inputs;
  for (size_t i = 0; i < sizes.hidden.size(); ++i) {
    std::string layer = "fc" + std::to_string(i), out = "%h" + std::to_string(i);
    text += linear(layer, value, "%" + layer + ".y", width, sizes.hidden[i], 2.0);
    width = sizes.hidden[i];
    text += "  " + out + " = nn.relu %" + layer + ".y : " + batchOf({width}) + "\n\n";
    value = out;
  }
  text += linear("fc" + std::to_string(sizes.hidden.size()), value, "%logits", width, sizes.classes,
                 1.0);
  text += lossOf("%logits", sizes.classes);
  return withRecipe(text, "A multilayer perceptron: " + widths + ", ReLU between the layers.", "x",
                    "[N, " + std::to_string(sizes.inputs) + "]", sizes.classes, sizes.batch, name);
}

std::optional<GalleryFiles> galleryConvnet(const ConvnetSizes &sizes, const std::string &name,
                                           std::vector<std::string> &errors) {
  size_t before = errors.size();
  checkSize("height", sizes.height, 1, 1 << 16, errors);
  checkSize("width", sizes.width, 1, 1 << 16, errors);
  checkSize("channels", sizes.channels, 1, 1 << 16, errors);
  for (int64_t filters : sizes.filters)
    checkSize("filters", filters, 1, 1 << 16, errors);
  checkSize("classes", sizes.classes, 2, 1 << 24, errors);
  checkSize("batch", sizes.batch, 1, 1 << 20, errors);
  if (sizes.filters.empty())
    errors.push_back("filters is empty, expected one number for each stage, as in 32,64");
  int64_t smallest = std::min(sizes.height, sizes.width);
  if (errors.size() == before &&
      (sizes.filters.size() > 16 || smallest >> sizes.filters.size() == 0))
    errors.push_back("filters has " + std::to_string(sizes.filters.size()) +
                     " stages, each of which halves the image, but an image of " +
                     std::to_string(sizes.height) + " x " + std::to_string(sizes.width) +
                     " can be halved less often; give fewer numbers");
  if (errors.size() != before)
    return std::nullopt;

  std::string image = std::to_string(sizes.height) + " x " + std::to_string(sizes.width) + " x " +
                      std::to_string(sizes.channels);
  std::string text = "// A convolutional network for images of " + image +
                     " (height, width, channels).\n"
                     "// Each stage is two 3x3 convolutions and a pooling that halves the image.\n"
                     "// The `?` in the types is the batch; the recipe binds it.\n";
  int64_t h = sizes.height, w = sizes.width, c = sizes.channels;
  std::string body, value = "%images";
  for (size_t stage = 0; stage < sizes.filters.size(); ++stage) {
    int64_t filters = sizes.filters[stage];
    for (const char *half : {"a", "b"}) {
      std::string layer = "conv" + std::to_string(stage) + half;
      body += fill(
          R"(  %$l$.w = nn.parameter "$l$.weight" normal(0.0, $deviation$) : $weight$
  %$l$.b = nn.parameter "$l$.bias" zeros : $bias$
  %$l$.product = nn.conv2d $in$, %$l$.w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : $from$, $weight$
  %$l$.sum = nn.add %$l$.product, %$l$.b : $to$, $bias$
  %$l$ = nn.relu %$l$.sum : $to$
)",
          {{"l", layer},
           {"in", value},
           {"deviation", decimal(std::sqrt(2.0 / (9.0 * static_cast<double>(c))))},
           {"weight", tensor({3, 3, c, filters})},
           {"bias", tensor({filters})},
           {"from", batchOf({h, w, c})},
           {"to", batchOf({h, w, filters})}});
      c = filters;
      value = "%" + layer;
    }
    std::string pooled = "%pool" + std::to_string(stage);
    body += "  " + pooled + " = nn.max_pool2d " + value +
            " kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : " + batchOf({h, w, c}) + "\n\n";
    value = pooled;
    h /= 2;
    w /= 2;
  }
  int64_t features = h * w * c;
  body += "  %features = nn.reshape " + value + " [-1, " + std::to_string(features) +
          "] : " + batchOf({h, w, c}) + "\n";
  body += linear("fc", "%features", "%logits", features, sizes.classes, 1.0);
  body += lossOf("%logits", sizes.classes);
  text += "nn.model @convnet(%images: " + batchOf({sizes.height, sizes.width, sizes.channels}) +
          " {nn.role = \"data\"}, %labels: tensor<?xi32> {nn.role = \"target\"}) {\n" + body;
  return withRecipe(
      text, "A convolutional network for images of " + image + " (height, width, channels).",
      "images",
      "[N, " + std::to_string(sizes.height) + ", " + std::to_string(sizes.width) + ", " +
          std::to_string(sizes.channels) + "]",
      sizes.classes, sizes.batch, name);
}

} // namespace descent
