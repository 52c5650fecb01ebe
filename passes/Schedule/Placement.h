//===- Placement.h - Offsets for buffers with known lifetimes -------------===//

#ifndef DESCENT_PASSES_SCHEDULE_PLACEMENT_H
#define DESCENT_PASSES_SCHEDULE_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace descent::schedule {

class Lifetimes;

/// Every buffer starts at a multiple of this many bytes: a cache line, and the widest vector.
constexpr int64_t alignment = 64;

struct Slot {
  int64_t bytes = 0;
  int64_t first = 0, last = 0; ///< alive during steps first .. last, both included
  int64_t offset = 0;          ///< out
};

/// Gives each slot an offset such that slots alive at the same time do not overlap; returns the end
/// of the highest slot.
///
/// Greedy by size: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// arXiv:2001.03288, section 5. Blocks are placed from the largest to the smallest, each in the
/// smallest gap that fits between those already placed that are alive with it.
int64_t place(llvm::MutableArrayRef<Slot> slots);

/// The largest sum of slot sizes alive at one step: no placement can be smaller.
int64_t lowerBound(llvm::ArrayRef<Slot> slots);

/// lowerBound over the transient places of a function, sizes rounded up to the alignment.
int64_t peakBytes(const Lifetimes &lifetimes);

/// The transient places of a function as slots, with the index of each in getPlaces().
struct TransientSlots {
  llvm::SmallVector<Slot> slots;
  llvm::SmallVector<unsigned> places;
};
TransientSlots transientSlots(const Lifetimes &lifetimes);

} // namespace descent::schedule

#endif // DESCENT_PASSES_SCHEDULE_PLACEMENT_H
