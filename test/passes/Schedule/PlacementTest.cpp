//===- PlacementTest.cpp - Offsets against every order of placing ---------===//
//
// Random small instances. The optimum is found by brute force: some order of placing slots, each at
// the lowest offset that is free for its whole life, reaches it, because an optimal placement in
// which every slot is pushed down until it rests on another or on zero is what placing by offset
// gives.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Placement.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <vector>

using namespace descent::schedule;

namespace {

bool aliveTogether(const Slot &a, const Slot &b) { return a.first <= b.last && b.first <= a.last; }
bool inSameBytes(const Slot &a, const Slot &b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::vector<Slot> randomSlots(std::mt19937 &engine, int count, int steps) {
  std::vector<Slot> slots(count);
  for (Slot &slot : slots) {
    slot.bytes = alignment * std::uniform_int_distribution<int64_t>(1, 6)(engine);
    slot.first = std::uniform_int_distribution<int64_t>(0, steps - 1)(engine);
    slot.last = std::uniform_int_distribution<int64_t>(slot.first, steps - 1)(engine);
  }
  return slots;
}

int64_t optimum(std::vector<Slot> slots) {
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    int64_t end = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      Slot &slot = slots[order[i]];
      slot.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < i; ++j)
          if (const Slot &other = slots[order[j]];
              aliveTogether(slot, other) && inSameBytes(slot, other)) {
            slot.offset = other.offset + other.bytes;
            moved = true;
          }
      }
      end = std::max(end, slot.offset + slot.bytes);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Placement, SmallInstancesAgainstBruteForce) {
  std::mt19937 engine(1);
  int64_t placed = 0, least = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Slot> slots = randomSlots(engine, 1 + round % 6, 5);
    int64_t end = place(slots), best = optimum(slots), bound = lowerBound(slots);
    EXPECT_GE(best, bound);
    EXPECT_GE(end, best) << "below the optimum: slots must overlap";
    placed += end;
    least += best;
  }
  EXPECT_LE(static_cast<double>(placed), 1.02 * static_cast<double>(least))
      << "greedy placement has become worse";
}

TEST(Placement, NoTwoLiveSlotsShareBytes) {
  std::mt19937 engine(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Slot> slots = randomSlots(engine, 40, 25);
    int64_t end = place(slots), highest = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_GE(slots[i].offset, 0);
      EXPECT_EQ(slots[i].offset % alignment, 0);
      highest = std::max(highest, slots[i].offset + slots[i].bytes);
      for (size_t j = 0; j < i; ++j)
        EXPECT_FALSE(aliveTogether(slots[i], slots[j]) && inSameBytes(slots[i], slots[j]))
            << i << " and " << j;
    }
    EXPECT_EQ(end, highest);
    EXPECT_GE(end, lowerBound(slots));
  }
}

TEST(Placement, SameInputSameOffsets) {
  std::mt19937 engine(3);
  std::vector<Slot> slots = randomSlots(engine, 60, 30), again = slots;
  EXPECT_EQ(place(slots), place(again));
  for (size_t i = 0; i < slots.size(); ++i)
    EXPECT_EQ(slots[i].offset, again[i].offset);
}

TEST(Placement, LowerBoundCountsBothEndsOfALife) {
  // The first and the second touch at step 2, so both are alive there; the third begins after.
  std::vector<Slot> slots = {{64, 0, 2}, {128, 2, 3}, {256, 4, 4}};
  EXPECT_EQ(lowerBound(slots), 256);
  slots[2].first = 3;
  EXPECT_EQ(lowerBound(slots), 384);
  EXPECT_EQ(lowerBound({}), 0);
  EXPECT_EQ(place({}), 0);
}

} // namespace
