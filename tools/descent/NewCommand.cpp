//===- NewCommand.cpp - descent new ---------------------------------------===//

#include "compiler/Gallery/Gallery.h"
#include "tools/descent/Commands.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace descent::tool {

namespace {

/// Adds one family; `make` turns its sizes into files.
template <typename Sizes>
CLI::App *addFamily(CLI::App &app, const char *name, const char *description,
                    std::shared_ptr<Sizes> sizes,
                    std::optional<GalleryFiles> (*make)(const Sizes &, const std::string &,
                                                        std::vector<std::string> &),
                    int &status) {
  CLI::App *command = app.add_subcommand(name, description);
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "folder to make; it must not exist or be empty")
      ->required();
  command->callback([=, &status] {
    std::vector<std::string> errors;
    std::optional<GalleryFiles> files = make(*sizes, *folder, errors);
    for (const std::string &error : errors)
      fail(error);
    if (!files) {
      status = 1;
      return;
    }
    if (std::optional<std::string> error = writeGalleryFolder(*files, *folder)) {
      status = fail(*error);
      return;
    }
    llvm::outs() << "wrote " << *folder
                 << "/model.mlir, recipe.toml and README.md\nnext: descent compile " << *folder
                 << " -o " << *folder << "/train\n";
  });
  return command;
}

void addSize(CLI::App *command, const char *option, int64_t &value, const char *description) {
  command->add_option(option, value, description)->capture_default_str();
}

} // namespace

void addNew(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("new", "write a model and a recipe to start from");
  command->require_subcommand(1);

  auto gpt = std::make_shared<GptSizes>();
  CLI::App *family = addFamily(*command, "gpt", "a language model: pre-norm transformer decoder",
                               gpt, galleryGpt, status);
  addSize(family, "--layers", gpt->layers, "blocks");
  addSize(family, "--heads", gpt->heads, "attention heads; must divide the width");
  addSize(family, "--width", gpt->width, "channels");
  addSize(family, "--sequence", gpt->sequence, "tokens in a sample");
  addSize(family, "--vocabulary", gpt->vocabulary, "different tokens; 256 for bytes");
  addSize(family, "--batch", gpt->batch, "samples in a step");

  auto mlp = std::make_shared<MlpSizes>();
  family = addFamily(*command, "mlp", "a classifier of vectors", mlp, galleryMlp, status);
  addSize(family, "--inputs", mlp->inputs, "numbers in a sample");
  family->add_option("--hidden", mlp->hidden, "width of each hidden layer: --hidden 128,64")
      ->delimiter(',')
      ->capture_default_str();
  addSize(family, "--classes", mlp->classes, "classes");
  addSize(family, "--batch", mlp->batch, "samples in a step");

  auto convnet = std::make_shared<ConvnetSizes>();
  family =
      addFamily(*command, "convnet", "a classifier of images", convnet, galleryConvnet, status);
  addSize(family, "--height", convnet->height, "rows of an image");
  addSize(family, "--width", convnet->width, "columns of an image");
  addSize(family, "--channels", convnet->channels, "values of a pixel");
  family->add_option("--filters", convnet->filters, "channels after each stage: --filters 32,64")
      ->delimiter(',')
      ->capture_default_str();
  addSize(family, "--classes", convnet->classes, "classes");
  addSize(family, "--batch", convnet->batch, "samples in a step");
}

} // namespace descent::tool
