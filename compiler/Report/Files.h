//===- Files.h - Tensors in the files a training program reads and writes -===//

#ifndef DESCENT_COMPILER_REPORT_FILES_H
#define DESCENT_COMPILER_REPORT_FILES_H

#include "compiler/Reference/StepReference.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace descent {

struct NamedArray {
  std::string name;
  bool isInteger = false; ///< written as i32, else f32
  reference::Tensor tensor;
};

/// NumPy's .npz, stored without compression.
llvm::Error writeNpz(const std::string &path, const std::vector<NamedArray> &arrays);

/// safetensors with F32 entries (huggingface.co/docs/safetensors).
llvm::Error writeSafetensors(const std::string &path, const reference::NamedTensors &tensors);
llvm::Expected<reference::NamedTensors> readSafetensors(const std::string &path);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_FILES_H
