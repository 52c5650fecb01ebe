//===- ArraysTest.cpp - NumPy archives and idx files ----------------------===//

#include "Files.h"

#include <thread>

using namespace descent;
using namespace descent::data;
using namespace descent::data::testing;

namespace {

class Arrays : public DataTest {
protected:
  /// A model of inputs x: 2 floats a sample, and targets: one i32.
  OpenRequest request(const std::string &path, const std::string &format = "npz") {
    OpenRequest request;
    request.format = format;
    request.path = path;
    request.fields = {{"x", DESCENT_F32, {2}}, {"y", DESCENT_I32, {}}};
    request.isTarget = {false, true};
    return request;
  }

  std::string floats() { return npy("<f4", "(3, 2)", little<float>({0, 1, 2, 3, 4, 5})); }
  std::string labels() { return npy("<i4", "(3,)", little<int32_t>({7, 8, 9})); }
  std::string archive(const std::string &x, const std::string &y) {
    return zip({{"x.npy", x}, {"y.npy", y}});
  }

  void expectGood(const OpenRequest &good) {
    auto dataset = open(good);
    ASSERT_EQ(dataset->size(), 3);
    EXPECT_EQ(dataset->tokensPerSample(), 0);
    EXPECT_EQ(readSample<float>(*dataset, 2, 0, 2), (std::vector<float>{4, 5}));
    EXPECT_EQ(readSample<int32_t>(*dataset, 1, 1, 1), (std::vector<int32_t>{8}));
  }

  /// Expects the archive with this x to be refused with a message about array 'x'.
  void expectArrayRefused(const std::string &x, std::vector<std::string> parts) {
    OpenRequest bad = request(write("bad.npz", archive(x, labels())));
    parts.push_back("array 'x'");
    expectRefused(bad, parts);
  }
};

TEST_F(Arrays, StoredDeflatedAndZip64) {
  expectGood(request(write("a.npz", archive(floats(), labels()))));
  expectGood(request(write("b.npz", zip({{"x.npy", floats(), true}, {"y.npy", labels(), true}}))));
  expectGood(request(write("c.npz", zip({{"x.npy", floats()}, {"y.npy", labels(), true}}, true))));
}

TEST_F(Arrays, NamesFromTheRecipe) {
  OpenRequest named =
      request(write("a.npz", zip({{"inputs/x.npy", floats()}, {"t.npy", labels()}})));
  named.settings = {{"data.inputs", "inputs/x"}, {"data.targets", "[\"t\"]"}};
  expectGood(named);
  named.settings["data.targets"] = "u";
  expectRefused(named, {"no array 'u'", "data.targets", "'inputs/x', 't'"});
  named.settings["data.targets"] = "[\"t\", \"t\"]";
  expectRefused(named, {"data.targets names 2 arrays", "1 targets"});
  named.settings.clear();
  expectRefused(named, {"no array 'x'", "set data.inputs"});
}

TEST_F(Arrays, FolderOfNpy) {
  write("x.npy", floats());
  write("y.npy", labels());
  expectGood(request(folder.string(), "npy"));
  OpenRequest missing = request(folder.string(), "npy");
  missing.settings["data.targets"] = "z";
  expectRefused(missing, {"z.npy", "no such file", "data.targets"});
  expectRefused(request((folder / "x.npy").string(), "npy"), {"2 inputs"});
  expectRefused(request((folder / "x.npy").string(), "npz"), {"set data.format = \"npy\""});
  OpenRequest alone = request((folder / "x.npy").string(), "npy");
  alone.fields.pop_back();
  alone.isTarget.pop_back();
  EXPECT_EQ(open(alone)->size(), 3);
}

// Dimensions of size 1 and flattening into a row are the same bytes; anything else is refused.
TEST_F(Arrays, Shapes) {
  OpenRequest image = request(write("a.npz", archive(floats(), labels())));
  image.fields[0].sampleShape = {1, 2, 1};
  expectGood(image);
  OpenRequest flat =
      request(write("b.npz", archive(npy("<f4", "(3, 1, 2)", little<float>({0, 1, 2, 3, 4, 5})),
                                     npy("<i4", "(3, 1)", little<int32_t>({7, 8, 9})))));
  expectGood(flat);
  flat.fields[0].sampleShape = {3};
  expectRefused(flat, {"[3, 1, 2]", "'x'", "[3, 3]", "reshape"});
}

TEST_F(Arrays, ConvertsExactlyOrRefuses) {
  expectGood(
      request(write("a.npz", archive(npy("<f8", "(3, 2)", little<double>({0, 1, 2, 3, 4, 5})),
                                     npy("<i8", "(3,)", little<int64_t>({7, 8, 9}))))));
  expectArrayRefused(npy("<f8", "(3, 2)", little<double>({0, 1, 2, 0.1, 4, 5})),
                     {"float64 value 0.1", "sample 1", "element 3", "f32", "float32"});
}

TEST_F(Arrays, ScaleIsForFloatInputs) {
  std::string pixels = npy("|u1", "(3, 2)", std::string("\0\1\2\3\4\x10", 6));
  OpenRequest scaled = request(write("a.npz", archive(pixels, labels())));
  scaled.settings["data.scale"] = "0.0625";
  auto dataset = open(scaled);
  EXPECT_EQ(readSample<float>(*dataset, 2, 0, 2), (std::vector<float>{0.25f, 1.0f}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 2, 1, 1), (std::vector<int32_t>{9}));
  scaled.settings["data.scale"] = "zero";
  expectRefused(scaled, {"data.scale is 'zero'"});
  scaled.settings["data.scale"] = "2.0";
  scaled.fields[0].dtype = DESCENT_I32;
  expectRefused(scaled, {"data.scale", "no data input", "float"});
}

TEST_F(Arrays, ValidationPart) {
  OpenRequest part = request(write("a.npz", archive(floats(), labels())));
  part.validation = 0.34;
  EXPECT_EQ(open(part)->size(), 2);
  part.validationPart = true;
  auto validation = open(part);
  ASSERT_EQ(validation->size(), 1);
  EXPECT_EQ(readSample<int32_t>(*validation, 0, 1, 1), (std::vector<int32_t>{9}));
  part.validation = 0.1; // 0.3 samples.
  expectRefused(part, {"validation part is empty", "3 samples"});
}

TEST_F(Arrays, RefusedArrays) {
  OpenRequest uneven =
      request(write("a.npz", archive(floats(), npy("<i4", "(2,)", little<int32_t>({7, 8})))));
  expectRefused(uneven, {"array 'y'", "2 samples", "array 'x'", "holds 3"});
  std::string six = little<float>({0, 1, 2, 3, 4, 5});
  expectArrayRefused(npy("<f4", "(3, 2)", six, "True"), {"Fortran", "ascontiguousarray"});
  expectArrayRefused(npy("<c8", "(3, 2)", six), {"'<c8'", "not supported"});
  expectArrayRefused(npy("|O", "(3, 2)", six), {"'|O'", "not supported"});
  expectArrayRefused(npy("<f4", "(4, 2)", six), {"[4, 2]", "32 bytes", "24"});
  expectArrayRefused(npy("<f4", "(3, 2)", six + "x"), {"24 bytes", "25"});
  expectArrayRefused(npy("<f4", "()", six.substr(0, 4)), {"[]", "no samples"});
  expectArrayRefused(npy("<f4", "(0, 2)", ""), {"[0, 2]", "no samples"});
  expectArrayRefused(npy("<f4", "(3, -2)", six), {"bad .npy header", "expected a dimension"});
  expectArrayRefused(npy("<f4", "(281474976710656, 281474976710656)", six), {"over 2^64"});
  expectArrayRefused(npy("<f4", "(999999999999999999999)", six), {"beyond 2^48"});
  expectArrayRefused(npy("<f4", "(3, 2", six), {"bad .npy header at byte"});
  expectArrayRefused("hello", {"no .npy file"});
  expectArrayRefused(std::string("\x93NUMPY\x09\x00\x10\x00", 10), {"version 9"});
  expectArrayRefused(floats().substr(0, 30), {"header", "cut off"});
  expectArrayRefused(std::string("\x93NUMPY\x01\x00\x14\x00", 10) + "{'descr': '<f4'}    ",
                     {"descr, fortran_order and shape are needed"});
  expectArrayRefused(std::string("\x93NUMPY\x01\x00\x1b\x00", 10) + "{'descr': [('a', '<f4')]}  ",
                     {"structured"});
}

TEST_F(Arrays, RefusedArchives) {
  std::string good = archive(floats(), labels());
  expectRefused(request((folder / "none.npz").string()), {"No such file"});
  expectRefused(request(write("empty.npz", "")), {"is empty"});
  expectRefused(request(write("short.npz", "PK")), {"2 bytes", "zip archive"});
  expectRefused(request(write("noise.npz", std::string(1000, 'x'))), {"no end record"});
  expectRefused(request(write("cut.npz", good.substr(0, good.size() - 9))), {"no end record"});
  expectRefused(request(write("front.npz", good.substr(40))), {"zip archive"});

  std::string flipped = good; // One bit of an element: only the checksum can tell.
  flipped[flipped.find("\n") + 3] ^= 1;
  expectRefused(request(write("flipped.npz", flipped)), {"array 'x'", "CRC-32"});

  std::string deflated = zip({{"x.npy", floats(), true}, {"y.npy", labels()}});
  deflated[40] ^= 0x55;
  expectRefused(request(write("deflated.npz", deflated)), {"array 'x'", "damaged"});

  std::string method = good; // Both headers say bzip2.
  size_t entry = method.find("PK\x01\x02");
  method[entry + 10] = 12;
  expectRefused(request(write("method.npz", method)), {"compression method 12", "savez"});
  std::string encrypted = good;
  encrypted[entry + 8] = 1;
  expectRefused(request(write("encrypted.npz", encrypted)), {"encrypted"});
}

// No single damaged byte of an archive's structure may crash the reader or be read outside the
// file.
TEST_F(Arrays, AnyDamagedByteIsSurvived) {
  for (bool zip64 : {false, true}) {
    std::string good = zip({{"x.npy", floats(), true}, {"y.npy", labels()}}, zip64);
    for (size_t i = 0; i < good.size(); ++i)
      for (unsigned char value : {0x00, 0x7f, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(value);
        refusal(request(write("damaged.npz", bad)));
      }
    for (size_t length = 1; length < good.size(); ++length)
      EXPECT_NE(refusal(request(write("cut.npz", good.substr(0, length)))), "");
  }
}

//===----------------------------------------------------------------------===//
// idx
//===----------------------------------------------------------------------===//

class Idx : public DataTest {
protected:
  OpenRequest request(const std::string &path) {
    OpenRequest request;
    request.format = "idx";
    request.path = path;
    request.fields = {{"images", DESCENT_F32, {2, 2, 1}}, {"labels", DESCENT_I32, {}}};
    request.isTarget = {false, true};
    return request;
  }
  std::string images(const std::string &pixels = std::string("\0\x33\xff\1\2\3\4\5", 8)) {
    return std::string("\0\0\x08\x03", 4) + big32(pixels.size() / 4) + big32(2) + big32(2) + pixels;
  }
  std::string labels(const std::string &values = "\x07\x09") {
    return std::string("\0\0\x08\x01", 4) + big32(values.size()) + values;
  }
};

// Pixels are scaled to [0, 1], labels are not.
TEST_F(Idx, FolderWithMnistsNames) {
  write("train-images-idx3-ubyte", images());
  write("train-labels-idx1-ubyte", labels());
  auto dataset = open(request(folder.string()));
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(readSample<float>(*dataset, 0, 0, 4),
            (std::vector<float>{0.0f, 0.2f, 1.0f, float(1 / 255.0)}));
  EXPECT_EQ(readSample<int32_t>(*dataset, 1, 1, 1), (std::vector<int32_t>{9}));
}

TEST_F(Idx, GzippedAndTestFiles) {
  write("train-images-idx3-ubyte.gz", gzip(images()));
  write("train-labels-idx1-ubyte.gz", gzip(labels()));
  write("t10k-images-idx3-ubyte.gz", gzip(images("abcd")));
  write("t10k-labels-idx1-ubyte.gz", gzip(labels("\x03")));
  EXPECT_EQ(open(request(folder.string()))->size(), 2);
  OpenRequest test = request(folder.string());
  test.validationPart = true;
  EXPECT_EQ(open(test)->size(), 1);
  EXPECT_EQ(open(request((folder / "t10k-images-idx3-ubyte.gz").string()))->size(), 1);
}

// A gzip file of several members is their concatenation.
TEST_F(Idx, GzipMembersJoin) {
  std::string whole = images();
  write("a-images", gzip(whole.substr(0, 10)) + gzip(whole.substr(10)));
  write("a-labels", labels());
  EXPECT_EQ(open(request((folder / "a-images").string()))->size(), 2);
}

TEST_F(Idx, ScaleFromTheRecipe) {
  write("a-images", images());
  write("a-labels", labels());
  OpenRequest scaled = request((folder / "a-images").string());
  scaled.settings["data.scale"] = "1";
  EXPECT_EQ(readSample<float>(*open(scaled), 0, 0, 4), (std::vector<float>{0, 51, 255, 1}));
}

TEST_F(Idx, Refused) {
  write("a-labels", labels());
  auto path = [&](const std::string &contents) { return request(write("a-images", contents)); };
  expectRefused(path("hello"), {"no idx file"});
  expectRefused(path(std::string("\0\0\x07\x03", 4)), {"type 7 at byte 2"});
  expectRefused(path(std::string("\0\0\x08\x03\0\0", 6)), {"rank 3", "6 bytes"});
  expectRefused(path(images() + "x"), {"[2, 2, 2]", "8 bytes", "9 follow"});
  expectRefused(path(std::string("\0\0\x08\x03", 4) + big32(~0u) + big32(~0u) + big32(~0u)),
                {"beyond 2^64"});
  EXPECT_NE(refusal(path(images("abcdefghijkl"))).find("a-labels: holds 2 samples"),
            std::string::npos);
  expectRefused(path(gzip(images()).substr(0, 20)), {"damaged gzip", "too early"});
  expectRefused(path(std::string("\0\0\x08\x03", 4) + big32(2) + big32(1) + big32(2) + "abcd"),
                {"[2, 1, 2]", "'images'", "[2, 2, 2, 1]"});
  expectRefused(request((folder / "none-images").string()), {"No such file"});
  expectRefused(request(folder.string()), {"train-images-idx3-ubyte"});
  expectRefused(request(write("pictures", images())), {"cannot tell the labels' file"});
  std::filesystem::remove(folder / "a-labels");
  EXPECT_NE(refusal(path(images())).find("a-labels"), std::string::npos);
}

// Rows may be read by any number of threads at once.
TEST_F(Idx, ReadsFromManyThreads) {
  std::string pixels(4 * 1000, '\0');
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<char>(i * 7);
  write("a-images", images(pixels));
  write("a-labels", labels(std::string(1000, '\1')));
  auto dataset = open(request((folder / "a-images").string()));
  std::vector<float> rows(4000);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = thread; i < 1000; i += 4)
        dataset->read(i, 0, rows.data() + 4 * i);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < rows.size(); ++i)
    ASSERT_EQ(rows[i], float(static_cast<unsigned char>(pixels[i]) * (1 / 255.0)));
}

} // namespace
