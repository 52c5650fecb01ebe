//===- Zip.h - Members of a zip archive -----------------------------------===//

#ifndef DESCENT_RUNTIME_DATA_ZIP_H
#define DESCENT_RUNTIME_DATA_ZIP_H

#include "runtime/data/Bytes.h"

#include <vector>

namespace descent::data {

/// A member as the central directory describes it.
struct ZipMember {
  std::string name;
  uint16_t method; ///< 0 stored, 8 deflate
  uint16_t flags;
  uint32_t crc;
  uint64_t compressed, inflated; ///< bytes
  uint64_t header;               ///< offset of the local header
};

/// Reads the central directory, zip64 included. Throws descent::Error for anything that is not a
/// whole zip archive.
std::vector<ZipMember> readZipDirectory(const Bytes &file, const std::string &path);

/// The member's contents: a piece of the file if stored, inflated memory otherwise. `what` names it
/// in errors.
Bytes readZipMember(const Bytes &file, const ZipMember &member, const std::string &what);

} // namespace descent::data

#endif // DESCENT_RUNTIME_DATA_ZIP_H
