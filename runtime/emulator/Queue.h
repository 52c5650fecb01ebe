//===- Queue.h - Work that was enqueued and has not run -------------------------------------===//
//
// Calls of the driver make operations; when they run is decided here. An operation can run when
// those that it depends on have: the one before it in its stream, and those behind the events that
// the stream waited for. Among operations that can run the settings choose, and so does what the
// host waits for.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_QUEUE_H
#define DESCENT_RUNTIME_EMULATOR_QUEUE_H

#include "runtime/emulator/Driver.h"
#include "runtime/emulator/Ordering.h"

#include <chrono>
#include <memory>

namespace descent::emulator {

struct EmulatedDevice;
struct Operation;
struct EventObject;

/// Memory of the host that a copy reads or writes.
struct HostRange {
  char *address = nullptr;
  uint64_t bytes = 0;
  bool written = false;
};

/// What is wrong with an operation that runs: the device is of no use after it.
struct DeviceFault {
  cuda::CUresult result;
  std::string message;
};

/// An operation that is running: what it tells of its accesses.
class Execution {
public:
  Execution(EmulatedDevice &device, const Operation &operation)
      : device(device), operation(operation) {}

  /// The region of [address, address + bytes), whole and live. Throws DeviceFault.
  Region &find(cuda::CUdeviceptr address, uint64_t bytes, const char *what, bool write);
  /// Checks the order of an access against those of other streams. Throws DeviceFault.
  void touch(Region &region, uint64_t offset, uint64_t bytes, bool write);
  /// The same of one part of OrderShadow::unit bytes.
  void touchPart(Region &region, uint64_t part, bool write);

  EmulatedDevice &device;
  const Operation &operation;

private:
  OrderShadow *shadow = nullptr; ///< of `shadowed`
  const Region *shadowed = nullptr;
};

/// What an operation does; a node of a graph does it many times.
struct Task {
  std::string name; ///< for messages: "kernel 'sum'", "copy of 64 bytes to the device"
  EmulatedDevice *device = nullptr;
  std::vector<cuda::CUdeviceptr> uses;  ///< addresses in the allocations that it touches
  HostRange host;                       ///< pinned; none for most
  std::function<void(Execution &)> run; ///< empty: it marks a place only
  EventObject *records = nullptr, *waits = nullptr; ///< nodes of a graph for outside events
};

using OperationPtr = std::shared_ptr<Operation>;

struct Operation {
  std::shared_ptr<const Task> task;
  uint64_t number = 0; ///< in the order of enqueuing
  Stamp stamp;
  Clock clock;                      ///< what is ordered before it, and itself
  std::vector<OperationPtr> before; ///< not done yet
  std::vector<OperationPtr> after;
  uint64_t hostSum = 0; ///< of the memory that a copy reads, when it was enqueued
  bool done = false;
  uint64_t mark = 0;
  std::chrono::steady_clock::time_point finished;
};

class Queue {
public:
  /// Adds an operation whose clock and stamp are set and that depends on those of `before`.
  void add(const OperationPtr &operation, const std::vector<OperationPtr> &before);

  /// Runs what the operation depends on, and it.
  void finish(const OperationPtr &operation);
  void finishAll();
  /// Lets a little time pass: the host asked whether the operation is done, and will ask again.
  void poll(const OperationPtr &operation);

  /// The operations that did not run, in the order of enqueuing.
  const std::map<uint64_t, OperationPtr> &waiting() const { return pending; }

  /// Drops what did not run.
  void forget();

  DriverSettings::Kind order = DriverSettings::Late;
  uint64_t random = 1;

private:
  void run(const OperationPtr &operation);
  void complete(const OperationPtr &operation);
  OperationPtr choose(uint64_t mark);
  uint64_t chance();

  std::map<uint64_t, OperationPtr> pending; ///< by number
  std::vector<OperationPtr> ready;
  uint64_t count = 0, marks = 0;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_QUEUE_H
