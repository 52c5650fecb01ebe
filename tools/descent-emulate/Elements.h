//===- Elements.h - Element types of buffers ------------------------------===//

#ifndef DESCENT_TOOLS_EMULATE_ELEMENTS_H
#define DESCENT_TOOLS_EMULATE_ELEMENTS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace descent::emulate {

/// A type of numbers in memory.
struct ElementType {
  const char *name; ///< "bf16"
  uint64_t bytes;
  bool isFloat;
  const char *descr;                     ///< in .npy files; bf16 is saved as float32
  void (*store)(double value, void *to); ///< rounds to nearest even
  double (*load)(const void *from);
};

/// Null if there is no such type.
const ElementType *findType(std::string_view name);
std::string typeNames(); ///< "f32, f64, ..."

/// Elements of an .npy file as `type`: its bytes if the file holds that very type, else each value
/// rounded. Throws Error.
std::vector<char> readNpy(const std::string &file, const ElementType &type);
void writeNpy(const std::string &file, const ElementType &type, const std::vector<int64_t> &shape,
              const std::vector<char> &bytes);

} // namespace descent::emulate

#endif // DESCENT_TOOLS_EMULATE_ELEMENTS_H
