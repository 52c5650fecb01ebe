//===- SafetensorsTest.cpp - Files of tensors: round trip and refusals ----------------------===//
#include "runtime/trainer/Safetensors.h"
#include "runtime/core/Error.h"

#include "descent/abi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace descent;

namespace {

/// A file in a folder of the test's own.
class Safetensors : public ::testing::Test {
protected:
  void SetUp() override { path = ::testing::TempDir() + "safetensors-" + std::to_string(getpid()); }
  void TearDown() override { ::unlink(path.c_str()); }

  void put(const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  /// A file with this header and this much data.
  void put(const std::string &header, const std::string &data) {
    uint64_t length = header.size();
    put(std::string(reinterpret_cast<char *>(&length), 8) + header + data);
  }

  std::string get() {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  void expectRefused(const std::string &text) {
    try {
      SafetensorsReader reader(path);
      FAIL() << "accepted, expected: " << text;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }

  std::string path;
};

} // namespace

TEST_F(Safetensors, RoundTrip) {
  float weights[6] = {1, -2, 3.5f, NAN, INFINITY, -0.0f};
  int64_t step = 42;
  SafetensorsWriter writer({{"w \"quoted\"", DESCENT_F32, {2, 3}, weights, sizeof weights},
                            {"latin \xe9", DESCENT_F32, {0}, weights, 0},
                            {"step", DESCENT_I64, {}, &step, sizeof step}},
                           {{"step", "0007"}}, /*checksum=*/true);
  writer.setMetadata("step", "0042");
  writer.write(path.c_str());
  EXPECT_EQ(get().size(), writer.fileBytes());
  EXPECT_EQ((8 + *reinterpret_cast<const uint64_t *>(get().data())) % 64, 0u);

  SafetensorsReader reader(path);
  reader.verifyChecksum();
  EXPECT_EQ(reader.metadata("step", ""), "0042");
  ASSERT_EQ(reader.entries().size(), 3u);
  const SafetensorsEntry &entry = reader.entries().at("w \"quoted\"");
  EXPECT_EQ(typeText(entry), "F32 [2, 3]");
  float back[6];
  reader.read(entry, back);
  EXPECT_EQ(std::memcmp(back, weights, sizeof back), 0);
  int64_t backStep = 0;
  reader.read(reader.entries().at("step"), &backStep);
  EXPECT_EQ(backStep, 42);
  EXPECT_TRUE(reader.entries().count(safetensorsName("latin \xe9")));
}

TEST_F(Safetensors, ScalesFloatsOnly) {
  float sums[3] = {2, 4, 6};
  int32_t count = 9;
  SafetensorsWriter({{"g", DESCENT_F32, {3}, sums, sizeof sums}, {"n", DESCENT_I32, {}, &count, 4}},
                    {}, true)
      .write(path.c_str(), {.factor = 0.5f, .divisor = 2.0f});
  SafetensorsReader reader(path);
  reader.verifyChecksum();
  float back[3];
  reader.read(reader.entries().at("g"), back);
  EXPECT_EQ(back[0], 0.5f);
  EXPECT_EQ(back[2], 1.5f);
  int32_t n = 0;
  reader.read(reader.entries().at("n"), &n);
  EXPECT_EQ(n, 9);
}

// A flipped bit in any byte is noticed, by the header's checks or by the checksum.
TEST_F(Safetensors, NoticesAFlippedBitInAnyByte) {
  float weights[4] = {1, 2, 3, 4};
  SafetensorsWriter({{"w", DESCENT_F32, {4}, weights, sizeof weights}}, {{"step", "1"}}, true)
      .write(path.c_str());
  std::string whole = get();
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] ^= static_cast<char>(1 << byte % 8);
    put(flipped);
    EXPECT_THROW(SafetensorsReader(path).verifyChecksum(), Error) << "byte " << byte;
  }
  for (size_t size = 0; size < whole.size(); size += 3) {
    put(whole.substr(0, size));
    EXPECT_THROW(SafetensorsReader reader(path), Error) << size << " bytes";
  }
  put(whole + "x");
  EXPECT_THROW(SafetensorsReader reader(path), Error);
}

TEST_F(Safetensors, RefusesWhatItCannotRead) {
  expectRefused("cannot open");
  put("");
  expectRefused("it has 0 bytes");
  put(std::string(100, '\xff'));
  expectRefused("promise a header of");
  put("{", "");
  expectRefused("a header alone takes ten");
  put("[1, 2, 3]", "");
  expectRefused("no JSON object");
  put(R"({"w": 3})", "");
  expectRefused("'w' is no object");
  put(R"({"w": {"dtype": "F32", "shape": [1]}})", "1234");
  expectRefused("'w' lacks dtype, shape or data_offsets");
  put(R"({"w": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}})", "1234");
  expectRefused("unknown type F33");
  put(R"({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})", "1234");
  expectRefused("impossible shape");
  put(R"({"w": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]}})",
      "1234");
  expectRefused("impossible shape");
  put(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", "1234");
  expectRefused("is F32 [2], which is 8 bytes, and has 4");
  put(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", "1234");
  expectRefused("'w' lies at bytes 0 to 8 of 4");
  put(R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", "12345678");
  expectRefused("byte 0 of its data belongs to no");
  put(R"({"v": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
      "12345678");
  expectRefused("belongs to two");
  put(R"({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", "12345678");
  expectRefused("end at byte 4 of 8");
  put(R"({"__metadata__": {"a": 1}})", "");
  expectRefused("the metadata 'a' is no string");
}

TEST_F(Safetensors, WidensHalfAndBrainFloats) {
  // 1, -2, smallest subnormal, largest, inf and NaN of F16; 1, -3.140625 and inf of BF16.
  const uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0x7E00},
                 brain[] = {0x3F80, 0xC049, 0x7F80};
  std::string data(reinterpret_cast<const char *>(half), sizeof half);
  data.append(reinterpret_cast<const char *>(brain), sizeof brain);
  double wide[2] = {0.1, 1e300};
  data.append(reinterpret_cast<const char *>(wide), sizeof wide);
  put(R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]},"d":{"dtype":"F64","shape":[2],"data_offsets":[18,34]}})",
      data);
  SafetensorsReader reader(path);
  float out[6];
  reader.readFloats("h", reader.entries().at("h"), 0, 6, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -2.0f);
  EXPECT_EQ(out[2], 0x1p-24f);
  EXPECT_EQ(out[3], 65504.0f);
  EXPECT_EQ(out[4], INFINITY);
  EXPECT_TRUE(std::isnan(out[5]));
  reader.readFloats("h", reader.entries().at("h"), 3, 2, out);
  EXPECT_EQ(out[0], 65504.0f);
  EXPECT_EQ(out[1], INFINITY);
  reader.readFloats("b", reader.entries().at("b"), 0, 3, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -3.140625f);
  EXPECT_EQ(out[2], INFINITY);
  reader.readFloats("d", reader.entries().at("d"), 0, 2, out);
  EXPECT_EQ(out[0], 0.1f);
  EXPECT_EQ(out[1], INFINITY);

  put(R"({"i":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "1234");
  SafetensorsReader integers(path);
  EXPECT_THROW(integers.readFloats("i", integers.entries().at("i"), 0, 1, out), Error);
}
