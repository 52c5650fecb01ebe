//===- Link.h - From objects to a training program ------------------------===//

#ifndef DESCENT_COMPILER_TARGET_LINK_H
#define DESCENT_COMPILER_TARGET_LINK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace descent {

using ObjectBytes = llvm::SmallVector<char, 0>;

/// Combines objects into one relocatable object at `output` (ld -r).
llvm::Error linkObject(llvm::ArrayRef<ObjectBytes> objects, llvm::StringRef output);

/// Links objects with the runtime into an executable at `output`. The runtime library is looked for
/// beside the running compiler:
/// ../lib/descent of an installation, ../lib of a build. `output` appears only when it is complete.
/// Needs a C++ compiler driver: $CXX, c++, g++ or clang++ on the path. `emulator`: the program's
/// device is the emulated one, whose library is linked too.
llvm::Error linkExecutable(llvm::ArrayRef<ObjectBytes> objects, llvm::StringRef output,
                           bool emulator = false);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_LINK_H
