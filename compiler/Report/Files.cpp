//===- Files.cpp - Tensors in the files a training program reads and writes ===//
//
// The compiler may not link the runtime, whose readers are for large files anyway. What `descent
// verify` needs is small: stored zip members (APPNOTE.TXT 4.3) holding NumPy arrays of version 1.0,
// and safetensors of f32. A zip library would be a dependency for one local header and one
// directory entry.
//
//===----------------------------------------------------------------------===//

#include "compiler/Report/Files.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

using namespace llvm;

namespace descent {

static Error refuse(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

static Error writeFile(const std::string &path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? refuse("cannot write " + path + ": " + code.message()) : Error::success();
}

static std::string npyBytes(const NamedArray &array) {
  std::string shape;
  for (int64_t size : array.tensor.shape)
    shape += std::to_string(size) + ", ";
  std::string header = std::string("{'descr': '") + (array.isInteger ? "<i4" : "<f4") +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header +=
      std::string(63 - (header.size() + 10) % 64, ' ') + "\n"; // data starts at a multiple of 64
  std::string bytes("\x93NUMPY\x01\x00", 8);
  raw_string_ostream stream(bytes);
  support::endian::Writer writer(stream, endianness::little);
  writer.write<uint16_t>(static_cast<uint16_t>(header.size()));
  stream << header;
  for (double value : array.tensor.values)
    if (array.isInteger)
      writer.write<int32_t>(static_cast<int32_t>(value));
    else
      writer.write<float>(static_cast<float>(value));
  return bytes;
}

Error writeNpz(const std::string &path, const std::vector<NamedArray> &arrays) {
  std::string file, directory;
  raw_string_ostream fileStream(file), directoryStream(directory);
  support::endian::Writer out(fileStream, endianness::little),
      index(directoryStream, endianness::little);
  for (const NamedArray &array : arrays) {
    std::string name = array.name + ".npy", bytes = npyBytes(array);
    auto size = static_cast<uint32_t>(bytes.size()), offset = static_cast<uint32_t>(file.size());
    uint32_t crc = crc32(arrayRefFromStringRef(bytes));
    auto common = [&](support::endian::Writer &w) { // from "version needed" to "extra field length"
      w.write<uint16_t>(20);
      w.write<uint16_t>(0);
      w.write<uint16_t>(0);          // stored
      w.write<uint32_t>(0x00210000); // 1980-01-01, so that equal arrays make equal files
      w.write<uint32_t>(crc);
      w.write<uint32_t>(size);
      w.write<uint32_t>(size);
      w.write<uint16_t>(static_cast<uint16_t>(name.size()));
      w.write<uint16_t>(0);
    };
    out.write<uint32_t>(0x04034b50);
    common(out);
    fileStream << name << bytes;
    index.write<uint32_t>(0x02014b50);
    index.write<uint16_t>(20);
    common(index);
    index.write<uint16_t>(0); // comment
    index.write<uint16_t>(0); // disk
    index.write<uint16_t>(0);
    index.write<uint32_t>(0);
    index.write<uint32_t>(offset);
    directoryStream << name;
  }
  auto start = static_cast<uint32_t>(file.size());
  fileStream << directory;
  out.write<uint32_t>(0x06054b50);
  out.write<uint32_t>(0);
  out.write<uint16_t>(static_cast<uint16_t>(arrays.size()));
  out.write<uint16_t>(static_cast<uint16_t>(arrays.size()));
  out.write<uint32_t>(static_cast<uint32_t>(directory.size()));
  out.write<uint32_t>(start);
  out.write<uint16_t>(0);
  return writeFile(path, file);
}

Error writeSafetensors(const std::string &path, const reference::NamedTensors &tensors) {
  nlohmann::ordered_json header;
  std::string data;
  raw_string_ostream stream(data);
  support::endian::Writer writer(stream, endianness::little);
  for (const auto &[name, tensor] : tensors) {
    size_t begin = data.size();
    for (double value : tensor.values)
      writer.write<float>(static_cast<float>(value));
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text += std::string((8 - text.size() % 8) % 8, ' ');
  std::string file;
  raw_string_ostream fileStream(file);
  support::endian::Writer(fileStream, endianness::little).write<uint64_t>(text.size());
  fileStream << text << data;
  return writeFile(path, file);
}

Expected<reference::NamedTensors> readSafetensors(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return refuse("cannot read " + path + ": " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  uint64_t length = bytes.size() < 8 ? ~0ull : support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8)
    return refuse(path + " is no safetensors file: its header is longer than the file");
  auto header = nlohmann::json::parse(bytes.substr(8, length), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object())
    return refuse(path + " is no safetensors file: its header is not JSON");
  StringRef data = bytes.drop_front(8 + length);
  reference::NamedTensors tensors;
  for (const auto &[name, entry] : header.items()) {
    std::string type = name == "__metadata__" ? "" : entry.value("dtype", "");
    if (type != "F32" && type != "BF16")
      continue;
    reference::Tensor tensor(entry["shape"].get<std::vector<int64_t>>());
    auto begin = entry["data_offsets"][0].get<uint64_t>();
    uint64_t width = type == "F32" ? 4 : 2;
    if (begin + width * static_cast<uint64_t>(tensor.size()) > data.size())
      return refuse(path + ": " + name + " reaches beyond the end of the file");
    const char *at = data.data() + begin;
    for (double &value : tensor.values) {
      // A bf16 is the upper half of the f32 it stands for.
      uint32_t bits = type == "F32" ? support::endian::read32le(at)
                                    : uint32_t{support::endian::read16le(at)} << 16;
      value = bit_cast<float>(bits);
      at += width;
    }
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

} // namespace descent
