//===- ByteRange.h - Where a buffer lies in the arena ---------------------===//

#ifndef DESCENT_PASSES_SCHEDULE_BYTERANGE_H
#define DESCENT_PASSES_SCHEDULE_BYTERANGE_H

#include "dialects/Exec/Exec.h"

namespace descent::schedule {

/// Bytes [begin, end) of the arena.
struct ByteRange {
  int64_t begin, end;
  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
};

/// Of the result of an exec.buffer or exec.get.
ByteRange rangeOf(mlir::Value buffer);

/// Whether one of two launches writes bytes that the other reads or writes.
bool conflict(exec::RunOp a, exec::RunOp b);

} // namespace descent::schedule

#endif // DESCENT_PASSES_SCHEDULE_BYTERANGE_H
