//===- Races.h - Which accesses of a block's threads are ordered ------------------------------===//
//
// Two accesses of one byte by different threads of a block race if one of them writes, not both are
// atomic, and nothing orders them. A barrier of the whole block orders everything: it begins a new
// interval. Inside an interval, bar.warp.sync and barriers of some threads order the accesses of
// the threads that meet; that is what the clocks are for (each thread counts its meetings and knows
// how far it has seen the others). Shuffles and votes order no memory, as PTX says.
//
// The shadow of memory keeps, for each place, the last write and two reads. A read that is ordered
// before a new one is dropped, since whoever is ordered behind the new one is ordered behind both;
// of several unordered ones it keeps two, of different warps if there are any, since a thread can
// be ordered behind all reads of one warp more easily than behind those of two. Sixteen bytes,
// which one thread reads or writes at once where it can, have one record until they are accessed in
// parts; then each word has one, and a word that is accessed in parts one for each byte: neighbours
// of 16 or 8 bits are not a race.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_RACES_H
#define DESCENT_RUNTIME_EMULATOR_RACES_H

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

struct descent_emulated_site;

namespace descent::emulator {

/// One access. Pointers of the host have 48 bits, threads of a block 11.
class Record {
public:
  Record() = default;
  Record(const descent_emulated_site *site, uint32_t thread, bool atomic, bool inFlight,
         uint32_t clock, uint32_t interval)
      : bits(reinterpret_cast<uint64_t>(site) | uint64_t(thread) << 48 | uint64_t(atomic) << 62 |
             uint64_t(inFlight) << 63),
        clock(clock), interval(interval) {}

  const descent_emulated_site *site() const {
    return reinterpret_cast<const descent_emulated_site *>(bits & ((UINT64_C(1) << 48) - 1));
  }
  uint32_t thread() const { return bits >> 48 & 0x3fff; }
  bool atomic() const { return bits >> 62 & 1; }
  /// Written by a cp.async that its thread has not waited for.
  bool inFlight() const { return bits >> 63; }

  uint64_t bits = 0;
  uint32_t clock = 0, interval = 0; ///< interval 0: no access yet
};

/// Clocks of one block's threads.
class Clocks {
public:
  void reset(uint32_t threads);
  /// All threads met.
  void nextInterval() { ++interval; }
  /// The threads met: whatever one did before is ordered before what any does from here on.
  void meet(const std::vector<uint32_t> &threads);
  /// Whether the access is ordered before what `thread` does now.
  bool ordered(const Record &before, uint32_t thread) const {
    if (before.interval != interval || before.thread() == thread)
      return true;
    if (width == 32 && before.thread() / 32 != thread / 32)
      return false;
    return known[size_t(thread) * width + before.thread() % width] >= before.clock;
  }
  uint32_t clock(uint32_t thread) const { return known[size_t(thread) * width + thread % width]; }

  uint32_t interval = 0;

private:
  void widen(); ///< from clocks inside each warp to clocks of all threads

  uint32_t count = 0, width = 32;
  std::vector<uint32_t> known; ///< [thread][other thread, of the same warp or of the block]
};

/// The accesses of one region.
class Shadow {
public:
  struct Cell {
    Record write, reads[2];
  };

  /// Looks for an access that races with `access` to bytes [offset, offset + count), and records
  /// it. Null, or the other access (until the next call).
  const Record *check(uint64_t offset, uint64_t count, const Record &access, bool write,
                      const Clocks &clocks);
  /// What was in flight has been written.
  void land(uint64_t offset, uint64_t count, const Record &record);
  void clear() {
    chunks.clear();
    held = 0;
  }
  /// Memory that the records take, about: three to fifty times that of the data that was accessed.
  uint64_t bytes() const { return held; }

  /// The byte that the last race was found at.
  uint64_t conflictOffset = 0;
  bool conflictIsWrite = false; ///< whether the other access wrote

private:
  static constexpr uint64_t granule = 16, granules = 64; // bytes, and granules to a chunk
  /// Four records for one, and where each of them became four in turn.
  struct Parts {
    Cell cells[4];
    uint16_t parts[4] = {}; ///< 1 + index into `bytes`
  };
  struct Chunk {
    Cell cells[granules];
    uint16_t parts[granules] = {}; ///< 1 + index into `words`
    std::vector<Parts> words;
    std::vector<std::array<Cell, 4>> bytes;
  };
  const Record *checkParts(Chunk &chunk, Parts &parts, uint64_t offset, uint64_t end,
                           const Record &access, bool write, const Clocks &clocks);
  const Record *checkCell(Cell &cell, const Record &access, bool write, const Clocks &clocks);

  std::vector<std::unique_ptr<Chunk>> chunks;
  uint64_t held = 0;
  Record conflict;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_RACES_H
