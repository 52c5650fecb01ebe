//===- Bytes.h - A read-only range of bytes and who keeps it alive --------===//

#ifndef DESCENT_RUNTIME_DATA_BYTES_H
#define DESCENT_RUNTIME_DATA_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace descent::data {

/// Bytes of a file: a mapping of it, a piece of one, or memory that a compressed member was
/// inflated into. Copies share the owner.
struct Bytes {
  const unsigned char *data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;

  Bytes slice(uint64_t offset, uint64_t length) const { return {data + offset, length, owner}; }
};

/// Maps a regular file read-only. Throws descent::Error if it is missing, a folder, unreadable or
/// empty.
Bytes mapFile(const std::string &path);

/// Inflates a raw deflate stream of known inflated size. `what` names it in errors ("digits.npz:
/// array 'images'").
Bytes inflateRaw(const Bytes &compressed, uint64_t inflatedSize, const std::string &what);

/// The inflated contents if the file starts with the gzip signature, otherwise the bytes
/// themselves.
Bytes gunzipIfNeeded(const Bytes &file, const std::string &path);

/// Unaligned little- and big-endian loads; compilers turn each into one move.
template <typename T> T loadLittle(const unsigned char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value; // x86-64 and AArch64, the hosts Descent has, are little-endian.
}
inline uint32_t loadBig32(const unsigned char *at) {
  return __builtin_bswap32(loadLittle<uint32_t>(at));
}

} // namespace descent::data

#endif // DESCENT_RUNTIME_DATA_BYTES_H
