//===- Bytes.cpp - Mapping and inflating files ----------------------------===//
//
// A mapping costs no copy and no memory of the process's own: the kernel drops clean pages when it
// needs them. Compressed data has to be inflated once, at open, since a sample must be readable at
// any position without work.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Bytes.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace descent::data {

namespace {

/// zlib counts in 32-bit units; larger ranges are fed to it in pieces of this size.
constexpr uint64_t zlibPiece = 1u << 30;

struct Inflater {
  z_stream stream{};
  explicit Inflater(int windowBits, const std::string &what) {
    if (inflateInit2(&stream, windowBits) != Z_OK)
      throw Error(what + ": no memory to inflate it");
  }
  ~Inflater() { inflateEnd(&stream); }
};

struct Mapping {
  void *address;
  size_t length;
  ~Mapping() { munmap(address, length); }
};

std::string zlibReason(const z_stream &stream, int status) {
  if (stream.msg)
    return stream.msg;
  return status == Z_BUF_ERROR ? "it ends too early" : "zlib error " + std::to_string(status);
}

} // namespace

Bytes mapFile(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw Error(path + ": cannot open: " + std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    int reason = errno;
    ::close(descriptor);
    throw Error(path + ": cannot read its size: " + std::strerror(reason));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(path + (S_ISDIR(status.st_mode) ? ": is a folder, expected a file"
                                                : ": is not a regular file; data is mapped into "
                                                  "memory, so copy it into a file first"));
  }
  if (status.st_size == 0) {
    ::close(descriptor);
    throw Error(path + ": is empty");
  }
  auto length = static_cast<size_t>(status.st_size);
  void *address = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  int reason = errno;
  ::close(descriptor); // The mapping keeps the file.
  if (address == MAP_FAILED)
    throw Error(path + ": cannot map " + std::to_string(length) +
                " bytes: " + std::strerror(reason));
  return {static_cast<const unsigned char *>(address), length,
          std::make_shared<Mapping>(address, length)};
}

Bytes inflateRaw(const Bytes &compressed, uint64_t inflatedSize, const std::string &what) {
  // Deflate cannot shrink below about 1/1032, so a larger claim is a damaged directory, not a
  // reason to ask for the memory.
  if (inflatedSize / 1040 > compressed.size)
    throw Error(what + ": claims to inflate from " + std::to_string(compressed.size) + " to " +
                std::to_string(inflatedSize) +
                " bytes, more than deflate can; the file is damaged");
  auto buffer = std::make_shared<std::vector<unsigned char>>(inflatedSize);
  Inflater inflater(-MAX_WBITS, what);
  z_stream &stream = inflater.stream;
  uint64_t in = 0, out = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    auto give = static_cast<uInt>(std::min(zlibPiece, compressed.size - in));
    auto take = static_cast<uInt>(std::min(zlibPiece, inflatedSize - out));
    stream.next_in = const_cast<unsigned char *>(compressed.data + in);
    stream.avail_in = give;
    stream.next_out = buffer->data() + out;
    stream.avail_out = take;
    status = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += take - stream.avail_out;
  }
  if (status != Z_STREAM_END || out != inflatedSize)
    throw Error(what + ": damaged compressed data at byte " + std::to_string(in) +
                " of the member (" +
                (status == Z_STREAM_END ? "it inflates to " + std::to_string(out) + " bytes, " +
                                              std::to_string(inflatedSize) + " expected"
                                        : zlibReason(stream, status)) +
                ")");
  return {buffer->data(), inflatedSize, buffer};
}

Bytes gunzipIfNeeded(const Bytes &file, const std::string &path) {
  if (file.size < 2 || file.data[0] != 0x1f || file.data[1] != 0x8b)
    return file;
  auto buffer = std::make_shared<std::vector<unsigned char>>();
  Inflater inflater(MAX_WBITS + 16, path);
  z_stream &stream = inflater.stream;
  uint64_t in = 0, out = 0;
  while (true) {
    if (buffer->size() - out < (1u << 16))
      buffer->resize(std::max<size_t>(1u << 20, buffer->size() * 2));
    auto give = static_cast<uInt>(std::min(zlibPiece, file.size - in));
    auto take = static_cast<uInt>(std::min<uint64_t>(zlibPiece, buffer->size() - out));
    stream.next_in = const_cast<unsigned char *>(file.data + in);
    stream.avail_in = give;
    stream.next_out = buffer->data() + out;
    stream.avail_out = take;
    int status = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += take - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (in == file.size)
        break;
      inflateReset(&stream); // A gzip file may hold several members, one after the other.
    } else if (status != Z_OK) {
      throw Error(path + ": damaged gzip data at byte " + std::to_string(in) + " (" +
                  zlibReason(stream, status) + ")");
    }
  }
  buffer->resize(out);
  buffer->shrink_to_fit();
  return {buffer->data(), out, buffer};
}

} // namespace descent::data
