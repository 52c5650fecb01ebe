//===- Placement.cpp - Offsets for buffers with known lifetimes -----------===//
//
// Knows sizes and lifetimes only, so that it can be tested on its own
// (test/passes/Schedule/PlacementTest.cpp checks it against brute force).
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Placement.h"

#include "passes/Schedule/Lifetimes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace descent;
using namespace descent::schedule;

static bool overlap(const Slot &a, const Slot &b) { return a.first <= b.last && b.first <= a.last; }

int64_t schedule::place(llvm::MutableArrayRef<Slot> slots) {
  llvm::SmallVector<unsigned> order(slots.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return slots[a].bytes > slots[b].bytes; });

  llvm::SmallVector<unsigned> placed; // by offset
  int64_t end = 0;
  for (unsigned index : order) {
    Slot &slot = slots[index];
    int64_t bestOffset = -1, bestGap = std::numeric_limits<int64_t>::max(), floor = 0;
    for (unsigned other : placed) {
      if (!overlap(slot, slots[other]))
        continue;
      int64_t gap = slots[other].offset - floor;
      if (gap >= slot.bytes && gap < bestGap) {
        bestGap = gap;
        bestOffset = floor;
      }
      floor = std::max(floor, slots[other].offset + slots[other].bytes);
    }
    slot.offset = bestOffset >= 0 ? bestOffset : floor;
    end = std::max(end, slot.offset + slot.bytes);
    placed.insert(llvm::upper_bound(
                      placed, index,
                      [&](unsigned a, unsigned b) { return slots[a].offset < slots[b].offset; }),
                  index);
  }
  return end;
}

int64_t schedule::lowerBound(llvm::ArrayRef<Slot> slots) {
  int64_t steps = 0;
  for (const Slot &slot : slots)
    steps = std::max(steps, slot.last + 1);
  llvm::SmallVector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const Slot &slot : slots) {
    change[static_cast<size_t>(slot.first)] += slot.bytes;
    change[static_cast<size_t>(slot.last) + 1] -= slot.bytes;
  }
  int64_t alive = 0, most = 0;
  for (int64_t delta : change)
    most = std::max(most, alive += delta);
  return most;
}

TransientSlots schedule::transientSlots(const Lifetimes &lifetimes) {
  TransientSlots result;
  for (auto [index, place] : llvm::enumerate(lifetimes.getPlaces())) {
    if (place.persistent)
      continue;
    result.slots.push_back(
        {static_cast<int64_t>(llvm::alignTo(place.bytes, alignment)), place.first, place.last, 0});
    result.places.push_back(index);
  }
  return result;
}

int64_t schedule::peakBytes(const Lifetimes &lifetimes) {
  return lowerBound(transientSlots(lifetimes).slots);
}
