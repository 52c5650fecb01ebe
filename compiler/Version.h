//===- Version.h - Which compiler this is ---------------------------------===//

#ifndef DESCENT_COMPILER_VERSION_H
#define DESCENT_COMPILER_VERSION_H

#include "llvm/Config/llvm-config.h"

namespace descent {

/// "descent 0.1.0 (LLVM 22.1.8)"
inline const char *versionText() { return "descent " DESCENT_VERSION " (LLVM " LLVM_VERSION_STRING ")"; }

} // namespace descent

#endif // DESCENT_COMPILER_VERSION_H
