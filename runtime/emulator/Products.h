//===- Products.h - cuBLASLt, answered on the CPU ---------------------------------------------===//
//
// What tests ask of the emulated library besides its table, which is descent_emulated_library.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_PRODUCTS_H
#define DESCENT_RUNTIME_EMULATOR_PRODUCTS_H

#include <string>

namespace descent::emulator {

/// How the library behaves. DESCENT_EMULATOR_CUBLASLT holds words with commas between them; it is
/// read at every call, so that a test can change it.
struct LibrarySettings {
  /// "strict": what CUDA's manual does not promise is refused: epilogues other than a bias on an
  /// f32 result of narrower operands, a bias of another type than the result.
  bool strict = false;
  /// "none": no product has an algorithm.
  bool none = false;
  /// "split": algorithms that cut the sum along k are offered too, whose bits differ.
  bool split = false;
};
LibrarySettings librarySettings();

/// Why the last product was refused or had no algorithm, on this thread.
const std::string &libraryMessage();

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_PRODUCTS_H
