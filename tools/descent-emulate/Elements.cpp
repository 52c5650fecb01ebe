//===- Elements.cpp - Element types of buffers ----------------------------===//

#include "tools/descent-emulate/Elements.h"
#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"
#include "runtime/emulator/Numbers.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

namespace descent::emulate {

template <typename T> static void storeAs(double value, void *to) {
  T stored = static_cast<T>(value);
  std::memcpy(to, &stored, sizeof stored);
}
template <typename T> static double loadAs(const void *from) {
  T stored;
  std::memcpy(&stored, from, sizeof stored);
  return static_cast<double>(stored);
}
template <bool half> static void storeNarrow(double value, void *to) {
  uint16_t bits = emulator::toNarrow(value, half);
  std::memcpy(to, &bits, sizeof bits);
}
template <bool half> static double loadNarrow(const void *from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return emulator::fromNarrow(bits, half);
}

static const ElementType types[] = {
    {"f32", 4, true, "<f4", storeAs<float>, loadAs<float>},
    {"f64", 8, true, "<f8", storeAs<double>, loadAs<double>},
    {"bf16", 2, true, "<f4", storeNarrow<false>, loadNarrow<false>},
    {"f16", 2, true, "<f2", storeNarrow<true>, loadNarrow<true>},
    {"i1", 1, false, "|b1", storeAs<bool>, loadAs<uint8_t>},
    {"i8", 1, false, "|i1", storeAs<int8_t>, loadAs<int8_t>},
    {"u8", 1, false, "|u1", storeAs<uint8_t>, loadAs<uint8_t>},
    {"i16", 2, false, "<i2", storeAs<int16_t>, loadAs<int16_t>},
    {"i32", 4, false, "<i4", storeAs<int32_t>, loadAs<int32_t>},
    {"u32", 4, false, "<u4", storeAs<uint32_t>, loadAs<uint32_t>},
    {"i64", 8, false, "<i8", storeAs<int64_t>, loadAs<int64_t>},
};

const ElementType *findType(std::string_view name) {
  for (const ElementType &type : types)
    if (name == type.name)
      return &type;
  return nullptr;
}

std::string typeNames() {
  std::string names;
  for (const ElementType &type : types)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

/// Element `at` of a file's array.
static double valueOf(const data::Array &array, int64_t at) {
  using data::Element;
  int64_t bytes = data::elementBytes(array.element);
  unsigned char raw[8];
  std::memcpy(raw, array.bytes.data + at * bytes, bytes);
  if (array.bigEndian)
    std::reverse(raw, raw + bytes);
  switch (array.element) {
  case Element::Bool:
  case Element::U8:
    return raw[0];
  case Element::I8:
    return loadAs<int8_t>(raw);
  case Element::I16:
    return loadAs<int16_t>(raw);
  case Element::U16:
    return loadAs<uint16_t>(raw);
  case Element::I32:
    return loadAs<int32_t>(raw);
  case Element::U32:
    return loadAs<uint32_t>(raw);
  case Element::I64:
    return loadAs<int64_t>(raw);
  case Element::U64:
    return loadAs<uint64_t>(raw);
  case Element::F16:
    return loadNarrow<true>(raw);
  case Element::F32:
    return loadAs<float>(raw);
  case Element::F64:
    return loadAs<double>(raw);
  }
  return 0;
}

std::vector<char> readNpy(const std::string &file, const ElementType &type) {
  data::Array array = data::parseNpy(data::mapFile(file), file);
  int64_t bytes = data::elementBytes(array.element), count = array.bytes.size / bytes;
  std::vector<char> result(count * type.bytes);
  if (type.descr == std::string("<i8") && array.element == data::Element::I64 && !array.bigEndian)
    std::memcpy(result.data(), array.bytes.data, result.size()); // more digits than a double has
  else
    for (int64_t i = 0; i < count; ++i)
      type.store(valueOf(array, i), result.data() + i * type.bytes);
  return result;
}

void writeNpy(const std::string &file, const ElementType &type, const std::vector<int64_t> &shape,
              const std::vector<char> &bytes) {
  std::string extents;
  for (int64_t extent : shape)
    extents += fmt::format("{}, ", extent);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   type.descr, extents);
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::ofstream out(file, std::ios::binary);
  auto length = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(length & 0xff)).put(static_cast<char>(length >> 8));
  out << header;
  if (std::string_view(type.name) == "bf16")
    for (size_t at = 0; at < bytes.size(); at += 2) {
      auto wide = static_cast<float>(type.load(bytes.data() + at));
      out.write(reinterpret_cast<const char *>(&wide), sizeof wide);
    }
  else
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush())
    throw Error(fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
}

} // namespace descent::emulate
