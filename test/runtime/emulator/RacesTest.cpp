//===- RacesTest.cpp - Order of accesses, and rounding --------------------===//
#include "runtime/emulator/Races.h"
#include "runtime/core/Narrow.h"
#include "runtime/emulator/Numbers.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace descent;
using namespace descent::emulator;

namespace {
/// A block of threads with one shadow; each call is an access of 4 bytes and whether it races.
struct Scene {
  explicit Scene(uint32_t threads) { clocks.reset(threads); }
  bool access(uint32_t thread, bool write, uint64_t offset = 0, uint64_t bytes = 4,
              bool atomic = false, bool inFlight = false) {
    Record record(nullptr, thread, atomic, inFlight, clocks.clock(thread), clocks.interval);
    return shadow.check(offset, bytes, record, write, clocks) != nullptr;
  }
  bool reads(uint32_t thread) { return access(thread, false); }
  bool writes(uint32_t thread) { return access(thread, true); }
  Clocks clocks;
  Shadow shadow;
};
} // namespace

TEST(EmulatorRaces, OneThreadNeverRacesWithItself) {
  Scene scene(64);
  EXPECT_FALSE(scene.writes(3));
  EXPECT_FALSE(scene.reads(3));
  EXPECT_FALSE(scene.writes(3));
}

TEST(EmulatorRaces, BarriersOfTheBlockOrderEverything) {
  Scene scene(64);
  EXPECT_FALSE(scene.writes(0));
  scene.clocks.nextInterval();
  EXPECT_FALSE(scene.reads(1));
  EXPECT_FALSE(scene.reads(40));
  scene.clocks.nextInterval();
  EXPECT_FALSE(scene.writes(50));
  EXPECT_TRUE(scene.reads(51));
}

// A read that another read follows is not forgotten as long as a write could race with it.
TEST(EmulatorRaces, EveryUnorderedReadCounts) {
  for (uint32_t reader = 0; reader < 64; ++reader) {
    Scene one(64);
    one.reads(reader);
    EXPECT_EQ(one.writes(7), reader != 7);
  }
  Scene all(64);
  for (uint32_t reader = 0; reader < 64; ++reader)
    EXPECT_FALSE(all.reads(reader));
  EXPECT_TRUE(all.writes(7));
  // The other warp read too; the writer's own warp has met.
  Scene scene(64);
  scene.reads(1);
  scene.reads(2);
  scene.reads(33);
  scene.clocks.meet({1, 2, 7});
  EXPECT_TRUE(scene.writes(7));
  Scene ordered(64);
  ordered.reads(1);
  ordered.reads(2);
  ordered.clocks.meet({1, 2, 7});
  EXPECT_FALSE(ordered.writes(7));
}

// What happens behind a meeting is not ordered by it.
TEST(EmulatorRaces, MeetingsOrderWhatWasBefore) {
  Scene scene(64);
  scene.clocks.meet({0, 1});
  EXPECT_FALSE(scene.writes(0));
  EXPECT_TRUE(scene.reads(1));
}

// 0 meets 40, 40 meets 1: what 0 wrote is known to 1, though they never met.
TEST(EmulatorRaces, MeetingsOfSeveralWarpsAreTransitive) {
  Scene scene(64);
  EXPECT_FALSE(scene.writes(0));
  scene.clocks.meet({0, 40});
  scene.clocks.meet({40, 1});
  EXPECT_FALSE(scene.reads(1));
  EXPECT_TRUE(scene.writes(2));
}

TEST(EmulatorRaces, AtomicsRaceWithOthersOnly) {
  Scene scene(64);
  EXPECT_FALSE(scene.access(0, true, 0, 4, true));
  EXPECT_FALSE(scene.access(1, true, 0, 4, true));
  EXPECT_TRUE(scene.reads(2));
}

// Bytes of one word are apart; the conflict is at the byte that both touch.
TEST(EmulatorRaces, PartsOfWordsAreApart) {
  Scene scene(64);
  EXPECT_FALSE(scene.access(0, true, 0, 2));
  EXPECT_FALSE(scene.access(1, true, 2, 2));
  EXPECT_FALSE(scene.access(2, true, 4, 4));
  EXPECT_TRUE(scene.access(3, false, 3, 1));
  EXPECT_EQ(scene.shadow.conflictOffset, 3u);
  EXPECT_TRUE(scene.access(4, false, 0, 16));
  EXPECT_EQ(scene.shadow.conflictOffset, 0u);
}

TEST(EmulatorRaces, CopiesInFlightRaceUntilTheyLand) {
  Scene scene(64);
  EXPECT_FALSE(scene.access(0, true, 0, 4, false, true));
  scene.clocks.nextInterval(); // a barrier does not wait for them
  EXPECT_TRUE(scene.reads(0));
  EXPECT_TRUE(scene.writes(1));
  scene.shadow.land(0, 4,
                    Record(nullptr, 0, false, false, scene.clocks.clock(0), scene.clocks.interval));
  EXPECT_FALSE(scene.reads(0));
  EXPECT_TRUE(scene.reads(1));
  scene.clocks.nextInterval();
  EXPECT_FALSE(scene.reads(1));
}

// All 65536 values there and back, and what lies between two of them against a rounding of another
// making.
TEST(EmulatorNumbers, NarrowTypesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    for (bool half : {false, true}) {
      float value = fromNarrow(static_cast<uint16_t>(bits), half);
      if (std::isnan(value))
        continue;
      ASSERT_EQ(toNarrow(value, half), bits);
      ASSERT_EQ(value, half ? halfToFloat(static_cast<uint16_t>(bits))
                            : brainToFloat(static_cast<uint16_t>(bits)));
    }
  uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525 + 1013904223;
    float value = floatOf(state);
    if (!std::isnan(value)) {
      ASSERT_EQ(toNarrow(value, false), floatToBrain(value)) << value;
      // Towards zero cuts the lower half off.
      ASSERT_EQ(toNarrow(value, false, true), state >> 16) << value;
    }
  }
  EXPECT_EQ(toNarrow(65519.99, true), 0x7bff);
  EXPECT_EQ(toNarrow(65520, true), 0x7c00);
  EXPECT_EQ(toNarrow(0x1p-25, true), 0);           // a tie between 0 and the least subnormal
  EXPECT_EQ(toNarrow(0x1.8p-25, true), 1);         // above it
  EXPECT_EQ(toNarrow(-0x1.ffep-15, true), 0x8400); // up into the least normal
  EXPECT_EQ(toNarrow(NAN, true), 0x7fff);
}

TEST(EmulatorNumbers, EightBitFloats) {
  EXPECT_EQ(fromE4M3(0x7e), 448);
  EXPECT_EQ(fromE4M3(0x01), 0x1p-9);
  EXPECT_EQ(fromE4M3(0xb8), -1);
  EXPECT_TRUE(std::isnan(fromE4M3(0x7f)));
  EXPECT_EQ(fromE5M2(0x7b), 57344);
  EXPECT_EQ(fromE5M2(0x01), 0x1p-16);
  EXPECT_TRUE(std::isinf(fromE5M2(0x7c)));
}
