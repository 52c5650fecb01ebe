//===- Text.cpp - Language data: text bytes and token streams -------------===//
//
// A stream of N ids is cut into non-overlapping windows of S: sample i reads ids [iS, iS + S) and
// predicts [iS + 1, iS + S + 1). The id after the last window is a target only, and up to S - 1 ids
// at the end of a part are left out. The cut between training and validation falls in the stream,
// before windows are made, so no training target lies in the validation part.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Loaders.h"
#include "runtime/include/descent/abi.h"

#include <array>

namespace descent::data {

namespace {

/// Ids of one file part. Id i is at data + i * width, little-endian; text ids go through `table`.
class LanguageDataset final : public Dataset {
public:
  Bytes ids; // The part asked for and nothing else.
  int width = 1;
  int64_t windows = 0, sequence = 0;
  std::vector<Field> fields;
  std::vector<bool> isTarget;
  std::array<int32_t, 256> table{}; // Text: byte to id.
  std::string bytesOfIds;           // Text: id to byte.

  int64_t size() const override { return windows; }
  std::string vocabulary() const override { return bytesOfIds; }
  int64_t tokensPerSample() const override { return sequence; }

  void read(int64_t index, int field, void *out) const override {
    int64_t first = index * sequence + (isTarget[field] ? 1 : 0);
    if (fields[field].dtype == DESCENT_I32)
      copy(first, static_cast<int32_t *>(out));
    else
      copy(first, static_cast<int64_t *>(out));
  }

private:
  template <typename T> void copy(int64_t first, T *out) const {
    const unsigned char *at = ids.data + first * width;
    for (int64_t i = 0; i < sequence; ++i) {
      if (width == 1)
        out[i] = table[at[i]];
      else if (width == 2)
        out[i] = loadLittle<uint16_t>(at + 2 * i);
      else // An id above 2^31 - 1 turns negative in i32: the runtime's check of each batch refuses
           // it.
        out[i] = static_cast<T>(loadLittle<uint32_t>(at + 4 * i));
    }
  }
};

/// One data and at most one target input, both of integers, both with one dimension.
int64_t checkFields(const OpenRequest &request) {
  int64_t sequence = request.sequence;
  int dataInputs = 0, targets = 0;
  for (size_t i = 0; i < request.fields.size(); ++i) {
    const Field &field = request.fields[i];
    std::string start = request.path + ": data.format " + quote(request.format) +
                        " cannot feed input " + quote(field.name) + " of the model: ";
    ++(request.isTarget[i] ? targets : dataInputs);
    if (field.dtype != DESCENT_I32 && field.dtype != DESCENT_I64)
      throw Error(start + "it has type " + dtypeName(field.dtype) + ", token ids need i32 or i64");
    if (field.sampleShape.size() != 1 || field.sampleShape[0] < 1)
      throw Error(start + "a sample of it has shape " + shapeText(field.sampleShape) +
                  ", a window of tokens has one dimension");
    if (sequence == 0)
      sequence = field.sampleShape[0];
    if (field.sampleShape[0] != sequence)
      throw Error(start + "it takes " + std::to_string(field.sampleShape[0]) +
                  " tokens a sample, but data.sequence is " + std::to_string(sequence));
  }
  if (dataInputs != 1 || targets > 1)
    throw Error(request.path + ": data.format " + quote(request.format) +
                " feeds one data input and at most one target, but the model has " +
                std::to_string(dataInputs) + " and " + std::to_string(targets));
  return sequence;
}

std::unique_ptr<LanguageDataset> makeLanguage(const OpenRequest &request, const Bytes &stream,
                                              int width, int64_t sequence, const char *unit) {
  auto dataset = std::make_unique<LanguageDataset>();
  auto total = static_cast<int64_t>(stream.size / width);
  Range part = selectPart(request, total, unit);
  if (part.count < sequence + 1)
    throw Error(request.path + ": the " + (request.validationPart ? "validation" : "training") +
                " part has " + std::to_string(part.count) + " of " + std::to_string(total) + " " +
                unit + ", but one sample needs " + std::to_string(sequence + 1) +
                " (data.sequence = " + std::to_string(sequence) +
                " and the next one as its last target); give more data" +
                (request.validation > 0 ? ", a shorter sequence or another data.validation"
                                        : " or a shorter sequence"));
  dataset->ids = stream.slice(part.first * width, part.count * width);
  dataset->width = width;
  dataset->windows = (part.count - 1) / sequence;
  dataset->sequence = sequence;
  dataset->fields = request.fields;
  dataset->isTarget = request.isTarget;
  return dataset;
}

std::string allBytes() {
  std::string bytes(256, '\0');
  for (int i = 0; i < 256; ++i)
    bytes[i] = static_cast<char>(i);
  return bytes;
}

/// The byte values that occur in the file, in increasing order.
std::string occurringBytes(const Bytes &file) {
  std::array<bool, 256> seen{};
  for (uint64_t i = 0; i < file.size; ++i)
    seen[file.data[i]] = true;
  std::string bytes;
  for (int i = 0; i < 256; ++i)
    if (seen[i])
      bytes += static_cast<char>(i);
  return bytes;
}

} // namespace

std::unique_ptr<Dataset> openText(const OpenRequest &request) {
  int64_t sequence = checkFields(request);
  Bytes file = mapFile(request.path);
  auto dataset = makeLanguage(request, file, 1, sequence, "bytes");

  std::string kind = setting(request, "data.vocabulary", "bytes");
  if (kind != "bytes" && kind != "characters")
    throw Error(request.path + ": data.vocabulary is " + quote(kind) +
                ", expected bytes or characters");
  std::string &vocabulary = dataset->bytesOfIds;
  vocabulary = !request.vocabulary.empty() ? request.vocabulary
               : kind == "bytes"           ? allBytes()
                                           : occurringBytes(file);
  dataset->table.fill(-1);
  for (size_t id = 0; id < vocabulary.size(); ++id)
    dataset->table[static_cast<unsigned char>(vocabulary[id])] = static_cast<int32_t>(id);
  if (vocabulary.size() < 256)
    for (uint64_t i = 0; i < file.size; ++i)
      if (dataset->table[file.data[i]] < 0)
        throw Error(request.path + ": byte " + std::to_string(file.data[i]) + " at offset " +
                    std::to_string(i) + " is not in the vocabulary of " +
                    std::to_string(vocabulary.size()) +
                    " byte values that the training data fixed; remove it, or train with "
                    "data.vocabulary = \"bytes\"");
  return dataset;
}

std::unique_ptr<Dataset> openTokens(const OpenRequest &request) {
  int64_t sequence = checkFields(request);
  Bytes file = mapFile(request.path);
  std::string type = setting(request, "data.token_type");
  if (!type.empty() && type != "uint16" && type != "uint32")
    throw Error(request.path + ": data.token_type is " + quote(type) +
                ", expected uint16 or uint32");

  // The header that llm.c's scripts write: 256 int32, of which magic, version and token count are
  // used. The first magic comes with uint16 ids (version 1), the second with uint32 (version 7).
  constexpr uint64_t headerBytes = 1024;
  constexpr int32_t magic16 = 20240520, magic32 = 20240801;
  int32_t magic = file.size >= 4 ? loadLittle<int32_t>(file.data) : 0;
  int width = type == "uint32" ? 4 : 2;
  Bytes stream = file;
  if (magic == magic16 || magic == magic32) {
    if (file.size < headerBytes)
      throw Error(request.path + ": has the magic number of a token file at byte 0, but only " +
                  std::to_string(file.size) + " bytes; its header alone has 1024");
    auto version = loadLittle<int32_t>(file.data + 4);
    int64_t count = loadLittle<uint32_t>(file.data + 8);
    auto payload = static_cast<int64_t>(file.size - headerBytes);
    if (version != 1 && version != 7)
      throw Error(request.path + ": token file version " + std::to_string(version) +
                  " at byte 4, expected 1 (uint16) or 7 (uint32)");
    int stated = version == 7 ? 4 : 2;
    if (!type.empty() && width != stated)
      throw Error(request.path + ": data.token_type is " + quote(type) +
                  ", but the file's header (version " + std::to_string(version) +
                  " at byte 4) says uint" + std::to_string(8 * stated) + "; remove the key");
    width = stated;
    if (payload != count * width)
      throw Error(request.path + ": the header says " + std::to_string(count) +
                  " tokens (byte 8), so " + std::to_string(headerBytes + count * width) +
                  " bytes are expected, but the file has " + std::to_string(file.size) +
                  "; it is cut off or has another token type");
    stream = file.slice(headerBytes, payload);
  }
  if (stream.size % width != 0)
    throw Error(request.path + ": has " + std::to_string(stream.size) +
                " bytes, not a multiple of " + std::to_string(width) +
                ", the size of a token (data.token_type = \"uint" + std::to_string(8 * width) +
                "\")");
  return makeLanguage(request, stream, width, sequence, "tokens");
}

} // namespace descent::data
