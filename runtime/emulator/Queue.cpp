//===- Queue.cpp - Work that was enqueued and has not run -----------------------------------===//

#include "runtime/emulator/Queue.h"
#include "runtime/core/Error.h"
#include "runtime/emulator/DriverState.h"

#include <fmt/format.h>

#include <algorithm>

namespace descent::emulator {

/// Operations that may wait; more of them run, the oldest first, as a driver's queue fills up.
static constexpr size_t longestQueue = 4096;

uint64_t Queue::chance() { // xorshift
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  return random;
}

void Queue::add(const OperationPtr &operation, const std::vector<OperationPtr> &before) {
  operation->number = ++count;
  for (const OperationPtr &other : before)
    if (other && !other->done) {
      operation->before.push_back(other);
      other->after.push_back(operation);
    }
  pending[operation->number] = operation;
  if (operation->before.empty())
    ready.push_back(operation);
  switch (order) {
  case DriverSettings::Eager:
    finish(operation);
    break;
  case DriverSettings::Late:
    break;
  case DriverSettings::Shuffled:
    while (!ready.empty() && chance() % 2)
      run(ready[chance() % ready.size()]);
    break;
  }
  while (pending.size() > longestQueue)
    finish(pending.begin()->second);
}

OperationPtr Queue::choose(uint64_t mark) {
  if (order == DriverSettings::Shuffled)
    return ready[chance() % ready.size()];
  // Newest first: where the program forgot to order two, this is not the order it wrote them in.
  OperationPtr best;
  for (const OperationPtr &operation : ready)
    if (operation->mark == mark && (!best || operation->number > best->number))
      best = operation;
  return best;
}

void Queue::finish(const OperationPtr &operation) {
  if (!operation || operation->done)
    return;
  uint64_t mark = ++marks;
  std::vector<OperationPtr> stack{operation};
  operation->mark = mark;
  while (!stack.empty()) {
    OperationPtr next = stack.back();
    stack.pop_back();
    for (const OperationPtr &other : next->before)
      if (other->mark != mark) {
        other->mark = mark;
        stack.push_back(other);
      }
  }
  while (!operation->done)
    run(choose(mark));
}

void Queue::finishAll() {
  while (!pending.empty())
    finish(pending.rbegin()->second);
}

void Queue::poll(const OperationPtr &operation) {
  if (!operation || operation->done)
    return;
  OperationPtr next = operation;
  while (!next->before.empty())
    next = next->before.back();
  run(next);
}

static void fail(const Operation &operation, cuda::CUresult result, const std::string &message) {
  operation.task->device->error = result;
  state().report(fmt::format("{}\n  the operation: {} on {}", message, operation.task->name,
                             state().timelineText(operation.stamp.timeline)));
}

void Queue::run(const OperationPtr &chosen) {
  OperationPtr operation = chosen; // the argument may lie in `ready`
  ready.erase(std::find(ready.begin(), ready.end(), operation));
  const Task &task = *operation->task;
  if (task.run && task.device->error == cuda::CUDA_SUCCESS) {
    try {
      Execution execution(*task.device, *operation);
      task.run(execution);
    } catch (const DeviceFault &fault) {
      fail(*operation, fault.result, fault.message);
    } catch (const Error &error) {
      fail(*operation, cuda::CUDA_ERROR_UNKNOWN, error.what());
    }
  }
  complete(operation);
}

void Queue::complete(const OperationPtr &operation) {
  operation->done = true;
  operation->finished = std::chrono::steady_clock::now();
  for (const OperationPtr &next : operation->after) {
    auto &before = next->before;
    before.erase(std::find(before.begin(), before.end(), operation));
    if (before.empty())
      ready.push_back(next);
  }
  operation->after.clear();
  pending.erase(operation->number);
}

void Queue::forget() {
  for (auto &[number, operation] : pending) { // they hold each other
    operation->before.clear();
    operation->after.clear();
  }
  pending.clear();
  ready.clear();
}

//===----------------------------------------------------------------------------------------===//
// A running operation
//===----------------------------------------------------------------------------------------===//

Region &Execution::find(cuda::CUdeviceptr address, uint64_t bytes, const char *what, bool write) {
  const char *verb = write ? "writes" : "reads";
  Region *region = device.engine.memory.find(address);
  if (!isDeviceAddress(address))
    throw DeviceFault{
        cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
        fmt::format("{} {} 0x{:x}, which is no address of the device", what, verb, address)};
  if (region && !region->live)
    throw DeviceFault{cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
                      fmt::format("{} {} {}, which was freed; free memory when the last work that "
                                  "uses it is done",
                                  what, verb, region->name)};
  if (!region || !region->holds(address, bytes))
    throw DeviceFault{
        cuda::CUDA_ERROR_ILLEGAL_ADDRESS,
        fmt::format("{} {} {} bytes at 0x{:x}; the first is {}, the last {}", what, verb, bytes,
                    address, device.engine.memory.describe(address),
                    device.engine.memory.describe(address + (bytes ? bytes - 1 : 0)))};
  return *region;
}

void Execution::touchPart(Region &region, uint64_t part, bool write) {
  if (shadowed != &region) {
    shadowed = &region;
    shadow = &device.shadows[region.address];
  }
  auto conflict = shadow->touch(part, write, operation.stamp, operation.clock);
  if (!conflict)
    return;
  const char *mine = write ? "writes" : "reads", *theirs = conflict->otherWrote ? "wrote" : "read";
  uint64_t first = part * OrderShadow::unit;
  throw DeviceFault{
      cuda::CUDA_ERROR_LAUNCH_FAILED,
      fmt::format("unordered access: two streams touch the same memory and nothing orders them\n"
                  "  bytes {} to {} of {} ({} bytes)\n  {} on {} {} them\n  {} on {} {} them\n"
                  "  cure: record an event behind the one that must come first (cuEventRecord) and "
                  "let the other's stream wait for it (cuStreamWaitEvent)",
                  first, std::min(first + OrderShadow::unit, region.bytes) - 1, region.name,
                  region.bytes, operation.task->name,
                  state().timelineText(operation.stamp.timeline), mine,
                  state().names.text(conflict->other.name),
                  state().timelineText(conflict->other.timeline), theirs)};
}

void Execution::touch(Region &region, uint64_t offset, uint64_t bytes, bool write) {
  if (!state().settings.ordering || !bytes)
    return;
  for (uint64_t part = offset / OrderShadow::unit; part <= (offset + bytes - 1) / OrderShadow::unit;
       ++part)
    touchPart(region, part, write);
}

//===----------------------------------------------------------------------------------------===//
// Work of a library
//===----------------------------------------------------------------------------------------===//

const char *Work::read(cuda::CUdeviceptr address, uint64_t bytes, const char *what) {
  Region &region = execution.find(address, bytes, what, false);
  uint64_t offset = address - region.address;
  execution.touch(region, offset, bytes, false);
  if (execution.device.engine.options.enabled(Check::Uninitialised))
    if (int64_t missing = region.firstUnwritten(offset, bytes); missing >= 0)
      throw DeviceFault{cuda::CUDA_ERROR_LAUNCH_FAILED,
                        fmt::format("{} was not initialised: byte {} of its {} was never written, "
                                    "byte {} of {}",
                                    what, missing - static_cast<int64_t>(offset), bytes, missing,
                                    region.name)};
  region.poison(offset, bytes);
  return region.host(address);
}

char *Work::write(cuda::CUdeviceptr address, uint64_t bytes, const char *what) {
  Region &region = execution.find(address, bytes, what, true);
  execution.touch(region, address - region.address, bytes, true);
  region.markWritten(address - region.address, bytes);
  return region.host(address);
}

char *Work::update(cuda::CUdeviceptr address, uint64_t bytes, const char *what) {
  read(address, bytes, what);
  return write(address, bytes, what);
}

} // namespace descent::emulator
