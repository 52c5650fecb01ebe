//===- Access.cpp - Memory accesses of device code, checked -----------------------------------===//
//
// cp.async writes at an unknown time between its issue and the wait that covers its group. Here it
// happens at the wait, the latest time there is; until then the destination is all ones (NaN) and
// counts as a write in flight, which no thread may read or write, not even the one that issued it.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Block.h"

#include <fmt/format.h>

#include <algorithm>

namespace descent::emulator {

/// Reads of one address by one instruction in a row, after which a loop is held for waiting; and so
/// many by all threads together, after which a block whose threads all wait is held for dead.
static constexpr uint64_t spinYield = 64, spinLimit = 1 << 22;

const char *Block::verb(bool write, bool atomic) {
  return atomic ? "atomic access" : write ? "write" : "read";
}

Region *Block::locate(uint64_t address) {
  if (address >= DESCENT_EMULATED_GLOBAL)
    return memory.find(address);
  if (address - DESCENT_EMULATED_SHARED < DESCENT_EMULATED_WINDOW) {
    // Variables are 64 KiB apart, so the one below the address, if any, is the one that is meant.
    Region *found = nullptr;
    for (auto &variable : shared)
      if (variable->region.address <= address &&
          (!found || variable->region.address > found->address))
        found = &variable->region;
    return found;
  }
  if (address - DESCENT_EMULATED_LOCAL < DESCENT_EMULATED_WINDOW) {
    for (auto region = running->locals.rbegin(); region != running->locals.rend(); ++region)
      if ((*region)->address <= address)
        return region->get();
    return nullptr;
  }
  return nullptr;
}

std::string Block::describe(uint64_t address) const {
  auto nearest = [&](const char *none, auto &&regions) -> std::string {
    const Region *best = nullptr;
    uint64_t distance = UINT64_MAX;
    for (const Region *region : regions) {
      uint64_t away = address < region->address
                          ? region->address - address
                          : address - std::min(address, region->address + region->bytes);
      if (away < distance) {
        distance = away;
        best = region;
      }
    }
    if (!best)
      return none;
    std::string what = fmt::format("{} ({} bytes)", best->name, best->bytes);
    if (address < best->address)
      return fmt::format("{} bytes before the start of {}", best->address - address, what);
    if (address - best->address < best->bytes)
      return fmt::format("byte {} of {}", address - best->address, what);
    return fmt::format("{} bytes behind the end of {}", address - best->address - best->bytes,
                       what);
  };
  std::vector<const Region *> regions;
  if (address - DESCENT_EMULATED_SHARED < DESCENT_EMULATED_WINDOW) {
    for (auto &variable : shared)
      regions.push_back(&variable->region);
    return nearest("in shared memory, of which the kernel has none", regions);
  }
  if (address - DESCENT_EMULATED_LOCAL < DESCENT_EMULATED_WINDOW) {
    for (auto &region : running->locals)
      regions.push_back(region.get());
    return nearest("in local memory, where the thread has no variable now", regions);
  }
  return memory.describe(address);
}

void Block::failBounds(uint64_t address, uint64_t bytes, bool write, const Site *site) {
  const char *what = write ? "write" : "read";
  if (address < 65536)
    fail(Check::OutOfBounds, site,
         fmt::format("out of bounds {} of {} bytes: null pointer", what, bytes),
         fmt::format("  address 0x{:x}\n", address),
         "pass a buffer for every pointer parameter that the kernel uses");
  if (!isDeviceAddress(address))
    fail(Check::HostPointer, site,
         fmt::format("{} of {} bytes through a host pointer: 0x{:x} is no address of the device",
                     what, bytes, address),
         "",
         "copy the data to memory of the device and pass that address; or the index overflowed far "
         "out of its buffer");
  Region *region = locate(address);
  if (region && !region->live)
    fail(Check::UseAfterFree, site, fmt::format("{} of {} bytes after free", what, bytes),
         fmt::format("  address 0x{:x} is {}\n", address, describe(address)),
         "free memory when the last kernel that uses it is done");
  // An access that begins inside and ends outside is described by its last byte.
  uint64_t last =
      region && address - region->address < region->bytes ? address + bytes - 1 : address;
  fail(Check::OutOfBounds, site, fmt::format("out of bounds {} of {} bytes", what, bytes),
       fmt::format("  address 0x{:x}{} is {}\n", address,
                   last == address ? "" : fmt::format(" begins inside; its last byte 0x{:x}", last),
                   describe(last)),
       "guard the access by the size of the buffer, or launch fewer threads");
}

void Block::watchSpinning(uint64_t address, bool write, bool atomic, const Site *site) {
  Thread &me = *running;
  if (me.lastSite != site || me.lastAddress != address) {
    me.lastSite = site;
    me.lastAddress = address;
    me.repeats = 0;
    if (write)
      ++writes;
    return;
  }
  if (write && !atomic) { // a loop that stores is not one that waits
    ++writes;
    me.repeats = 0;
    return;
  }
  if (++me.repeats % spinYield)
    return;
  if (writes != writesSeen) {
    writesSeen = writes;
    for (Thread &thread : threads)
      thread.repeats = std::min<uint64_t>(thread.repeats, spinYield);
  }
  uint64_t limit = std::max<uint64_t>(spinLimit / count, 1 << 14);
  bool allSpin = me.repeats >= limit;
  for (uint32_t i = 0; i < count && allSpin; ++i)
    allSpin = threads[i].wait != Wait::Nothing || threads[i].repeats >= limit;
  me.site = site;
  if (allSpin)
    fail(Check::Deadlock, site,
         fmt::format("deadlock: threads read 0x{:x} over and over, and nobody is left to change it",
                     address),
         fmt::format("  the address is {}\n{}", describe(address), whoWaits()),
         "what a loop waits for must be written by a thread that does not wait itself; blocks run "
         "one after another, so no block may wait for a later one");
  yield();
}

void Block::checkRace(Region &region, uint64_t offset, uint64_t bytes, const Record &record,
                      bool write, const Site *site) {
  const Record *other = region.shadow.check(offset, bytes, record, write, clocks);
  if (!other)
    return;
  uint64_t at = region.address + region.shadow.conflictOffset;
  bool inFlight = other->inFlight(), byWrite = region.shadow.conflictIsWrite;
  if (inFlight)
    fail(
        Check::Race, site,
        fmt::format("race: {} of bytes that a cp.async is still writing", write ? "write" : "read"),
        fmt::format("  address 0x{:x} is {}\n  the copy was issued by thread {}\n  {}", at,
                    describe(at), threadText(other->thread()), siteText(other->site())),
        "the thread that issues a cp.async waits for its group (cp.async.wait_group), then a "
        "barrier makes the data visible to the others");
  bool sameWarp = other->thread() / 32 == running->warp();
  fail(Check::Race, site,
       fmt::format("race: {} of bytes that another thread {} since the last barrier",
                   verb(write, record.atomic()), byWrite ? "wrote" : "read"),
       fmt::format("  address 0x{:x} is {}\n  the other access: {} by thread {}\n  {}", at,
                   describe(at), verb(byWrite, other->atomic()), threadText(other->thread()),
                   siteText(other->site())),
       sameWarp ? "put a barrier between the two accesses; inside a warp bar.warp.sync is enough"
                : "put a barrier between the two accesses, or make both atomic");
}

void Block::beginLaunch(const std::vector<Limit> &newLimits) {
  sharedFor = nullptr;
  limits = newLimits;
  lastLimit = nullptr;
  std::sort(limits.begin(), limits.end(),
            [](const Limit &a, const Limit &b) { return a.address < b.address; });
}

/// Only allocations that a limit lies in are limited: others are a module's variables.
void Block::checkLimits(const Region &region, uint64_t address, uint64_t bytes, bool write,
                        const Site *site) {
  bool limited = false;
  const Limit *nearest = nullptr;
  uint64_t distance = UINT64_MAX;
  for (const Limit &limit : limits) {
    if (limit.address - region.address >= region.bytes)
      continue;
    limited = true;
    if (address >= limit.address && address + bytes <= limit.address + limit.bytes) {
      lastLimit = &limit;
      return;
    }
    uint64_t away = address < limit.address ? limit.address - address
                                            : address + bytes - (limit.address + limit.bytes);
    if (away < distance) {
      distance = away;
      nearest = &limit;
    }
  }
  if (!limited)
    return;
  fail(Check::OutOfBounds, site,
       fmt::format("out of bounds {} of {} bytes: outside of the launch's operands",
                   write ? "write" : "read", bytes),
       fmt::format("  address 0x{:x} is {} bytes {} {} ({} bytes); it is {}\n", address, distance,
                   address < nearest->address ? "before the start of" : "behind the end of",
                   nearest->name, nearest->bytes, describe(address)),
       "guard the access by the size of the buffer, or launch fewer threads");
}

void *Block::access(uint64_t address, uint64_t bytes, uint32_t flags, const Site *site) {
  bool write = flags & DESCENT_EMULATE_WRITE, read = flags & DESCENT_EMULATE_READ;
  bool atomic = flags & DESCENT_EMULATE_ATOMIC;
  uint64_t alignment = UINT64_C(1) << (flags >> 8 & 0xff);
  watchSpinning(address, write, atomic, site);
  Region *region = locate(address);
  if (!region || !region->live || !region->holds(address, bytes))
    failBounds(address, bytes, write, site);
  uint32_t space = flags >> 16 & 0xff;
  bool inShared = address - DESCENT_EMULATED_SHARED < DESCENT_EMULATED_WINDOW;
  bool inLocal = address - DESCENT_EMULATED_LOCAL < DESCENT_EMULATED_WINDOW;
  if ((space == 3 && !inShared) || (space == 5 && !inLocal) ||
      ((space == 1 || space == 4) && (inShared || inLocal)))
    fail(Check::OutOfBounds, site,
         fmt::format("{} of {} bytes through a pointer of address space {}, but the address is of "
                     "another",
                     verb(write, atomic), bytes, space),
         fmt::format("  address 0x{:x} is {}\n", address, describe(address)),
         "cast pointers between address spaces only to what they point to");
  if (write && region->readOnly)
    fail(Check::ReadOnly, site, fmt::format("write of {} bytes to read-only memory", bytes),
         fmt::format("  address 0x{:x} is {}\n", address, describe(address)),
         "constant variables and parameters are written by the host alone");
  if (address % alignment && (atomic || enabled(Check::Misaligned)))
    fail(Check::Misaligned, site,
         fmt::format("misaligned {} of {} bytes: the instruction needs {}-byte alignment",
                     verb(write, atomic), bytes, alignment),
         fmt::format("  address 0x{:x} is {}, {} bytes past a multiple of {}\n", address,
                     describe(address), address % alignment, alignment),
         "align the row or the offset, or use narrower accesses");
  uint64_t offset = address - region->address;
  if (!inShared && !inLocal) {
    if (!limits.empty() && !(lastLimit && address >= lastLimit->address &&
                             address + bytes <= lastLimit->address + lastLimit->bytes))
      checkLimits(*region, address, bytes, write, site);
    if (memory.trackAccesses)
      memory.touch(*region, offset, bytes, read, write);
  }
  // Before the next check: bytes that a cp.async is still writing are not written yet either.
  if (!inLocal && !region->readOnly && enabled(Check::Race))
    checkRace(
        *region, offset, bytes,
        Record(site, running->index, atomic, false, clocks.clock(running->index), clocks.interval),
        write, site);
  if (int64_t missing = read ? region->firstUnwritten(offset, bytes) : -1; missing >= 0) {
    if (enabled(Check::Uninitialised))
      fail(Check::Uninitialised, site,
           fmt::format("uninitialised {} of {} bytes: byte {} was never written",
                       verb(write, atomic), bytes, missing - static_cast<int64_t>(offset)),
           fmt::format("  address 0x{:x} is {}\n", region->address + missing,
                       describe(region->address + missing)),
           "initialise the memory before the kernel reads it");
    region->poison(offset, bytes);
  }
  if (write)
    region->markWritten(offset, bytes);
  return region->storage + offset;
}

char *Block::hostOf(uint64_t address, uint64_t bytes, uint32_t alignment, bool write,
                    const Site *site) {
  uint32_t flags = write ? DESCENT_EMULATE_WRITE : DESCENT_EMULATE_READ;
  return static_cast<char *>(
      access(address, bytes, flags | uint32_t(__builtin_ctz(alignment)) << 8, site));
}

char *Block::hostOf(uint32_t lane, uint64_t address, uint64_t bytes, uint32_t alignment, bool write,
                    const Site *site) {
  // The access is the lane's: its number is what a race is about, and what a message names. A fault
  // must leave the fiber that runs, whose saved stack pointer nobody needs any more.
  Thread *me = running;
  running = &threads[me->warp() * 32 + lane];
  running->lastSite = nullptr; // no loop of one thread
  char *host = hostOf(address, bytes, alignment, write, site);
  running = me;
  return host;
}

void Block::copy(uint64_t to, uint64_t from, uint64_t bytes, const Site *site) {
  if (!bytes)
    return;
  char *source = hostOf(from, bytes, 1, false, site);
  std::memmove(hostOf(to, bytes, 1, true, site), source, bytes);
}

void Block::fill(uint64_t to, uint8_t value, uint64_t bytes, const Site *site) {
  if (bytes)
    std::memset(hostOf(to, bytes, 1, true, site), value, bytes);
}

//===-------------------------------------------------------------------------------------------===//
// Local memory
//===-------------------------------------------------------------------------------------------===//

uint64_t Block::local(uint64_t bytes, uint64_t alignment, const Site *site) {
  Thread &me = *running;
  alignment = std::max<uint64_t>(alignment, 1);
  // 256 bytes between variables; a multiple of the alignment and of nothing more.
  uint64_t unit = 2 * alignment, base = me.localTop + 256;
  uint64_t offset = (base + unit - 1) / unit * unit + alignment;
  if (offset + bytes > (512 << 10))
    fail(Check::OutOfBounds, site,
         fmt::format("local memory is full: {} bytes are in use and {} more are asked for",
                     me.localTop, bytes),
         "", "a thread has 512 KiB of local memory; recursion may have no end");
  auto storage = std::make_unique<char[]>(bytes + 1);
  me.locals.push_back(std::make_unique<Region>("local variable", DESCENT_EMULATED_LOCAL + offset,
                                               bytes, storage.get()));
  me.localStorage.push_back(std::move(storage));
  me.localTop = offset + bytes;
  return DESCENT_EMULATED_LOCAL + offset;
}

void Block::localRelease(uint64_t mark) {
  Thread &me = *running;
  while (!me.locals.empty() && me.locals.back()->address >= DESCENT_EMULATED_LOCAL + mark) {
    me.locals.pop_back();
    me.localStorage.pop_back();
  }
  me.localTop = mark;
}

//===-------------------------------------------------------------------------------------------===//
// Asynchronous copies
//===-------------------------------------------------------------------------------------------===//

void Block::issueCopy(uint64_t *slots, const Site *site) {
  Thread &me = *running;
  uint32_t bytes = static_cast<uint32_t>(slots[0]);
  uint64_t to = slots[1], from = slots[2];
  uint32_t read = static_cast<uint32_t>(std::min<uint64_t>(slots[3], bytes));
  if (slots[3] > bytes && slots[3] != UINT64_MAX)
    fail(Check::Operand, site, fmt::format("cp.async of {} bytes reads {}", bytes, slots[3]), "",
         "the source size is at most the size of the copy");
  Region *region = locate(to);
  if (!region || !region->holds(to, bytes) ||
      to - DESCENT_EMULATED_SHARED >= DESCENT_EMULATED_WINDOW)
    failBounds(to, bytes, true, site);
  if (to % bytes || (read && from % bytes))
    if (enabled(Check::Misaligned))
      fail(Check::Misaligned, site, fmt::format("misaligned cp.async of {} bytes", bytes),
           fmt::format("  to 0x{:x}, {}\n  from 0x{:x}, {}\n", to, describe(to), from,
                       describe(from)),
           fmt::format("both addresses must be multiples of {}", bytes));
  if (read)
    hostOf(from, read, 1, false, site);
  uint64_t offset = to - region->address;
  if (enabled(Check::Race))
    checkRace(*region, offset, bytes,
              Record(site, me.index, false, true, clocks.clock(me.index), clocks.interval), true,
              site);
  region->markUnwritten(offset, bytes);
  me.copies.push_back({to, from, bytes, read, me.group, site});
}

void Block::finishCopies(uint64_t groupsLeft, bool all) {
  Thread &me = *running;
  size_t kept = 0;
  for (const PendingCopy &copy : me.copies) {
    // Groups that were committed: [0, me.group). All but the newest `groupsLeft` of them are done.
    if (!all && copy.group + groupsLeft >= me.group) {
      me.copies[kept++] = copy;
      continue;
    }
    Region *region = locate(copy.to);
    char *to = region->host(copy.to);
    uint64_t offset = copy.to - region->address;
    if (copy.read)
      std::memcpy(to, hostOf(copy.from, copy.read, 1, false, copy.site), copy.read);
    std::memset(to + copy.read, 0, copy.bytes - copy.read);
    region->markWritten(offset, copy.bytes);
    if (enabled(Check::Race))
      // The landing is a write by this thread now; as one in flight it does not race with its
      // issue.
      region->shadow.land(
          offset, copy.bytes,
          Record(copy.site, me.index, false, false, clocks.clock(me.index), clocks.interval));
  }
  me.copies.resize(kept);
}

void Block::trap(const Site *site) {
  fail(Check::Trap, site, "the kernel trapped", "",
       "an assertion of the kernel failed, or it reached code that it holds for unreachable");
}

} // namespace descent::emulator
