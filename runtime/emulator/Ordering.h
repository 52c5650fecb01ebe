//===- Ordering.h - Which work of several streams is ordered --------------------------------===//
//
// Every stream, and every branch of a launched graph, is a timeline whose operations are numbered.
// A clock says how far an operation has seen each timeline: what it is ordered behind, because it
// follows in the same stream, waited for an event, or was enqueued after the host had waited. Two
// operations that touch the same memory, of which one writes, must be ordered; whether they are
// does not depend on the order in which they happened to run, so one run shows what another would
// have hit.
//
// The shadow of an allocation keeps, for each 256 bytes, the last write and two reads of different
// timelines. A third reader at the same time is forgotten.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_ORDERING_H
#define DESCENT_RUNTIME_EMULATOR_ORDERING_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace descent::emulator {

/// For each timeline, the number of its last operation that is ordered before.
class Clock {
public:
  uint32_t of(uint32_t timeline) const { return timeline < seen.size() ? seen[timeline] : 0; }
  void set(uint32_t timeline, uint32_t number);
  void join(const Clock &other);

private:
  std::vector<uint32_t> seen;
};

/// An operation, as the shadow remembers it. Number 0: none.
struct Stamp {
  uint16_t timeline = 0, name = 0;
  uint32_t number = 0;
};

/// Texts of operations, each kept once: many launches have one name.
class Names {
public:
  uint16_t number(const std::string &name);
  const std::string &text(uint16_t number) const { return texts[number]; }

private:
  std::vector<std::string> texts = {"an operation"};
  std::map<std::string, uint16_t> numbers;
};

/// Who touched the parts of an allocation.
class OrderShadow {
public:
  static constexpr uint64_t unit = 256;

  struct Conflict {
    Stamp other;
    bool otherWrote;
    uint64_t part; ///< offset / unit
  };
  /// Records that `stamp`, which is behind what `clock` has seen, reads or writes part `part`.
  std::optional<Conflict> touch(uint64_t part, bool write, Stamp stamp, const Clock &clock);

private:
  struct Cell {
    Stamp write, reads[2];
  };
  std::vector<Cell> cells;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_ORDERING_H
