//===- Check.h - Execution tests as programs ------------------------------===//

#ifndef DESCENT_DIALECTS_CHECK_CHECK_H
#define DESCENT_DIALECTS_CHECK_CHECK_H

#include "dialects/NN/NN.h"

#include "dialects/Check/CheckDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Check/CheckOps.h.inc"

namespace descent::check {

/// Uniform values in [low, high), the same for the same seed on every machine. Integer types get
/// whole numbers, i1 gets 0 and 1.
reference::Tensor randomTensor(mlir::RankedTensorType type, uint64_t seed, double low, double high);

/// A different value by more than `tolerance` times max(1, |expected|), or NaN on one side only:
/// the flat position, or -1 if all agree.
int64_t firstDifference(const reference::Tensor &actual, const reference::Tensor &expected,
                        double tolerance);

} // namespace descent::check

#endif // DESCENT_DIALECTS_CHECK_CHECK_H
