//===- Files.h - Hand-made data files for the loaders' tests --------------===//

#ifndef DESCENT_TEST_RUNTIME_DATA_FILES_H
#define DESCENT_TEST_RUNTIME_DATA_FILES_H

#include "runtime/core/Error.h"
#include "runtime/data/Dataset.h"
#include "runtime/include/descent/abi.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace descent::data::testing {

/// A folder of its own for each test, removed at the end.
class DataTest : public ::testing::Test {
protected:
  DataTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "descent-data-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~DataTest() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &name, const std::string &contents) {
    std::string path = (folder / name).string();
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

  std::filesystem::path folder;
};

/// The message `open` refuses with, or "" if it does not.
inline std::string refusal(const OpenRequest &request) {
  try {
    open(request);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Expects a refusal that names the file and holds every part.
inline void expectRefused(const OpenRequest &request, const std::vector<std::string> &parts) {
  std::string message = refusal(request);
  EXPECT_NE(message, "") << request.path << " was accepted";
  EXPECT_EQ(message.rfind(request.path, 0), 0u) << message << "\ndoes not begin with the file";
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

template <typename T>
std::vector<T> readSample(const Dataset &dataset, int64_t index, int field, size_t count) {
  std::vector<T> values(count);
  dataset.read(index, field, values.data());
  return values;
}

template <typename T> std::string little(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

template <typename T> std::string little(const std::vector<T> &values) {
  std::string bytes;
  for (T value : values)
    bytes += little(value);
  return bytes;
}

inline std::string big32(uint32_t value) { return little(__builtin_bswap32(value)); }

/// An .npy of version 1 with an unpadded header, as any writer may make it.
inline std::string npy(const std::string &descr, const std::string &shape,
                       const std::string &elements, const std::string &fortran = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + little(static_cast<uint16_t>(header.size())) +
         header + elements;
}

struct Member {
  std::string name, contents;
  bool deflate = false;
};

inline std::string deflateRaw(const std::string &contents) {
  std::string out(compressBound(contents.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(contents.data()));
  stream.avail_in = contents.size();
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string gzip(const std::string &contents) {
  auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef *>(contents.data()), contents.size()));
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + deflateRaw(contents) + little(crc) +
         little(static_cast<uint32_t>(contents.size()));
}

/// A zip archive. With zip64, sizes and offsets are written as 0xffffffff with the true values in
/// extra fields, and there is a zip64 end record, as in an archive beyond 4 GiB.
inline std::string zip(const std::vector<Member> &members, bool zip64 = false) {
  auto u16 = [](uint64_t value) { return little(static_cast<uint16_t>(value)); };
  auto u32 = [](uint64_t value) { return little(static_cast<uint32_t>(value)); };
  auto u64 = [](uint64_t value) { return little(value); };
  std::string file, directory;
  for (const Member &member : members) {
    std::string stored = member.deflate ? deflateRaw(member.contents) : member.contents;
    uint32_t crc =
        crc32(0, reinterpret_cast<const Bytef *>(member.contents.data()), member.contents.size());
    uint64_t offset = file.size();
    std::string sizes = zip64 ? u32(0xffffffff) + u32(0xffffffff)
                              : u32(stored.size()) + u32(member.contents.size());
    std::string common =
        u16(member.deflate ? 8 : 0) + u32(0) + u32(crc) + sizes + u16(member.name.size());
    std::string localExtra =
        zip64 ? u16(1) + u16(16) + u64(member.contents.size()) + u64(stored.size()) : "";
    std::string extra =
        zip64 ? u16(1) + u16(24) + u64(member.contents.size()) + u64(stored.size()) + u64(offset)
              : "";
    file += "PK\x03\x04" + u16(45) + u16(0) + common + u16(localExtra.size()) + member.name +
            localExtra + stored;
    directory += "PK\x01\x02" + u16(45) + u16(45) + u16(0) + common + u16(extra.size()) + u16(0) +
                 u16(0) + u16(0) + u32(0) + u32(zip64 ? 0xffffffff : offset) + member.name + extra;
  }
  uint64_t start = file.size();
  file += directory;
  if (zip64) {
    uint64_t end64 = file.size();
    file += "PK\x06\x06" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(members.size()) +
            u64(members.size()) + u64(directory.size()) + u64(start);
    file += "PK\x06\x07" + u32(0) + u64(end64) + u32(1);
  }
  return file + "PK\x05\x06" + u16(0) + u16(0) + u16(members.size()) + u16(members.size()) +
         u32(zip64 ? 0xffffffff : directory.size()) + u32(zip64 ? 0xffffffff : start) + u16(0);
}

} // namespace descent::data::testing

#endif // DESCENT_TEST_RUNTIME_DATA_FILES_H
