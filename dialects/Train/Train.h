//===- Train.h - The whole training step ----------------------------------===//

#ifndef DESCENT_DIALECTS_TRAIN_TRAIN_H
#define DESCENT_DIALECTS_TRAIN_TRAIN_H

#include "dialects/NN/NN.h"

namespace descent::train {
class ReturnOp;
} // namespace descent::train

#include "dialects/Train/TrainDialect.h.inc"
#include "dialects/Train/TrainInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"

namespace descent::train {

/// Whether `name` matches a glob pattern: `*` any run of characters, `?` one.
bool matchesPattern(llvm::StringRef name, llvm::StringRef pattern);

/// Row length of a slab; its type is [rows, slabColumns].
constexpr int64_t slabColumns = 1024;
/// Members of a slab start at multiples of this many elements: 64 bytes in the narrowest type that
/// slabs have, bf16.
constexpr int64_t slabAlignment = 32;

} // namespace descent::train

#endif // DESCENT_DIALECTS_TRAIN_TRAIN_H
