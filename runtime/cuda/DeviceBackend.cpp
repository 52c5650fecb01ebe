//===- DeviceBackend.cpp - A program in the memory of a CUDA device -------------------------===//
#include "runtime/cuda/DeviceBackend.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

using namespace descent;
using namespace descent::cuda;

/// What moves at once where the host reads or writes the arena.
static constexpr uint64_t pieceBytes = 4 << 20, bounceBytes = 64 << 10;
/// Places of the arena with no more than this between them are copied as one.
static constexpr uint64_t nearby = 32 << 10;

DeviceBackend::DeviceBackend(const descent_program &program, const DeviceOptions &options)
    : program(program), options(options), device(program, options.ordinal), copyIn(device, 0),
      finished(device, /*timed=*/false), pieces(device, pieceBytes, "weights on their way"),
      bounce(device, bounceBytes, "single values on their way"), pauseEnd(device, /*timed=*/true) {
  DeviceBlock::checkFree(device, program);
  chooseProducts();
  block.emplace(device, program);
  executor.emplace(device, program, *block, products ? &*products : nullptr,
                   Executor::Options{options.graph, options.profile});
  // Between the members of a slab lie bytes that belong to none, and kernels of whole slabs read
  // them: as on the host, they are zero.
  device.check(
      device.driver().cuMemsetD8Async(block->arena(), 0, program.memory.arena, executor->compute),
      "cuMemsetD8Async", "clearing memory");
  findInputs();
  for (int i = 0; i < DESCENT_INPUT_SLOTS; ++i)
    slots.push_back({Event(device, /*timed=*/false), Event(device, /*timed=*/false)});
}

DeviceBackend::~DeviceBackend() {
  // What is under way uses memory that is about to be given back.
  try {
    waitFor(copyIn);
    waitFor(executor->compute);
  } catch (const Error &) {
    // The context is lost; whoever saw it first has said so.
  }
}

void DeviceBackend::chooseProducts() {
  if (!usesLibrary(program))
    return;
  products.emplace(device.drivers, device.name, device.capability, device.processors);
  Stream stream(device, 0);
  // The emulator has no time that is worth measuring, and its first algorithm is always the same:
  // nothing is kept unless somebody asks for it.
  bool measure = !device.drivers.emulation;
  std::string file = !options.products.empty() ? options.products
                     : measure                 ? defaultProductsFile()
                                               : std::string();
  products->choose(program, {file, measure}, stream);
}

std::string DeviceBackend::place() const {
  return fmt::format("device {}, {} ({})", options.ordinal, device.name, program.device->target);
}

void DeviceBackend::waitFor(CUstream stream) {
  finished.record(stream);
  finished.wait();
}

//===----------------------------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------------------------===//

void DeviceBackend::read(uint64_t offset, void *to, uint64_t bytes) {
  CUstream stream = executor->compute;
  auto copy = [&](void *target, uint64_t from, uint64_t count) {
    device.check(device.driver().cuMemcpyDtoHAsync(target, block->arena(from), count, stream),
                 "cuMemcpyDtoHAsync", "reading from the device");
    waitFor(stream);
  };
  if (bytes && pieces.holds(to))
    return copy(to, offset, bytes);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = std::min(bytes - done, bounceBytes);
    copy(bounce.data(), offset + done, part);
    std::memcpy(static_cast<uint8_t *>(to) + done, bounce.data(), part);
    done += part;
  }
}

void DeviceBackend::write(uint64_t offset, const void *from, uint64_t bytes) {
  CUstream stream = executor->compute;
  auto copy = [&](uint64_t to, const void *source, uint64_t count) {
    device.check(device.driver().cuMemcpyHtoDAsync(block->arena(to), source, count, stream),
                 "cuMemcpyHtoDAsync", "writing to the device");
    waitFor(stream);
  };
  if (bytes && pieces.holds(from))
    return copy(offset, from, bytes);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = std::min(bytes - done, bounceBytes);
    std::memcpy(bounce.data(), static_cast<const uint8_t *>(from) + done, part);
    copy(offset + done, bounce.data(), part);
    done += part;
  }
}

//===----------------------------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------------------------===//

void DeviceBackend::findInputs() {
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < program.input_count; ++i)
    ranges.push_back({program.inputs[i].tensor.offset, program.inputs[i].tensor.bytes, 0});
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.offset < b.offset; });
  firstInput = ranges.empty() ? 0 : ranges.front().offset;
  for (Range range : ranges) {
    range.place = range.offset - firstInput;
    slotBytes = std::max(slotBytes, range.place + range.bytes);
    // Between two inputs there may be bytes that only align the second.
    uint64_t end = inputRanges.empty() ? 0 : inputRanges.back().offset + inputRanges.back().bytes;
    if (!inputRanges.empty() && range.offset < end + 256)
      inputRanges.back().bytes = range.offset + range.bytes - inputRanges.back().offset;
    else
      inputRanges.push_back(range);
  }
  if (slotBytes > block->stagedBytes())
    throw Error(fmt::format("this program's tables are damaged: its inputs take {} bytes and a "
                            "slot has {}; compile the model again",
                            slotBytes, block->stagedBytes()));
  inputs.emplace(device, slotBytes * DESCENT_INPUT_SLOTS, "batches on their way");
}

void DeviceBackend::beginInputs() {
  if (!begun) {
    slot = (slot + 1) % DESCENT_INPUT_SLOTS;
    slots[static_cast<size_t>(slot)].copied.wait();
    begun = true;
  }
  if (pending() == 0) {
    pauseEnd.record(executor->compute);
    paused = true;
  }
}

uint8_t *DeviceBackend::input(const descent_tensor &tensor) {
  return inputs->data() + static_cast<uint64_t>(slot) * slotBytes + (tensor.offset - firstInput);
}

/// Takes the inputs that were begun to their places, in front of what comes on the compute stream.
void DeviceBackend::stage() {
  if (!begun)
    return;
  begun = false;
  Slot &current = slots[static_cast<size_t>(slot)];
  CUstream compute = executor->compute;
  CUdeviceptr staged = block->staging(slot);
  const char *doing = "copying a batch to the device";
  current.consumed.orderBefore(copyIn);
  device.check(
      device.driver().cuMemcpyHtoDAsync(
          staged, inputs->data() + static_cast<uint64_t>(slot) * slotBytes, slotBytes, copyIn),
      "cuMemcpyHtoDAsync", doing);
  current.copied.record(copyIn);
  current.copied.orderBefore(compute);
  for (const Range &range : inputRanges)
    device.check(device.driver().cuMemcpyDtoDAsync(block->arena(range.offset), staged + range.place,
                                                   range.bytes, compute),
                 "cuMemcpyDtoDAsync", doing);
  current.consumed.record(compute);
}

//===----------------------------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------------------------===//

void DeviceBackend::run(const descent_function &function) {
  stage();
  executor->enqueue(function, observer);
  waitFor(executor->compute);
  executor->collectTimes();
}

void DeviceBackend::watch(std::vector<Watched> places) {
  std::vector<size_t> order(places.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return places[a].offset < places[b].offset; });
  std::vector<uint64_t> placeOf(places.size());
  for (size_t index : order) {
    auto [offset, bytes] = places[index];
    if (!watched.empty() && offset <= watched.back().offset + watched.back().bytes + nearby) {
      Range &last = watched.back();
      placeOf[index] = last.place + (offset - last.offset);
      last.bytes = std::max(last.bytes, offset + bytes - last.offset);
    } else {
      uint64_t place =
          watched.empty() ? 0 : (watched.back().place + watched.back().bytes + 63) / 64 * 64;
      placeOf[index] = place;
      watched.push_back({offset, bytes, place});
    }
  }
  entryBytes = watched.empty() ? 0 : (watched.back().place + watched.back().bytes + 63) / 64 * 64;
  // One more than may be under way: the time of a step is measured from the end of the one before.
  size_t count = static_cast<size_t>(options.mostPending) + 1;
  ring.emplace(device, entryBytes * count, "reports of steps");
  for (size_t i = 0; i < count; ++i) {
    Entry entry{Event(device, /*timed=*/true), {}, false};
    for (uint64_t place : placeOf)
      entry.values.push_back(ring->data() + i * entryBytes + place);
    entries.push_back(std::move(entry));
  }
}

void DeviceBackend::submit(const descent_function &function) {
  if (pending() == 0 && !paused)
    pauseEnd.record(executor->compute);
  size_t index = static_cast<size_t>(submitted) % entries.size();
  Entry &entry = entries[index];
  entry.afterPause = pending() == 0;
  paused = false;
  stage();
  executor->enqueue(function, observer);
  for (const Range &range : watched)
    device.check(device.driver().cuMemcpyDtoHAsync(ring->data() + index * entryBytes + range.place,
                                                   block->arena(range.offset), range.bytes,
                                                   executor->compute),
                 "cuMemcpyDtoHAsync", "reading what a step reports");
  entry.done.record(executor->compute);
  ++submitted;
}

bool DeviceBackend::arrived() {
  return pending() > 0 && entries[static_cast<size_t>(reported) % entries.size()].done.finished();
}

Backend::Report DeviceBackend::report() {
  size_t count = entries.size(), index = static_cast<size_t>(reported) % count;
  Entry &entry = entries[index];
  entry.done.wait();
  const Event &since = entry.afterPause ? pauseEnd : entries[(index + count - 1) % count].done;
  double milliseconds = entry.done.millisecondsSince(since);
  ++reported;
  executor->collectTimes();
  return {entry.values.data(), milliseconds};
}
