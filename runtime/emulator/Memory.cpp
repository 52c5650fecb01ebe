//===- Memory.cpp - Memory of the emulated device -------------------------===//

#include "runtime/emulator/Memory.h"
#include "runtime/core/Error.h"

#include <descent/emulator.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>
#include <utility>

namespace descent::emulator {

static constexpr uint64_t slotBytes = UINT64_C(1) << 30, deviceBytes = UINT64_C(4) << 40;
static_assert(DESCENT_EMULATED_GLOBAL + 16 * deviceBytes <= DESCENT_EMULATED_GLOBAL_END);

Region::Region(std::string name, uint64_t address, uint64_t bytes, char *storage)
    : name(std::move(name)), address(address), bytes(bytes), storage(storage),
      written(static_cast<uint64_t *>(std::calloc(bytes / 64 + 1, sizeof(uint64_t)))) {
  if (!written)
    throw Error(fmt::format("emulator: the host has no memory for the state of {} ({} bytes)",
                            this->name, bytes));
}

/// Calls body(word, mask) for the words of a bit vector that hold bits [first, first + count).
template <typename Body> static void forBits(uint64_t first, uint64_t count, Body body) {
  while (count) {
    uint64_t bit = first % 64, here = std::min<uint64_t>(count, 64 - bit);
    uint64_t mask = (here == 64 ? ~UINT64_C(0) : (UINT64_C(1) << here) - 1) << bit;
    body(first / 64, mask);
    first += here;
    count -= here;
  }
}

void Region::markWritten(uint64_t offset, uint64_t count) {
  forBits(offset, count, [&](uint64_t word, uint64_t mask) { written[word] |= mask; });
}

void Region::markUnwritten(uint64_t offset, uint64_t count) {
  forBits(offset, count, [&](uint64_t word, uint64_t mask) { written[word] &= ~mask; });
}

void Region::poison(uint64_t offset, uint64_t count, char *into) {
  char *to = into ? into : storage + offset;
  forBits(offset, count, [&](uint64_t word, uint64_t mask) {
    for (uint64_t missing = mask & ~written[word]; missing; missing &= missing - 1)
      to[word * 64 + __builtin_ctzll(missing) - offset] = static_cast<char>(0xff);
  });
}

int64_t Region::firstUnwritten(uint64_t offset, uint64_t count) const {
  int64_t found = -1;
  forBits(offset, count, [&](uint64_t word, uint64_t mask) {
    uint64_t missing = mask & ~written[word];
    if (missing && found < 0)
      found = static_cast<int64_t>(word * 64 + __builtin_ctzll(missing));
  });
  return found;
}

static uint64_t mappedBytes(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096 + 4096; }

void Region::forget() {
  storage = nullptr;
  live = false;
  shadow.clear();
  touched = {};
  touchedFirst = UINT64_MAX;
  touchedLast = 0;
  written.reset();
}

DeviceMemory::DeviceMemory() : base(DESCENT_EMULATED_GLOBAL), end(DESCENT_EMULATED_GLOBAL_END) {}

DeviceMemory::DeviceMemory(uint32_t device)
    : base(DESCENT_EMULATED_GLOBAL + device * deviceBytes), end(base + deviceBytes) {}

DeviceMemory::~DeviceMemory() {
  for (auto &region : regions)
    munmap(region->storage, mappedBytes(region->bytes));
}

uint64_t DeviceMemory::takeSlots(uint64_t count, uint64_t bytes, const std::string &name) {
  uint64_t slot = slots.size(), all = (end - base) / slotBytes;
  if (count <= all - slot) {
    slots.resize(slot + count);
    return slot;
  }
  // All addresses were used once: those that were freed the longest ago are used again.
  for (auto old = freed.begin(); old != freed.end(); ++old)
    if ((*old)->slots == count) {
      slot = (*old)->slot;
      freed.erase(old);
      return slot;
    }
  throw Error(fmt::format("emulator: no room for {} bytes ({}) in the device's address space of {} "
                          "GiB; {} bytes are in use",
                          bytes, name, all, inUse));
}

uint64_t DeviceMemory::allocate(uint64_t bytes, std::string name, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) || alignment > slotBytes / 2)
    throw Error(fmt::format("emulator: memory for {} asked with an alignment of {}, which is no "
                            "power of two up to 512 MiB",
                            name, alignment));
  uint64_t taken = bytes > end - base
                       ? UINT64_MAX
                       : (alignment + bytes + slotBytes) / slotBytes + (bytes ? 1 : 0);
  uint64_t slot = takeSlots(taken, bytes, name);
  // An odd multiple of the alignment: code that needs more than it may rely on fails.
  uint64_t address = base + slot * slotBytes + alignment;
  void *memory = mmap(nullptr, mappedBytes(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(fmt::format("emulator: the host has no {} bytes for {}: {}; {} bytes of device "
                            "memory are in use",
                            bytes, name, std::strerror(errno), inUse));
  regions.push_back(
      std::make_unique<Region>(std::move(name), address, bytes, static_cast<char *>(memory)));
  Region *region = regions.back().get();
  region->slot = slot;
  region->slots = taken;
  std::fill_n(slots.begin() + static_cast<ptrdiff_t>(slot), taken, region);
  inUse += bytes;
  return address;
}

void DeviceMemory::release(uint64_t address) {
  Region *region = find(address);
  if (!region || region->address != address)
    throw Error(fmt::format("emulator: 0x{:x} was freed, but no allocation begins there: it is {}",
                            address, describe(address)));
  if (!region->live)
    throw Error(fmt::format("emulator: {} was freed twice", region->name));
  munmap(region->storage, mappedBytes(region->bytes));
  inUse -= region->bytes;
  std::erase(touchedRegions, region);
  region->forget();
  auto found = std::find_if(regions.begin(), regions.end(),
                            [&](const auto &other) { return other.get() == region; });
  freed.push_back(std::move(*found));
  regions.erase(found);
}

void DeviceMemory::trimShadows(uint64_t limit) {
  uint64_t held = 0;
  for (const auto &region : regions)
    held += region->shadow.bytes();
  if (held > limit)
    for (auto &region : regions)
      region->shadow.clear();
}

std::vector<DeviceMemory::Touched> DeviceMemory::takeTouched() {
  std::vector<Touched> result;
  for (Region *region : touchedRegions) {
    for (uint64_t part = region->touchedFirst; part <= region->touchedLast; ++part)
      if (uint8_t how = std::exchange(region->touched[part], 0))
        result.push_back({region, part, (how & 1) != 0, (how & 2) != 0});
    region->touchedFirst = UINT64_MAX;
    region->touchedLast = 0;
  }
  touchedRegions.clear();
  return result;
}

bool isDeviceAddress(uint64_t address) {
  auto in = [&](uint64_t from, uint64_t to) { return address >= from && address < to; };
  return in(DESCENT_EMULATED_GLOBAL, DESCENT_EMULATED_GLOBAL_END) ||
         in(DESCENT_EMULATED_SHARED, DESCENT_EMULATED_SHARED + DESCENT_EMULATED_WINDOW) ||
         in(DESCENT_EMULATED_LOCAL, DESCENT_EMULATED_LOCAL + DESCENT_EMULATED_WINDOW);
}

Region *DeviceMemory::find(uint64_t address) const {
  if (address < base)
    return nullptr;
  uint64_t slot = (address - base) / slotBytes;
  return slot < slots.size() ? slots[slot] : nullptr;
}

std::string DeviceMemory::describe(uint64_t address) const {
  // The nearest region: an address in the empty part of a slot may belong in front of the next.
  const Region *nearest = nullptr;
  uint64_t distance = UINT64_MAX;
  for (const auto *all : {&regions, &freed})
    for (const auto &region : *all) {
      uint64_t away = address < region->address ? region->address - address
                      : address >= region->address + region->bytes
                          ? address - (region->address + region->bytes) + 1
                          : 0;
      if (away < distance) {
        distance = away;
        nearest = region.get();
      }
    }
  if (!nearest)
    return "nowhere: the device has no memory allocated";
  std::string what = fmt::format("{}{} ({} bytes at 0x{:x})", nearest->live ? "" : "the freed ",
                                 nearest->name, nearest->bytes, nearest->address);
  if (address < nearest->address)
    return fmt::format("{} bytes before the start of {}", nearest->address - address, what);
  uint64_t offset = address - nearest->address;
  if (offset < nearest->bytes)
    return fmt::format("byte {} of {}", offset, what);
  return fmt::format("{} bytes behind the end of {}", offset - nearest->bytes, what);
}

Region &DeviceMemory::hostAccess(const char *what, uint64_t address, uint64_t bytes) {
  Region *region = find(address);
  if (!isDeviceAddress(address))
    throw Error(fmt::format("emulator: {} 0x{:x}, which is no address of the device; memory of the "
                            "host cannot stand for memory of the device",
                            what, address));
  if (!region || !region->holds(address, bytes))
    throw Error(fmt::format("emulator: {} {} bytes at 0x{:x}; the first is {}, the last {}", what,
                            bytes, address, describe(address), describe(address + bytes - 1)));
  if (!region->live)
    throw Error(fmt::format("emulator: {} {}, which was freed", what, region->name));
  return *region;
}

void DeviceMemory::copyIn(uint64_t to, const void *from, uint64_t bytes) {
  Region &region = hostAccess("a copy to the device writes", to, bytes);
  std::memcpy(region.host(to), from, bytes);
  region.markWritten(to - region.address, bytes);
}

void DeviceMemory::copyOut(void *to, uint64_t from, uint64_t bytes) {
  Region &region = hostAccess("a copy from the device reads", from, bytes);
  std::memcpy(to, region.host(from), bytes);
  region.poison(from - region.address, bytes, static_cast<char *>(to));
}

void DeviceMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  Region &source = hostAccess("a copy on the device reads", from, bytes);
  Region &target = hostAccess("a copy on the device writes", to, bytes);
  std::vector<char> moved(source.host(from), source.host(from) + bytes);
  std::vector<bool> known(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    known[i] = source.firstUnwritten(from - source.address + i, 1) < 0;
  std::memcpy(target.host(to), moved.data(), bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    if (known[i])
      target.markWritten(to - target.address + i, 1);
    else
      target.markUnwritten(to - target.address + i, 1);
}

void DeviceMemory::fill(uint64_t to, uint8_t value, uint64_t bytes) {
  Region &region = hostAccess("a fill on the device writes", to, bytes);
  std::memset(region.host(to), value, bytes);
  region.markWritten(to - region.address, bytes);
}

} // namespace descent::emulator
