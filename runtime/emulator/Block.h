//===- Block.h - Runs the threads of a block --------------------------------------------------===//
//
// Each thread is a fiber that runs until it must wait for others (a barrier, an operation of its
// warp), then the next one that can go on runs. There is no preemption, so a run is deterministic;
// the order is an option, and no result may depend on it. Whoever arrives last at a meeting does
// its work for all, straight on the slots of the others, and makes them ready.
//
// A fault leaves the fiber it happened on for good and ends the launch; nothing on a fiber's stack
// may therefore own anything at that point.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_BLOCK_H
#define DESCENT_RUNTIME_EMULATOR_BLOCK_H

#include "runtime/emulator/Fault.h"
#include "runtime/emulator/Fiber.h"
#include "runtime/emulator/Memory.h"

#include <descent/emulator.h>

#include <array>
#include <optional>

namespace descent::emulator {

using Site = descent_emulated_site;

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// In which order threads that can go on run, and blocks.
struct Order {
  enum Kind { Forward, Reverse, Shuffled } kind = Forward;
  uint64_t seed = 0;
};

struct Options {
  Order order;
  uint32_t disabled = 0; ///< a bit for each Check that is off
  bool enabled(Check check) const { return !(disabled >> uint32_t(check) & 1); }
};

/// A part of an allocation that a launch may touch.
struct Limit {
  uint64_t address, bytes;
  std::string name;
};

/// What is the same for all blocks of a launch.
struct Grid {
  const descent_emulated_module *module;
  const descent_emulated_kernel *kernel;
  Dim grid, block;
  uint32_t dynamicShared, totalShared;
  void *const *parameters;
};

enum class Wait : uint8_t { Nothing, Barrier, Warp, Done };

struct PendingCopy {
  uint64_t to, from;
  uint32_t bytes, read, group;
  const Site *site;
};

struct Thread {
  Fiber fiber;
  uint32_t index = 0;
  uint32_t id[3] = {};
  Wait wait = Wait::Nothing;
  const Site *site = nullptr; ///< where it waits
  uint64_t *slots = nullptr;  ///< of the warp operation that it waits in
  uint32_t mask = 0;          ///< the lanes of that operation
  bool last = false;          ///< woken to do its work, since the lanes it waited for have exited

  std::vector<PendingCopy> copies;
  uint32_t group = 0; ///< of the next cp.async
  std::vector<std::unique_ptr<Region>> locals;
  std::vector<std::unique_ptr<char[]>> localStorage;
  uint64_t localTop = 0;

  // Consecutive reads of one address by one instruction: a loop that waits for another thread.
  const Site *lastSite = nullptr;
  uint64_t lastAddress = 0, repeats = 0;

  uint32_t lane() const { return index % 32; }
  uint32_t warp() const { return index / 32; }
};

class Block {
public:
  explicit Block(DeviceMemory &memory) : memory(memory) {}

  /// To be called before the first block of a launch.
  void beginLaunch(const std::vector<Limit> &newLimits);
  /// Runs one block to its end.
  std::optional<Fault> run(const Grid &grid, Dim position, const Options &options);

  /// The block whose code is running on this thread of the host.
  static Block &current();

  // What device code asks for; see descent/emulator.h.
  void *access(uint64_t address, uint64_t bytes, uint32_t flags, const Site *site);
  void copy(uint64_t to, uint64_t from, uint64_t bytes, const Site *site);
  void fill(uint64_t to, uint8_t value, uint64_t bytes, const Site *site);
  uint64_t localMark() { return running->localTop; }
  void localRelease(uint64_t mark);
  uint64_t local(uint64_t bytes, uint64_t alignment, const Site *site);
  uint64_t reg(uint32_t which);
  void barrier(uint64_t *slots, const Site *site);
  void warpSync(uint64_t *slots, const Site *site);
  void issueCopy(uint64_t *slots, const Site *site);
  void commitCopies() { ++running->group; }
  void finishCopies(uint64_t groupsLeft, bool all);
  void yield();
  [[noreturn]] void exitThread();
  [[noreturn]] void trap(const Site *site);

  /// The lanes of `mask` that have not exited meet at `site`. The last to arrive calls
  /// `combine(lanes)`, where lanes[i] is null or lane i's slots; all go on when it returns.
  template <typename Combine>
  void meet(uint32_t mask, uint64_t *slots, const Site *site, Combine combine) {
    if (arrive(mask, slots, site))
      return;
    std::array<uint64_t *, 32> lanes = gather(mask, slots);
    combine(lanes);
    wake(mask);
  }

  /// Memory of a whole-warp instruction: checks as for an access by the running thread.
  char *hostOf(uint64_t address, uint64_t bytes, uint32_t alignment, bool write, const Site *site);
  /// The same by lane `lane` of the running thread's warp.
  char *hostOf(uint32_t lane, uint64_t address, uint64_t bytes, uint32_t alignment, bool write,
               const Site *site);

  /// Ends the launch. `problem` is the message's first line, `detail` lines to follow the
  /// coordinates, `cure` what would make it right.
  [[noreturn]] void fail(Check check, const Site *site, const std::string &problem,
                         const std::string &detail, const std::string &cure);
  bool enabled(Check check) const { return options.enabled(check); }

  std::string threadText(uint32_t index) const; ///< "(31, 0, 0)"
  static std::string siteText(const Site *site);
  std::string describe(uint64_t address) const;

  /// The region of global memory that the address belongs to, or null.
  Region *find(uint64_t address) const { return memory.find(address); }

  Thread *running = nullptr;

private:
  struct Barrier {
    std::vector<uint32_t> waiting, arrived;
    uint32_t expected = 0; ///< threads; 0 while nobody is there
    bool whole = false;
    const Site *site = nullptr;
    uint64_t all = 1, any = 0, count = 0;
  };

  bool arrive(uint32_t mask, uint64_t *slots, const Site *site); ///< true if it waited
  std::array<uint64_t *, 32> gather(uint32_t mask, uint64_t *slots);
  void wake(uint32_t mask);
  uint32_t aliveLanes(uint32_t warp) const;
  void suspend(); ///< the running thread waits
  void makeReady(uint32_t thread);
  Thread *next();
  void complete(Barrier &barrier);
  void prepareShared();
  void finishThread();
  [[noreturn]] void leave();
  static void body();
  Region *locate(uint64_t address);
  [[noreturn]] void failBounds(uint64_t address, uint64_t bytes, bool write, const Site *site);
  void checkRace(Region &region, uint64_t offset, uint64_t bytes, const Record &record, bool write,
                 const Site *site);
  void checkLimits(const Region &region, uint64_t address, uint64_t bytes, bool write,
                   const Site *site);
  void watchSpinning(uint64_t address, bool write, bool atomic, const Site *site);
  std::string whoWaits() const;
  static const char *verb(bool write, bool atomic);

  DeviceMemory &memory;
  std::vector<Limit> limits; ///< by address
  const Limit *lastLimit = nullptr;
  Clocks clocks;
  std::vector<Thread> threads;
  std::vector<uint32_t> ready; ///< a queue: [head, size)
  size_t head = 0;
  uint32_t alive = 0, count = 0;
  uint64_t random = 0, ticks = 0, writes = 0, writesSeen = 0;
  std::array<Barrier, 16> barriers;
  struct SharedVariable {
    Region region;
    std::unique_ptr<char[]> storage;
  };
  std::vector<std::unique_ptr<SharedVariable>> shared;
  const descent_emulated_kernel *sharedFor = nullptr;
  uint64_t sharedForBytes = 0;
  bool copiesLeft = false; ///< a thread exited with copies in flight
  void *main = nullptr;
  Grid grid{};
  Dim position;
  Options options;
  std::optional<Fault> fault;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_BLOCK_H
