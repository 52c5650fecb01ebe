//===- Safetensors.cpp - Weights and checkpoints as files -----------------------------------===//
//
// Files come from other programs and from crashed machines. The reader believes nothing: the
// header's length is compared with the file's, every entry's extent with its type and shape, and
// together the entries must cover the data exactly.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/trainer/Safetensors.h"
#include "runtime/core/Backend.h"
#include "runtime/core/Error.h"
#include "runtime/core/File.h"
#include "runtime/core/Narrow.h"
#include "runtime/core/Program.h"

#include "descent/abi.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace descent;
using nlohmann::json;

// The format's own limit; a longer header is a file of something else.
static constexpr uint64_t maximumHeader = 100'000'000;
static constexpr char checksumKey[] = "checksum";

/// Bytes of one element of a file type, 0 for unknown ones.
static uint64_t fileElementBytes(const std::string &dtype) {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

const char *descent::safetensorsDtype(int32_t dtype) {
  static constexpr const char *names[] = {"F32", "BF16", "F16",     "I32",
                                          "I64", "BOOL", "F8_E4M3", "F8_E5M2"};
  return dtype >= DESCENT_F32 && dtype <= DESCENT_F8E5M2 ? names[dtype] : "?";
}

std::string descent::typeText(const SafetensorsEntry &entry) {
  std::string text = entry.dtype + " [";
  for (size_t i = 0; i < entry.shape.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "", entry.shape[i]);
  return text + "]";
}

std::string descent::safetensorsName(const std::string &name) {
  try {
    (void)json(name).dump();
    return name;
  } catch (const json::type_error &) { // Not UTF-8.
    std::string utf8;
    for (unsigned char byte : name) {
      if (byte >= 0x80)
        utf8 += {static_cast<char>(0xC0 | byte >> 6), static_cast<char>(0x80 | (byte & 0x3F))};
      else
        utf8 += static_cast<char>(byte);
    }
    return utf8;
  }
}

//===----------------------------------------------------------------------------------------===//
// Reader
//===----------------------------------------------------------------------------------------===//

SafetensorsReader::SafetensorsReader(const std::string &path) : fileName(path) {
  fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throwFileError("open", path.c_str(), errno);
  try {
    parseHeader();
  } catch (...) {
    ::close(fd);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { ::close(fd); }

void SafetensorsReader::fail(const std::string &what) const {
  throw Error(fmt::format("{}: not a whole safetensors file: {}", fileName, what));
}

void SafetensorsReader::readAt(uint64_t position, void *out, size_t size) const {
  char *next = static_cast<char *>(out);
  while (size) {
    ssize_t got = pread(fd, next, std::min<size_t>(size, 1u << 30), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throwFileError("read", fileName.c_str(), errno);
    if (got == 0)
      fail(fmt::format("it ends at byte {}", position));
    next += got;
    position += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
}

void SafetensorsReader::parseHeader() {
  struct stat status;
  if (fstat(fd, &status) != 0)
    throwFileError("read", fileName.c_str(), errno);
  if (!S_ISREG(status.st_mode))
    throw Error(fileName + " is not a file");
  fileBytes = static_cast<uint64_t>(status.st_size);
  if (fileBytes < 10)
    fail(fmt::format("it has {} bytes, a header alone takes ten", fileBytes));
  uint64_t length = 0;
  readAt(0, &length, 8); // Little endian, as every machine this runs on.
  if (length > maximumHeader || length > fileBytes - 8)
    fail(fmt::format("its first eight bytes promise a header of {} bytes, the file has {}", length,
                     fileBytes));
  header.resize(length);
  readAt(8, header.data(), length);
  dataStart = 8 + length;
  uint64_t dataBytes = fileBytes - dataStart;

  json root = json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    fail("its header is no JSON object");
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  for (const auto &[name, value] : root.items()) {
    if (!value.is_object())
      fail(fmt::format("the header's entry '{}' is no object", name));
    if (name == "__metadata__") {
      for (const auto &[key, text] : value.items()) {
        if (!text.is_string())
          fail(fmt::format("the metadata '{}' is no string", key));
        strings[key] = text.get<std::string>();
      }
      continue;
    }
    SafetensorsEntry entry;
    auto dtype = value.find("dtype"), shape = value.find("shape"),
         offsets = value.find("data_offsets");
    if (dtype == value.end() || !dtype->is_string() || shape == value.end() || !shape->is_array() ||
        offsets == value.end() || !offsets->is_array() || offsets->size() != 2 ||
        !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
      fail(fmt::format("the header's entry '{}' lacks dtype, shape or data_offsets", name));
    entry.dtype = dtype->get<std::string>();
    uint64_t bytes = fileElementBytes(entry.dtype);
    if (!bytes)
      fail(fmt::format("'{}' has the unknown type {}", name, entry.dtype));
    for (const json &dimension : *shape) {
      if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() > INT64_MAX ||
          __builtin_mul_overflow(bytes, dimension.get<uint64_t>(), &bytes))
        fail(fmt::format("'{}' has an impossible shape", name));
      entry.shape.push_back(dimension.get<int64_t>());
    }
    entry.begin = (*offsets)[0].get<uint64_t>();
    entry.end = (*offsets)[1].get<uint64_t>();
    if (entry.begin > entry.end || entry.end > dataBytes)
      fail(fmt::format("'{}' lies at bytes {} to {} of {}", name, entry.begin, entry.end,
                       dataBytes));
    if (entry.end - entry.begin != bytes)
      fail(fmt::format("'{}' is {}, which is {} bytes, and has {}", name, typeText(entry), bytes,
                       entry.end - entry.begin));
    extents.emplace_back(entry.begin, entry.end);
    tensors.emplace(name, std::move(entry));
  }
  std::sort(extents.begin(), extents.end());
  uint64_t covered = 0;
  for (auto [begin, end] : extents) {
    if (begin != covered)
      fail(fmt::format("byte {} of its data belongs to {} tensors", std::min(begin, covered),
                       begin > covered ? "no" : "two"));
    covered = end;
  }
  if (covered != dataBytes)
    fail(fmt::format("its tensors end at byte {} of {}", covered, dataBytes));
}

std::string SafetensorsReader::metadata(const std::string &key,
                                        const std::string &otherwise) const {
  auto found = strings.find(key);
  return found == strings.end() ? otherwise : found->second;
}

void SafetensorsReader::read(const SafetensorsEntry &entry, uint64_t first, uint64_t bytes,
                             void *out) const {
  readAt(dataStart + entry.begin + first, out, bytes);
}

void SafetensorsReader::readFloats(const std::string &name, const SafetensorsEntry &entry,
                                   uint64_t first, uint64_t count, float *out) const {
  if (!isFloat(entry))
    throw Error(fmt::format("{}: '{}' has type {}; weights may be F32, F16, BF16 or F64", fileName,
                            name, entry.dtype));
  uint64_t width = fileElementBytes(entry.dtype), start = dataStart + entry.begin + first * width;
  if (entry.dtype == "F32")
    return readAt(start, out, count * width);
  alignas(8) char buffer[1 << 15];
  for (uint64_t done = 0; done < count;) {
    uint64_t part = std::min<uint64_t>(count - done, sizeof buffer / width);
    readAt(start + done * width, buffer, part * width);
    for (uint64_t i = 0; i < part; ++i) {
      if (width == 8) {
        double value;
        std::memcpy(&value, buffer + 8 * i, 8);
        out[done + i] = static_cast<float>(value);
      } else {
        uint16_t bits;
        std::memcpy(&bits, buffer + 2 * i, 2);
        out[done + i] = entry.dtype == "F16" ? halfToFloat(bits) : brainToFloat(bits);
      }
    }
    done += part;
  }
}

bool descent::isFloat(const SafetensorsEntry &entry) {
  return entry.dtype == "F32" || entry.dtype == "F16" || entry.dtype == "BF16" ||
         entry.dtype == "F64";
}

static uint32_t crc(uint32_t value, const void *data, size_t size) {
  return static_cast<uint32_t>(crc32_z(value, static_cast<const unsigned char *>(data), size));
}

void SafetensorsReader::verifyChecksum() const {
  std::string stated = metadata(checksumKey, "");
  if (stated.size() != 8)
    fail("it has no checksum");
  std::string blank = header;
  size_t place = blank.find(fmt::format("\"{}\":\"{}\"", checksumKey, stated));
  if (place == std::string::npos)
    fail("its checksum is damaged");
  blank.replace(place + std::strlen(checksumKey) + 4, 8, "00000000");
  uint32_t value = crc(0, blank.data(), blank.size());
  char buffer[1 << 16];
  for (uint64_t position = dataStart; position < fileBytes;) {
    size_t part = std::min<uint64_t>(sizeof buffer, fileBytes - position);
    readAt(position, buffer, part);
    value = crc(value, buffer, part);
    position += part;
  }
  std::string found = fmt::format("{:08x}", value);
  if (found != stated)
    fail(fmt::format("its checksum is {}, its bytes give {}", stated, found));
}

//===----------------------------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------------------------===//

SafetensorsWriter::SafetensorsWriter(std::vector<SafetensorsTensor> list, const Metadata &metadata,
                                     bool withChecksum)
    : tensors(std::move(list)), checksum(withChecksum) {
  // The order of the safetensors library: wide elements first, which keeps every tensor aligned,
  // then by name, so that the file does not depend on the order of declaration.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
    uint64_t wideA = elementBytes(a.dtype), wideB = elementBytes(b.dtype);
    return wideA != wideB ? wideA > wideB : safetensorsName(a.name) < safetensorsName(b.name);
  });
  // Written by hand so that the place of each metadata value is known.
  header = "{\"__metadata__\":{";
  auto addString = [&](const std::string &key, const std::string &value) {
    if (header.back() != '{')
      header += ',';
    header += json(key).dump() + ":";
    std::string text = json(value).dump();
    places[key] = {header.size() + 1, text.size() - 2};
    header += text;
  };
  for (const auto &[key, value] : metadata)
    addString(key, value);
  if (checksum)
    addString(checksumKey, "00000000");
  header += '}';
  for (const SafetensorsTensor &tensor : tensors) {
    std::string shape;
    for (int64_t dimension : tensor.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", dimension);
    header += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          json(safetensorsName(tensor.name)).dump(), safetensorsDtype(tensor.dtype),
                          shape, dataBytes, dataBytes + tensor.bytes);
    dataBytes += tensor.bytes;
  }
  header += '}';
  header.resize((8 + header.size() + 63) / 64 * 64 - 8, ' '); // The data starts at a cache line.
}

void SafetensorsWriter::setMetadata(const char *key, const char *value) {
  auto place = places.find(key);
  if (place == places.end() || std::strlen(value) != place->second.second)
    throw Error(fmt::format("metadata '{}' has no room for '{}'", key, value));
  header.replace(place->second.first, place->second.second, value);
}

/// Calls consume(pointer, size) for the bytes of a tensor, scaled.
template <typename Consume>
static void forBytes(const SafetensorsTensor &tensor, SafetensorsWriter::Scale scale,
                     Consume consume) {
  auto scaled = [&](const void *data, uint64_t bytes) {
    if (tensor.dtype != DESCENT_F32 || scale.isOne())
      return consume(data, bytes);
    const float *values = static_cast<const float *>(data);
    float buffer[1 << 13];
    uint64_t count = bytes / sizeof(float);
    for (uint64_t done = 0; done < count;) {
      uint64_t part = std::min<uint64_t>(count - done, sizeof buffer / sizeof *buffer);
      for (uint64_t i = 0; i < part; ++i)
        buffer[i] = values[done + i] * scale.factor / scale.divisor;
      consume(buffer, part * sizeof(float));
      done += part;
    }
  };
  if (tensor.memory)
    tensor.memory->consume(tensor.offset, tensor.bytes, scaled);
  else
    scaled(tensor.data, tensor.bytes);
}

void SafetensorsWriter::write(const char *path, Scale scale) {
  if (checksum) {
    setMetadata(checksumKey, "00000000");
    uint32_t value = crc(0, header.data(), header.size());
    for (const SafetensorsTensor &tensor : tensors)
      forBytes(tensor, scale,
               [&](const void *data, size_t size) { value = crc(value, data, size); });
    char text[9];
    std::snprintf(text, sizeof text, "%08x", value);
    setMetadata(checksumKey, text);
  }
  OutputFile file;
  file.open(path);
  uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const SafetensorsTensor &tensor : tensors)
    forBytes(tensor, scale, [&](const void *data, size_t size) { file.write(data, size); });
  file.publish();
}
