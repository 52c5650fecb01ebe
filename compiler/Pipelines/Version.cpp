//===- Version.cpp - Which compiler this is -------------------------------===//
//
// In a file of its own, so that a new version number recompiles this and nothing else.
//
//===----------------------------------------------------------------------===//

#include "compiler/Version.h"

#include "llvm/Config/llvm-config.h"

const char *descent::versionText() {
  return "descent " DESCENT_VERSION " (LLVM " LLVM_VERSION_STRING ")";
}
