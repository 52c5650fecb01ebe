//===- ExamplesTest.cpp - The examples are what the gallery writes --------===//

#include "compiler/Gallery/Gallery.h"
#include "compiler/Recipe/Recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace descent;

namespace {

const std::string source = DESCENT_SOURCE_DIR;

std::string read(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The model is generated; the recipe is the example's own, parses, and names data that exists.
void expectExample(const std::string &name, const std::optional<GalleryFiles> &files) {
  ASSERT_TRUE(files);
  std::string folder = source + "/examples/" + name;
  EXPECT_EQ(read(folder + "/model.mlir"), files->model);
  std::vector<RecipeError> errors;
  auto recipe = parseRecipe(folder + "/recipe.toml", {}, errors);
  for (const RecipeError &error : errors)
    ADD_FAILURE() << error.text();
  ASSERT_TRUE(recipe);
  for (const std::string &path : {recipe->data.path, recipe->data.validationPath})
    EXPECT_TRUE(path.empty() || std::filesystem::exists(path)) << path;
}

TEST(Examples, AreTheGallerys) {
  std::vector<std::string> errors;
  expectExample("gpt", galleryGpt({}, "examples/gpt", errors));
  expectExample("mlp", galleryMlp({}, "examples/mlp", errors));
  expectExample("digits", galleryConvnet({.height = 8, .width = 8}, "examples/digits", errors));
}

// docs/recipe.md is generated; on a difference the right text is written beside the test's other
// files.
TEST(Examples, RecipeReferenceIsFresh) {
  std::string fresh = recipeReference();
  if (read(source + "/docs/recipe.md") == fresh)
    return;
  std::string path = ::testing::TempDir() + "recipe.md";
  std::ofstream(path) << fresh;
  FAIL() << "docs/recipe.md is stale; fix: cp " << path << " " << source << "/docs/recipe.md";
}

} // namespace
