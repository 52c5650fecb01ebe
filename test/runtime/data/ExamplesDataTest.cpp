//===- ExamplesDataTest.cpp - The digits, as NumPy wrote them -------------===//
//
// The other tests make their archives by hand; these two were written by NumPy's savez_compressed.

#include "Files.h"

#include <set>

using namespace descent;
using namespace descent::data;
using namespace descent::data::testing;

namespace {

// 1437 + 360 images of all ten classes, pixels of 0 .. 16 scaled to [0, 1], no image in both parts.
TEST(ExamplesData, Digits) {
  std::set<std::vector<float>> training;
  for (const char *name : {"train.npz", "test.npz"}) {
    OpenRequest request;
    request.format = "npz";
    request.path = std::string(DESCENT_SOURCE_DIR "/examples/digits/data/") + name;
    request.fields = {{"images", DESCENT_F32, {8, 8, 1}}, {"labels", DESCENT_I32, {}}};
    request.isTarget = {false, true};
    request.settings["data.scale"] = "0.0625";
    auto dataset = open(request);
    bool isTest = name == std::string("test.npz");
    ASSERT_EQ(dataset->size(), isTest ? 360 : 1437);
    std::set<int32_t> classes;
    float largest = 0;
    for (int64_t i = 0; i < dataset->size(); ++i) {
      auto pixels = readSample<float>(*dataset, i, 0, 64);
      for (float pixel : pixels) {
        ASSERT_TRUE(pixel >= 0 && pixel <= 1 && pixel * 16 == static_cast<int>(pixel * 16));
        largest = std::max(largest, pixel);
      }
      classes.insert(readSample<int32_t>(*dataset, i, 1, 1)[0]);
      if (isTest)
        EXPECT_EQ(training.count(pixels), 0u);
      else
        training.insert(pixels);
    }
    EXPECT_EQ(classes, (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(largest, 1.0f);
  }
}

} // namespace
