//===- ProductChoicesTest.cpp - Which algorithm a product takes, and that it stays ------------===//

#include "ProductRig.h"

#include <filesystem>
#include <fstream>

using namespace descent;
using namespace descent::test;

namespace {

/// Algorithms take as long as `times` says, in the order in which they are timed; all rounds of one
/// are equal.
std::vector<float> times;
size_t asked;
CUresult elapsed(float *milliseconds, CUevent, CUevent) {
  *milliseconds = times[asked++ / 3 % times.size()];
  return CUDA_SUCCESS;
}

class ProductChoicesTest : public testing::Test {
protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("descent-products-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    file = folder / "deep" / "products";
    asked = 0;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Which algorithm (0, 1, 2: the one that splits the sum) is taken with these times.
  uint64_t chosen(std::vector<float> each, const std::string &path = {}) {
    times = std::move(each);
    asked = 0;
    Case test(16, 8, 64, DESCENT_F32, DESCENT_F32);
    Rig rig(test);
    Driver timed = *rig.driver;
    timed.cuEventElapsedTime = elapsed;
    rig.drivers.driver = &timed;
    rig.choose(path);
    notes = rig.products().notes();
    measured = rig.products().measured();
    std::vector<std::string> ignored;
    if (!path.empty())
      return readChoices(path, ignored).begin()->second.algorithm.data[1];
    rig.place();
    rig.run();
    bits = rig.download(D);
    return 0;
  }

  std::string text() const {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder, file;
  std::vector<std::string> notes;
  uint64_t measured = 0;
  std::vector<char> bits;
  Variable split{"DESCENT_EMULATOR_CUBLASLT", "split"};
};

// Five per cent and less is noise.
TEST_F(ProductChoicesTest, AnotherThanTheFirstMustBeClearlyFaster) {
  EXPECT_EQ(chosen({1.0f, 0.96f, 0.97f}, file), 0u);
  std::filesystem::remove(file);
  EXPECT_EQ(chosen({1.0f, 0.94f, 0.97f}, file), 1u);
  std::filesystem::remove(file);
  EXPECT_EQ(chosen({1.0f, 0.94f, 0.5f}, file), 2u);
}

// The second run takes what the first has measured, whatever it would measure itself: equal bits.
TEST_F(ProductChoicesTest, AreKept) {
  EXPECT_EQ(chosen({1, 2, 0.5}, file), 2u);
  EXPECT_EQ(measured, 1u);
  std::string before = text();
  EXPECT_EQ(chosen({1, 0.1f, 2}, file), 2u);
  EXPECT_EQ(measured, 0u);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(text(), before);
}

// The bits do depend on the choice; else the test above would show nothing.
TEST_F(ProductChoicesTest, DifferInBits) {
  chosen({1, 2, 2});
  std::vector<char> whole = bits;
  chosen({1, 2, 0.5f});
  EXPECT_NE(bits, whole);
  chosen({1, 0.5f, 2});
  EXPECT_EQ(bits, whole);
}

TEST_F(ProductChoicesTest, BrokenFilesAreReplaced) {
  for (int fault = 0; fault < 3; ++fault) {
    std::filesystem::remove(file);
    chosen({1, 2, 2}, file);
    std::string good = text(), bad = good;
    if (fault == 0)
      bad[0] = 'x';
    else if (fault == 1)
      bad[good.size() / 2] ^= 1;
    else
      bad.resize(good.size() - 5);
    std::ofstream(file) << bad;
    EXPECT_EQ(chosen({1, 0.5f, 2}, file), 1u) << fault;
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("products are chosen anew"), std::string::npos) << notes[0];
    EXPECT_EQ(measured, 1u);
  }
}

// Who came first decides; what others added in between stays.
TEST_F(ProductChoicesTest, Merge) {
  auto choiceOf = [](uint64_t number) {
    ProductChoice choice = {};
    choice.algorithm.data[3] = number;
    choice.microseconds = 1.5f;
    return choice;
  };
  ProductChoices first{{"a", choiceOf(1)}, {"b", choiceOf(2)}};
  ProductChoices second{{"b", choiceOf(3)}, {"c", choiceOf(4)}};
  mergeChoices(file, first, notes);
  mergeChoices(file, second, notes);
  EXPECT_EQ(second["b"].algorithm.data[3], 2u);
  ProductChoices all = readChoices(file, notes);
  EXPECT_TRUE(notes.empty());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all["a"].algorithm.data[3], 1u);
  EXPECT_EQ(all["b"].algorithm.data[3], 2u);
  EXPECT_EQ(all["c"].algorithm.data[3], 4u);
  EXPECT_FLOAT_EQ(all["c"].microseconds, 1.5f);
}

// Where nothing can be written the run goes on, and says what that means.
TEST_F(ProductChoicesTest, UnwritableFileIsNoted) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "file") << "x";
  times = {1, 1, 1};
  ProductChoices some{{"a", {}}};
  mergeChoices(folder / "file" / "products", some, notes);
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes.back().find("--products FILE names another"), std::string::npos) << notes.back();
}

// An algorithm that the library does not take for this product is measured again.
TEST_F(ProductChoicesTest, RefusedAlgorithmIsReplaced) {
  chosen({1, 2, 2}, file);
  std::vector<std::string> ignored;
  ProductChoices choices = readChoices(file, ignored);
  choices.begin()->second.algorithm.data[0] = 1;
  std::filesystem::remove(file);
  mergeChoices(file, choices, ignored);
  chosen({1, 2, 2}, file);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("that cuBLASLt does not accept"), std::string::npos) << notes[0];
}

TEST_F(ProductChoicesTest, DefaultFile) {
  std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  {
    Variable cache("XDG_CACHE_HOME", "/somewhere");
    EXPECT_EQ(defaultProductsFile(), "/somewhere/descent/products");
  }
  {
    Variable relative("XDG_CACHE_HOME", "cache");
    EXPECT_EQ(defaultProductsFile(), home.empty() ? "" : home + "/.cache/descent/products");
  }
}

} // namespace
