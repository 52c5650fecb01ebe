//===- Safetensors.h - Weights and checkpoints as files -------------------------------------===//
//
// The safetensors format (https://huggingface.co/docs/safetensors): eight bytes with the length of
// a JSON header, little endian; the header, an object from tensor names to {dtype, shape,
// data_offsets} with an optional "__metadata__" of strings; then the data, which the tensors cover
// without holes.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_SAFETENSORS_H
#define DESCENT_RUNTIME_TRAINER_SAFETENSORS_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace descent {

class Backend;

/// One tensor of a file. Integer positions are relative to the start of the data.
struct SafetensorsEntry {
  std::string dtype; ///< as in the file: "F32", "BF16", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

/// "F32 [4, 3]".
std::string typeText(const SafetensorsEntry &entry);

/// Whether weights may be of that type: F32, F16, BF16 or F64.
bool isFloat(const SafetensorsEntry &entry);

/// The file's spelling of an enum descent_dtype.
const char *safetensorsDtype(int32_t dtype);

/// How a name is spelt in a header. JSON is UTF-8 and names are any bytes: a name that is no UTF-8
/// is taken for Latin-1.
std::string safetensorsName(const std::string &name);

/// Reads a file. Data goes from the file to where it is wanted and nowhere else, so that loading a
/// model does not need its size in memory twice.
class SafetensorsReader {
public:
  /// Throws Error naming the file and what is wrong with it.
  explicit SafetensorsReader(const std::string &path);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader &) = delete;
  SafetensorsReader &operator=(const SafetensorsReader &) = delete;

  const std::string &path() const { return fileName; }
  const std::map<std::string, SafetensorsEntry> &entries() const { return tensors; }
  const std::map<std::string, std::string> &metadata() const { return strings; }
  /// The metadata value or `otherwise`.
  std::string metadata(const std::string &key, const std::string &otherwise) const;

  /// Reads bytes [first, first + bytes) of an entry to `out`.
  void read(const SafetensorsEntry &entry, uint64_t first, uint64_t bytes, void *out) const;
  /// All of them.
  void read(const SafetensorsEntry &entry, void *out) const {
    read(entry, 0, entry.end - entry.begin, out);
  }
  /// Reads `count` elements from the one at `first` on, of an entry of type F32, F16, BF16 or F64,
  /// as floats; throws for other types.
  void readFloats(const std::string &name, const SafetensorsEntry &entry, uint64_t first,
                  uint64_t count, float *out) const;

  /// Compares the checksum in the metadata with the file's bytes; throws Error if they differ or
  /// there is none.
  void verifyChecksum() const;

private:
  [[noreturn]] void fail(const std::string &what) const;
  void readAt(uint64_t position, void *out, size_t size) const;
  void parseHeader();

  std::string fileName, header;
  int fd = -1;
  uint64_t fileBytes = 0, dataStart = 0;
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> strings;
};

struct SafetensorsTensor {
  std::string name;
  int32_t dtype = 0; ///< enum descent_dtype
  std::vector<int64_t> shape;
  const void *data = nullptr; ///< null: at `offset` of `memory`
  uint64_t bytes = 0;
  Backend *memory = nullptr;
  uint64_t offset = 0;
};

/// Writes the same tensors again and again: the header is made once, later files only change
/// metadata values in place. `write` allocates nothing.
class SafetensorsWriter {
public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  /// With `checksum`, the metadata gets the CRC-32 of header and data, computed with the checksum's
  /// own digits as '0'.
  SafetensorsWriter(std::vector<SafetensorsTensor> tensors, const Metadata &metadata,
                    bool checksum);

  /// Gives a metadata value that the constructor was given another text of the same length.
  void setMetadata(const char *key, const char *value);

  /// What values of f32 tensors are multiplied with, then divided by, on their way.
  struct Scale {
    float factor = 1.0f, divisor = 1.0f;
    bool isOne() const { return factor == 1.0f && divisor == 1.0f; }
  };
  void write(const char *path) { write(path, Scale()); }
  void write(const char *path, Scale scale);

  uint64_t fileBytes() const { return 8 + header.size() + dataBytes; }

private:
  std::vector<SafetensorsTensor> tensors;
  std::string header;
  std::map<std::string, std::pair<size_t, size_t>, std::less<>>
      places; // Of metadata values in the header: position, length.
  uint64_t dataBytes = 0;
  bool checksum;
};

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_SAFETENSORS_H
