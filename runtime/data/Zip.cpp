//===- Zip.cpp - Members of a zip archive ---------------------------------===//
//
// What NumPy's savez and savez_compressed write: stored or deflated members, with zip64 records
// where something is large (and in local headers even where nothing is, with sizes of 0xffffffff:
// sizes are therefore taken from the central directory alone). Every offset and size read from the
// file is checked against the file's size before it is used.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Zip.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <zlib.h>

namespace descent::data {

namespace {

constexpr uint32_t endSignature = 0x06054b50, end64Signature = 0x06064b50,
                   locator64Signature = 0x07064b50, entrySignature = 0x02014b50,
                   localSignature = 0x04034b50;
constexpr uint64_t endBytes = 22, end64Bytes = 56, locator64Bytes = 20, entryBytes = 46,
                   localBytes = 30, longestComment = 65535;

std::string hex(uint32_t value) {
  char text[16];
  snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

[[noreturn]] void damaged(const std::string &what, uint64_t offset, const std::string &reason) {
  throw Error(what + ": damaged zip archive at byte " + std::to_string(offset) + ": " + reason);
}

bool fits(const Bytes &file, uint64_t offset, uint64_t length) {
  return offset <= file.size && length <= file.size - offset;
}

/// A stored member larger than this is not read a first time just to check its CRC: it would page
/// in the whole file at each start.
constexpr uint64_t largestChecked = 64u << 20;

} // namespace

std::vector<ZipMember> readZipDirectory(const Bytes &file, const std::string &path) {
  // The end record is the last thing in the file but for a comment of up to 65535 bytes.
  if (file.size < endBytes)
    throw Error(path + ": has " + std::to_string(file.size) +
                " bytes, too few for a zip archive (.npz)");
  uint64_t end = file.size - endBytes, stop = end > longestComment ? end - longestComment : 0;
  while (loadLittle<uint32_t>(file.data + end) != endSignature ||
         end + endBytes + loadLittle<uint16_t>(file.data + end + 20) != file.size) {
    if (end == stop)
      throw Error(path + ": is no whole zip archive (.npz): no end record in its last " +
                  std::to_string(file.size - stop) +
                  " bytes; the file is cut off or has another format");
    --end;
  }
  uint64_t count = loadLittle<uint16_t>(file.data + end + 10);
  uint64_t size = loadLittle<uint32_t>(file.data + end + 12);
  uint64_t start = loadLittle<uint32_t>(file.data + end + 16);
  if (end >= locator64Bytes &&
      loadLittle<uint32_t>(file.data + end - locator64Bytes) == locator64Signature) {
    auto end64 = loadLittle<uint64_t>(file.data + end - locator64Bytes + 8);
    if (!fits(file, end64, end64Bytes) || loadLittle<uint32_t>(file.data + end64) != end64Signature)
      damaged(path, end - locator64Bytes,
              "it points to a zip64 end record at byte " + std::to_string(end64) +
                  ", where none is");
    count = loadLittle<uint64_t>(file.data + end64 + 32);
    size = loadLittle<uint64_t>(file.data + end64 + 40);
    start = loadLittle<uint64_t>(file.data + end64 + 48);
  }
  if (!fits(file, start, size))
    damaged(path, end,
            "the directory (" + std::to_string(size) + " bytes at " + std::to_string(start) +
                ") lies outside the file's " + std::to_string(file.size) + " bytes");

  std::vector<ZipMember> members;
  uint64_t at = start, last = start + size;
  for (uint64_t i = 0; i < count; ++i) {
    if (last - at < entryBytes || loadLittle<uint32_t>(file.data + at) != entrySignature)
      damaged(path, at,
              "no directory entry where entry " + std::to_string(i) + " of " +
                  std::to_string(count) + " should be");
    const unsigned char *entry = file.data + at;
    ZipMember member;
    member.flags = loadLittle<uint16_t>(entry + 8);
    member.method = loadLittle<uint16_t>(entry + 10);
    member.crc = loadLittle<uint32_t>(entry + 16);
    member.compressed = loadLittle<uint32_t>(entry + 20);
    member.inflated = loadLittle<uint32_t>(entry + 24);
    member.header = loadLittle<uint32_t>(entry + 42);
    uint64_t nameBytes = loadLittle<uint16_t>(entry + 28);
    uint64_t extraBytes = loadLittle<uint16_t>(entry + 30);
    uint64_t commentBytes = loadLittle<uint16_t>(entry + 32);
    if (last - at - entryBytes < nameBytes + extraBytes + commentBytes)
      damaged(path, at, "directory entry " + std::to_string(i) + " runs past the directory");
    member.name.assign(reinterpret_cast<const char *>(entry + entryBytes), nameBytes);

    // The zip64 extra field (id 1) holds, in this order, those of the values that did not fit.
    const unsigned char *extra = entry + entryBytes + nameBytes, *extraEnd = extra + extraBytes;
    while (extraEnd - extra >= 4) {
      uint16_t id = loadLittle<uint16_t>(extra), length = loadLittle<uint16_t>(extra + 2);
      extra += 4;
      if (extraEnd - extra < length)
        damaged(path, at, "an extra field of " + member.name + " runs past its entry");
      if (id == 1) {
        const unsigned char *value = extra;
        for (uint64_t *field : {&member.inflated, &member.compressed, &member.header})
          if (*field == 0xffffffff && extra + length - value >= 8) {
            *field = loadLittle<uint64_t>(value);
            value += 8;
          }
      }
      extra += length;
    }
    at += entryBytes + nameBytes + extraBytes + commentBytes;
    members.push_back(std::move(member));
  }
  return members;
}

Bytes readZipMember(const Bytes &file, const ZipMember &member, const std::string &what) {
  if (member.flags & 1)
    throw Error(what + ": is encrypted; write the archive without a password");
  if (member.method != 0 && member.method != 8)
    throw Error(what + ": zip compression method " + std::to_string(member.method) +
                ", expected 0 (stored) or 8 (deflate); numpy.savez and numpy.savez_compressed "
                "write these");
  if (!fits(file, member.header, localBytes) ||
      loadLittle<uint32_t>(file.data + member.header) != localSignature)
    damaged(what, member.header, "no local header");
  uint64_t offset = member.header + localBytes +
                    loadLittle<uint16_t>(file.data + member.header + 26) +
                    loadLittle<uint16_t>(file.data + member.header + 28);
  if (!fits(file, offset, member.compressed))
    damaged(what, offset,
            "its " + std::to_string(member.compressed) + " bytes run past the end of the file (" +
                std::to_string(file.size) + " bytes)");
  Bytes contents = file.slice(offset, member.compressed);
  if (member.method == 8)
    contents = inflateRaw(contents, member.inflated, what);
  else if (member.inflated != member.compressed)
    damaged(what, member.header, "it is stored, yet has two sizes");
  if (member.method == 8 || member.inflated <= largestChecked) {
    auto crc = static_cast<uint32_t>(crc32_z(0, contents.data, contents.size));
    if (crc != member.crc)
      damaged(what, offset, "CRC-32 is " + hex(crc) + ", the directory says " + hex(member.crc));
  }
  return contents;
}

} // namespace descent::data
