//===- DeviceRowLayout.h - How threads share the rows of a kernel ---------===//
//
// A thread owns *chunks*: `width` neighbouring elements of a row, at most 16 bytes of the widest
// type, which one access moves. Without reductions every chunk stands alone. With them, a *team* of
// threads owns a row, thread t the chunks t, t + team, t + 2 team, ...: several teams a block while
// a warp or less is enough, one beyond that.
//
// Everything follows from shapes and types, nothing from the chip, so that sums have one order
// everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEROWLAYOUT_H
#define DESCENT_PASSES_CUDA_DEVICEROWLAYOUT_H

#include "passes/Codegen/RowSchedule.h"

namespace descent {

struct DeviceRowLayout {
  int64_t width = 1;  ///< elements of a chunk
  int64_t chunks = 1; ///< whole chunks of a row
  int64_t block = 32; ///< threads of a block
  int64_t grid = 1;   ///< blocks

  // Without reductions.
  int64_t tail = 0;   ///< elements behind the last whole chunk of the only row, one thread each
  int64_t rounds = 1; ///< chunks that a thread computes

  // With reductions.
  int64_t team = 1;      ///< threads of a row, a power of two
  int64_t perThread = 1; ///< chunks of a thread, the last of which may be missing
  bool unrolled = true;  ///< those chunks stand side by side, and values stay in registers
  /// Rows are odd in length, so each starts at another place relative to 16 bytes. A thread's
  /// chunks begin at the first aligned element; the `width` - 1 or less before it and those behind
  /// the last chunk are taken one by one.
  bool peeled = false;

  int64_t rowsPerBlock() const { return block / team; }

  /// Whether a chunk of an operand with this offset is aligned, so that one access moves it.
  bool aligned(const RowGraph &graph, const LinearForm &strides) const;

  static DeviceRowLayout choose(const RowGraph &graph, const RowSchedule &schedule);
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEROWLAYOUT_H
