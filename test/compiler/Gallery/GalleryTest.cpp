//===- GalleryTest.cpp - Models to start from -----------------------------===//

#include "compiler/Gallery/Gallery.h"
#include "compiler/Recipe/Recipe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace descent;
namespace fs = std::filesystem;

namespace {

size_t countOf(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// No template name is left, and the recipe is one that the compiler accepts.
void expectSound(const std::optional<GalleryFiles> &files) {
  ASSERT_TRUE(files);
  for (const std::string *text : {&files->model, &files->recipe, &files->readme})
    EXPECT_EQ(text->find('$'), std::string::npos) << *text;
  std::vector<RecipeError> errors;
  EXPECT_TRUE(parseRecipeText(files->recipe, "/m/recipe.toml", {}, errors));
  for (const RecipeError &error : errors)
    ADD_FAILURE() << error.text();
}

void expectRefused(const std::optional<GalleryFiles> &files, std::vector<std::string> &errors,
                   const std::string &part) {
  EXPECT_FALSE(files);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
  errors.clear();
}

TEST(Gallery, Gpt) {
  std::vector<std::string> errors;
  auto files = galleryGpt({.layers = 8, .heads = 2, .width = 32, .sequence = 16}, "g", errors);
  expectSound(files);
  EXPECT_EQ(countOf(files->model, "nn.instantiate @block as"), 8u);
  EXPECT_EQ(countOf(files->model, "normal(0.0, 0.005)"), 2u); // 0.02 / sqrt(2 * 8)
  EXPECT_EQ(countOf(files->model, "\"wte\""), 1u);            // Tied: one parameter.
  EXPECT_NE(files->model.find("nn.layer_norm %x8,"), std::string::npos);
  EXPECT_NE(files->recipe.find("sequence = 16"), std::string::npos);
}

// The recipe's data suits the vocabulary.
TEST(Gallery, GptVocabularies) {
  std::vector<std::string> errors;
  for (auto [vocabulary, wanted] : {std::pair<int64_t, const char *>{65, "\"characters\""},
                                    {256, "\"text\""},
                                    {50257, "\"tokens\""},
                                    {128256, "\"uint32\""}}) {
    auto files = galleryGpt({.vocabulary = vocabulary}, "g", errors);
    expectSound(files);
    EXPECT_NE(files->recipe.find(wanted), std::string::npos) << files->recipe;
  }
}

TEST(Gallery, Classifiers) {
  std::vector<std::string> errors;
  auto mlp = galleryMlp({.inputs = 1024, .hidden = {4096, 7}, .classes = 3}, "m", errors);
  expectSound(mlp);
  EXPECT_EQ(countOf(mlp->model, "nn.relu"), 2u);
  EXPECT_EQ(countOf(mlp->model, "nn.parameter"), 6u);
  expectSound(galleryMlp({.hidden = {}}, "linear", errors));
  auto convnet = galleryConvnet({.height = 8, .width = 8, .filters = {16, 32}}, "c", errors);
  expectSound(convnet);
  EXPECT_EQ(countOf(convnet->model, "nn.conv2d"), 4u);
  EXPECT_NE(convnet->model.find("tensor<128x10xf32>"), std::string::npos); // 2 x 2 x 32 features
  // Odd sizes: pooling drops the last row and column, 7 -> 3 -> 1.
  auto odd =
      galleryConvnet({.height = 7, .width = 9, .channels = 3, .filters = {4, 5}}, "c", errors);
  expectSound(odd);
  EXPECT_NE(odd->model.find("tensor<10x10xf32>"), std::string::npos);
}

TEST(Gallery, RefusedSizes) {
  std::vector<std::string> errors;
  expectRefused(galleryGpt({.heads = 3, .width = 32}, "g", errors), errors,
                "not a multiple of heads (3)");
  expectRefused(galleryGpt({.layers = 0}, "g", errors), errors, "layers is 0, expected 1 to 1000");
  expectRefused(galleryGpt({.sequence = -5}, "g", errors), errors, "sequence is -5");
  expectRefused(galleryMlp({.hidden = {0}}, "m", errors), errors, "hidden is 0");
  expectRefused(galleryMlp({.classes = 1}, "m", errors), errors, "classes is 1, expected 2");
  expectRefused(galleryConvnet({.filters = {}}, "c", errors), errors, "filters is empty");
  expectRefused(galleryConvnet({.height = 8, .width = 3, .filters = {4, 4}}, "c", errors), errors,
                "2 stages");
  EXPECT_FALSE(galleryGpt({.layers = 0, .heads = 0}, "g", errors));
  EXPECT_EQ(errors.size(), 2u); // All at once.
}

class GalleryFolder : public ::testing::Test {
protected:
  GalleryFolder() {
    std::string pattern = (fs::temp_directory_path() / "descent-gallery-XXXXXX").string();
    root = mkdtemp(pattern.data());
  }
  ~GalleryFolder() override { fs::remove_all(root); }
  static std::string read(const fs::path &path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t entries() {
    size_t found = 0;
    for ([[maybe_unused]] const auto &entry : fs::directory_iterator(root))
      ++found;
    return found;
  }

  fs::path root;
  GalleryFiles files{"the model", "the recipe", "the readme"};
};

TEST_F(GalleryFolder, WritesNewAndEmptyFolders) {
  fs::create_directory(root / "empty");
  for (const char *name : {"new", "empty", "deep/er", "slash/"}) {
    EXPECT_EQ(writeGalleryFolder(files, (root / name).string()).value_or(""), "");
    EXPECT_EQ(read(root / name / "model.mlir"), "the model");
    EXPECT_EQ(read(root / name / "recipe.toml"), "the recipe");
    EXPECT_EQ(read(root / name / "README.md"), "the readme");
  }
  EXPECT_EQ(entries(), 4u); // And no temporary folder is left.
}

TEST_F(GalleryFolder, NeverOverwrites) {
  fs::create_directory(root / "full");
  std::ofstream(root / "full" / "mine") << "precious";
  std::ofstream(root / "file") << "precious";
  EXPECT_NE(writeGalleryFolder(files, (root / "full").string()).value_or("").find("not empty"),
            std::string::npos);
  EXPECT_NE(writeGalleryFolder(files, (root / "file").string()).value_or("").find("not a folder"),
            std::string::npos);
  EXPECT_NE(writeGalleryFolder(files, (root / "file" / "under").string()).value_or(""), "");
  EXPECT_EQ(read(root / "full" / "mine"), "precious");
  EXPECT_FALSE(fs::exists(root / "full" / "model.mlir"));
  EXPECT_EQ(read(root / "file"), "precious");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(GalleryFolder, UnwritablePlace) {
  EXPECT_NE(writeGalleryFolder(files, "/proc/descent").value_or("").find("/proc"),
            std::string::npos);
}

} // namespace
