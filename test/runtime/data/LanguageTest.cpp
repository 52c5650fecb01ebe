//===- LanguageTest.cpp - Text and token streams --------------------------===//

#include "Files.h"

using namespace descent;
using namespace descent::data;
using namespace descent::data::testing;

namespace {

class Language : public DataTest {
protected:
  OpenRequest request(const std::string &path, int64_t sequence,
                      const std::string &format = "text") {
    OpenRequest request;
    request.format = format;
    request.path = path;
    request.sequence = sequence;
    request.fields = {{"tokens", DESCENT_I32, {sequence}}, {"targets", DESCENT_I32, {sequence}}};
    request.isTarget = {false, true};
    return request;
  }

  /// A token file as llm.c's scripts write it.
  std::string withHeader(int32_t magic, int32_t version, int32_t count,
                         const std::string &payload) {
    std::vector<int32_t> header(256, 0);
    header[0] = magic;
    header[1] = version;
    header[2] = count;
    return little(header) + payload;
  }
};

using Ids = std::vector<int32_t>;

// Samples are non-overlapping windows and targets the next byte, also across the window's end.
TEST_F(Language, TextWindowsAndNextByteTargets) {
  auto dataset = open(request(write("a.txt", "abcdefghij"), 3));
  ASSERT_EQ(dataset->size(), 3); // 10 bytes: 9 predictions.
  EXPECT_EQ(dataset->tokensPerSample(), 3);
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 0, 3), (Ids{'a', 'b', 'c'}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 1, 3), (Ids{'b', 'c', 'd'}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 2, 0, 3), (Ids{'g', 'h', 'i'}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 2, 1, 3), (Ids{'h', 'i', 'j'}));
}

// Bytes above 127 are 128 .. 255, not negative; the vocabulary maps each id to itself.
TEST_F(Language, BytesAreUnsigned) {
  auto dataset = open(request(write("a.txt", "\xff\x80\x01"), 2));
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 0, 2), (Ids{255, 128}));
  std::string vocabulary = dataset->vocabulary();
  ASSERT_EQ(vocabulary.size(), 256u);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(static_cast<unsigned char>(vocabulary[i]), i);
}

// i64 inputs get the same ids.
TEST_F(Language, WideIds) {
  OpenRequest wide = request(write("a.txt", "abcd"), 3);
  wide.fields[0].dtype = DESCENT_I64;
  auto dataset = open(wide);
  EXPECT_EQ(readSample<int64_t>(*dataset, 0, 0, 3), (std::vector<int64_t>{'a', 'b', 'c'}));
}

// The cut is made in the stream: no training target is a validation byte.
TEST_F(Language, ValidationIsTheEndOfTheFile) {
  OpenRequest part = request(write("a.txt", "abcdefghijklmnopqrst"), 4);
  part.validation = 0.25;
  auto training = open(part);
  part.validationPart = true;
  auto validation = open(part);
  ASSERT_EQ(training->size(), 3);   // a .. o
  ASSERT_EQ(validation->size(), 1); // p .. t
  EXPECT_EQ(readSample<int32_t>(*training, 2, 1, 4), (Ids{'j', 'k', 'l', 'm'}));
  EXPECT_EQ(readSample<int32_t>(*validation, 0, 0, 4), (Ids{'p', 'q', 'r', 's'}));
  EXPECT_EQ(readSample<int32_t>(*validation, 0, 1, 4), (Ids{'q', 'r', 's', 't'}));
}

// A validation fraction of 0 with the validation part asked for means that the whole file was given
// for validation.
TEST_F(Language, AFileOfItsOwnForValidation) {
  OpenRequest part = request(write("a.txt", "abcdefghi"), 4);
  part.validationPart = true;
  EXPECT_EQ(open(part)->size(), 2);
}

// With characters, ids are ranks among the byte values of the whole file, validation part included.
TEST_F(Language, CharacterVocabulary) {
  OpenRequest characters = request(write("a.txt", "banana\nzz"), 2);
  characters.settings["data.vocabulary"] = "characters";
  characters.validation = 0.35;
  auto dataset = open(characters);
  EXPECT_EQ(dataset->vocabulary(), "\nabnz");
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 0, 2), (Ids{2, 1}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 1, 2), (Ids{1, 3}));
}

// A second file is read with the first one's ids, and a byte that the first one lacks is named.
TEST_F(Language, VocabularyOfTheTrainingData) {
  OpenRequest second = request(write("b.txt", "nab"), 2);
  second.vocabulary = "\nabnz";
  EXPECT_EQ(readSample<int32_t>(*open(second), 0, 0, 2), (Ids{3, 1}));
  second.path = write("c.txt", "nax");
  expectRefused(second, {"byte 120 at offset 2", "vocabulary of 5"});
}

TEST_F(Language, RefusedText) {
  expectRefused(request((folder / "none.txt").string(), 4), {"No such file"});
  expectRefused(request(folder.string(), 4), {"is a folder"});
  expectRefused(request("/dev/null", 4), {"not a regular file"});
  expectRefused(request(write("empty.txt", ""), 4), {"is empty"});
  expectRefused(request(write("short.txt", "abcd"), 4),
                {"4 bytes", "needs 5", "data.sequence = 4"});
  OpenRequest part = request(write("part.txt", "abcdefghijklmnopqrst"), 4);
  part.validation = 0.1;
  part.validationPart = true;
  expectRefused(part, {"validation part has 2 of 20 bytes", "needs 5", "data.validation"});
  part.validation = 1.0;
  expectRefused(part, {"data.validation", "up to but not including 1"});
  part.validation = 0.0;
  part.settings["data.vocabulary"] = "words";
  expectRefused(part, {"'words'", "bytes or characters"});
}

TEST_F(Language, RefusedInputs) {
  std::string path = write("a.txt", "abcdefghi");
  OpenRequest floating = request(path, 4);
  floating.fields[0].dtype = DESCENT_F32;
  expectRefused(floating, {"'tokens'", "f32", "i32 or i64"});
  OpenRequest other = request(path, 4);
  other.fields[1].sampleShape = {5};
  expectRefused(other, {"'targets'", "5 tokens", "data.sequence is 4"});
  OpenRequest flat = request(path, 4);
  flat.fields[0].sampleShape = {2, 2};
  expectRefused(flat, {"'tokens'", "[2, 2]", "one dimension"});
  OpenRequest twice = request(path, 4);
  twice.isTarget = {false, false};
  expectRefused(twice, {"one data input"});
  OpenRequest unknown = request(path, 4, "tsv");
  expectRefused(unknown, {"'tsv'", "text, tokens, npz, npy or idx"});
  expectRefused(request(path, 4, "csv"), {"'csv'", "not supported yet"});
  expectRefused(request(path, 4, "cifar"), {"'cifar'", "not supported yet"});
}

// Without a sequence in the request, the model's input gives it.
TEST_F(Language, SequenceFromTheModel) {
  OpenRequest inferred = request(write("a.txt", "abcdefghi"), 4);
  inferred.sequence = 0;
  EXPECT_EQ(open(inferred)->tokensPerSample(), 4);
}

TEST_F(Language, TokensOf16And32Bits) {
  auto ids = little<uint16_t>({7, 65535, 9, 300, 2});
  auto dataset = open(request(write("a.bin", ids), 2, "tokens"));
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(readSample<int32_t>(*dataset, 0, 0, 2), (Ids{7, 65535}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 1, 1, 2), (Ids{300, 2}));
  EXPECT_EQ(dataset->vocabulary(), "");
  OpenRequest wide = request(write("b.bin", little<uint32_t>({7, 128255, 9})), 2, "tokens");
  wide.settings["data.token_type"] = "uint32";
  EXPECT_EQ(readSample<int32_t>(*open(wide), 0, 0, 2), (Ids{7, 128255}));
}

TEST_F(Language, TokensWithAHeader) {
  std::string path = write("a.bin", withHeader(20240520, 1, 3, little<uint16_t>({1, 50256, 3})));
  EXPECT_EQ(readSample<int32_t>(*open(request(path, 2, "tokens")), 0, 1, 2), (Ids{50256, 3}));
  path = write("b.bin", withHeader(20240801, 7, 3, little<uint32_t>({1, 128000, 3})));
  EXPECT_EQ(readSample<int32_t>(*open(request(path, 2, "tokens")), 0, 1, 2), (Ids{128000, 3}));
}

TEST_F(Language, RefusedTokens) {
  expectRefused(request(write("odd.bin", "abc"), 1, "tokens"), {"3 bytes", "multiple of 2"});
  std::string payload = little<uint16_t>({1, 2, 3});
  expectRefused(request(write("cut.bin", withHeader(20240520, 1, 4, payload)), 2, "tokens"),
                {"4 tokens", "1032 bytes", "has 1030"});
  expectRefused(request(write("version.bin", withHeader(20240520, 2, 3, payload)), 2, "tokens"),
                {"version 2 at byte 4"});
  expectRefused(request(write("head.bin", little<int32_t>(20240520) + "abcd"), 2, "tokens"),
                {"8 bytes", "1024"});
  OpenRequest wide = request(write("type.bin", withHeader(20240520, 1, 3, payload)), 2, "tokens");
  wide.settings["data.token_type"] = "uint32";
  expectRefused(wide, {"data.token_type", "uint16"});
  wide.settings["data.token_type"] = "uint8";
  expectRefused(wide, {"'uint8'", "uint16 or uint32"});
}

} // namespace
