//===- Version.h - Which compiler this is ---------------------------------===//

#ifndef DESCENT_COMPILER_VERSION_H
#define DESCENT_COMPILER_VERSION_H

namespace descent {

/// "descent 0.1.0 (LLVM 22.1.8)"
const char *versionText();

} // namespace descent

#endif // DESCENT_COMPILER_VERSION_H
