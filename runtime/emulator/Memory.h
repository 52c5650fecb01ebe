//===- Memory.h - Memory of the emulated device -----------------------------------------------===//
//
// The device has an address space of its own: an address of the host means nothing there, and one
// of the device faults on the host. Allocations are kept at least 1 GiB apart and their addresses
// are not used again for as long as possible, so that an index that is wrong by much is caught as
// surely as one that is wrong by one, and so is a pointer to what was freed. Every byte knows
// whether it was written.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_MEMORY_H
#define DESCENT_RUNTIME_EMULATOR_MEMORY_H

#include "runtime/emulator/Races.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace descent::emulator {

/// A stretch of device memory: an allocation, a variable in shared memory, a local variable.
class Region {
public:
  Region(std::string name, uint64_t address, uint64_t bytes, char *storage);

  bool holds(uint64_t at, uint64_t count) const {
    return at >= address && count <= bytes && at - address <= bytes - count;
  }
  char *host(uint64_t at) { return storage + (at - address); }

  /// Gives back what a freed region does not need.
  void forget();

  /// Marks bytes [offset, offset + count) as written, or as not written.
  void markWritten(uint64_t offset, uint64_t count);
  void markUnwritten(uint64_t offset, uint64_t count);
  /// Offset of the first byte in the range that was never written, or -1.
  int64_t firstUnwritten(uint64_t offset, uint64_t count) const;
  /// Makes the bytes in the range that were never written all ones, which is NaN in every float
  /// type (a copy of them, if `into` is given). Done when they are read, not before: memory that
  /// nobody touches costs nothing.
  void poison(uint64_t offset, uint64_t count, char *into = nullptr);

  std::string name;
  uint64_t address, bytes;
  char *storage;
  bool live = true, readOnly = false;
  uint64_t slot = 0, slots = 0; ///< its part of the address space
  Shadow shadow;                ///< who read and wrote; of global and shared memory

  /// What a launch read and wrote, for each 256 bytes: 1 and 2.
  std::vector<uint8_t> touched;
  uint64_t touchedFirst = UINT64_MAX, touchedLast = 0;

private:
  struct Free {
    void operator()(uint64_t *memory) const { std::free(memory); }
  };
  std::unique_ptr<uint64_t[], Free> written; ///< a bit for each byte
};

/// Global memory. Functions throw Error on what the host does wrong.
class DeviceMemory {
public:
  DeviceMemory();
  /// Each device of a process has addresses of its own, by its number (below 16).
  explicit DeviceMemory(uint32_t device);
  DeviceMemory(const DeviceMemory &) = delete;
  ~DeviceMemory();

  /// The address of new memory, aligned to `alignment` and to no more than needed: 256 is what the
  /// driver promises. `name` is for messages.
  uint64_t allocate(uint64_t bytes, std::string name, uint64_t alignment = 256);
  void release(uint64_t address);

  /// Bytes to the device, from it (what was never written reads as all ones), within it, and a
  /// value for each byte.
  void copyIn(uint64_t to, const void *from, uint64_t bytes);
  void copyOut(void *to, uint64_t from, uint64_t bytes);
  void copy(uint64_t to, uint64_t from, uint64_t bytes);
  void fill(uint64_t to, uint8_t value, uint64_t bytes);

  /// The region, live or freed, whose part of the address space holds the address; null if none.
  Region *find(uint64_t address) const;

  /// "4 bytes behind the end of argument 0 (f32[8], 32 bytes at 0x...)": where an address is.
  std::string describe(uint64_t address) const;

  uint64_t bytesInUse() const { return inUse; }

  /// Whether launches note what they touch, for takeTouched.
  bool trackAccesses = false;
  void touch(Region &region, uint64_t offset, uint64_t bytes, bool read, bool write) {
    uint64_t first = offset / touchUnit, last = (offset + bytes - 1) / touchUnit;
    if (region.touchedFirst > region.touchedLast) {
      region.touched.resize(region.bytes / touchUnit + 1);
      touchedRegions.push_back(&region);
    }
    region.touchedFirst = std::min(region.touchedFirst, first);
    region.touchedLast = std::max(region.touchedLast, last);
    uint8_t how = (read ? 1 : 0) | (write ? 2 : 0);
    for (uint64_t part = first; part <= last; ++part)
      region.touched[part] |= how;
  }
  struct Touched {
    Region *region;
    uint64_t part; ///< offset / touchUnit
    bool read, written;
  };
  /// What was touched since the last time.
  std::vector<Touched> takeTouched();
  static constexpr uint64_t touchUnit = 256;

  /// Forgets who accessed what, if the records take more than `limit` bytes. Between launches
  /// nobody needs them, and keeping small ones saves making them again.
  void trimShadows(uint64_t limit);

private:
  uint64_t takeSlots(uint64_t count, uint64_t bytes, const std::string &name);
  Region &hostAccess(const char *what, uint64_t address, uint64_t bytes);

  uint64_t base, end;
  std::vector<std::unique_ptr<Region>> regions, freed; ///< freed: the oldest first
  std::vector<Region *> touchedRegions;
  std::vector<Region *> slots; ///< by address, one for each GiB
  uint64_t inUse = 0;
};

/// Whether the address is in one of the windows that global, shared and local memory have.
bool isDeviceAddress(uint64_t address);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_MEMORY_H
