//===- DriverState.h - What the emulated driver remembers -----------------------------------===//
//
// One object for the process, behind one lock. Handles of CUDA are addresses of the objects here;
// an object that was destroyed stays, marked so, and its handle is never given out again: that is
// how the use of a destroyed stream is told from that of garbage.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_DRIVERSTATE_H
#define DESCENT_RUNTIME_EMULATOR_DRIVERSTATE_H

#include "runtime/emulator/Queue.h"

#include <mutex>
#include <thread>
#include <unordered_map>

namespace descent::emulator {

struct ModuleObject;

/// One that is destroyed is not live. `number` counts from 1, for messages.
struct Object {
  bool live = true;
  int number = 0;
  EmulatedDevice *device = nullptr;
};

struct EmulatedDevice {
  explicit EmulatedDevice(int ordinal);

  int ordinal;
  Device engine;
  cuda::CUresult error = cuda::CUDA_SUCCESS; ///< sticky: nothing works after it
  int retained = 0;                          ///< references to the primary context
  unsigned flags = 0;
  uint64_t allocations = 0, peak = 0;
  std::map<uint64_t, uint64_t> allocated; ///< live ones that cuMemAlloc made: address to bytes
  std::unordered_map<uint64_t, OrderShadow> shadows; ///< by the address of the allocation
};

/// A graph's operations in the order of their capture, in which each follows what it depends on.
struct GraphNode {
  std::shared_ptr<const Task> task;
  std::vector<uint32_t> before;
  uint32_t lane = 0; ///< index of the stream that it was captured from
};

struct Capture;
struct StreamObject : Object {
  int priority = 0;
  uint16_t timeline = 0;
  uint32_t operations = 0; ///< number of the last one
  Clock clock;
  OperationPtr last;
  std::vector<OperationPtr> waits; ///< for events, since `last`
  std::shared_ptr<Capture> capture;
  std::vector<uint32_t> frontier; ///< of the capture: nodes that the next depends on
  uint32_t lane = 0;
};

struct EventObject : Object {
  unsigned flags = 0;
  OperationPtr recorded;          ///< null before the first record
  std::weak_ptr<Capture> capture; ///< that it was recorded in; then `recorded` means nothing
  bool captured = false;
  std::vector<uint32_t> frontier;
};

struct Capture {
  StreamObject *origin = nullptr;
  cuda::CUstreamCaptureMode mode = cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  std::vector<GraphNode> nodes;
  std::vector<StreamObject *> streams; ///< by lane
  bool invalid = false;
};

struct GraphObject : Object {
  std::vector<GraphNode> nodes;
  std::vector<std::string> lanes; ///< names of the streams
};

struct GraphExecObject : Object {
  std::vector<GraphNode> nodes;
  std::vector<uint16_t> timelines; ///< by lane
  std::vector<uint32_t> operations;
  OperationPtr last; ///< behind all of the last launch
  Clock clock;
};

struct FunctionObject {
  ModuleObject *module = nullptr;
  const descent_emulated_kernel *kernel = nullptr;
  uint64_t fixedShared = 0, dynamicLimit = 0;
};

struct ModuleObject : Object {
  const descent_emulated_module *code = nullptr;
  std::vector<uint64_t> addresses; ///< of the variables that are not shared
  std::map<std::string, std::unique_ptr<FunctionObject>> functions;
};

struct PinnedMemory {
  uint64_t bytes = 0;
  bool registered = false;
};

/// Thrown by a call that is refused, to return `result`; `message` says why and what to do.
struct Refusal {
  cuda::CUresult result;
  std::string message;
  bool quiet = false; ///< not to stderr: callers expect it and report it
};

struct State {
  explicit State(const DriverSettings &settings);

  std::recursive_mutex lock;
  DriverSettings settings;
  bool initialised = false;
  std::vector<std::unique_ptr<EmulatedDevice>> devices;
  std::vector<std::unique_ptr<StreamObject>> streams;
  std::vector<std::unique_ptr<EventObject>> events;
  std::vector<std::unique_ptr<ModuleObject>> modules;
  std::vector<std::unique_ptr<GraphObject>> graphs;
  std::vector<std::unique_ptr<GraphExecObject>> executables;
  std::map<uintptr_t, PinnedMemory> pinned;
  std::vector<std::weak_ptr<Capture>> captures;
  Names names;
  Clock host; ///< what the host has waited for
  std::string message;
  uint64_t launches = 0, pageableCopies = 0;
  Queue queue;

  /// To stderr and into `message`.
  void report(const std::string &text);
  uint16_t newTimeline(std::string name);
  const std::string &timelineText(uint16_t timeline) const { return timelines[timeline]; }
  /// "3 allocations of device 0 (...)": what was not given back; empty if all was.
  std::string leaks() const;

private:
  std::vector<std::string> timelines = {"the host"};
};

State &state();

/// The device of the calling thread's context. Throws Refusal.
EmulatedDevice &current();
EmulatedDevice &deviceOf(cuda::CUdevice device);

/// The object behind a handle. Throws Refusal if it is none, or was destroyed.
StreamObject &streamOf(cuda::CUstream stream);
EventObject &eventOf(cuda::CUevent event);
FunctionObject &functionOf(cuda::CUfunction function);

[[noreturn]] void refuse(cuda::CUresult result, std::string message);

/// Throws Refusal if a capture forbids such a call (and ends it), as CUDA does for what could wait
/// for the captured work.
void refuseInCapture(const char *call);

/// Puts a task behind what is on the stream, or into its graph.
OperationPtr submit(StreamObject &stream, std::shared_ptr<Task> task);
/// Lets the host wait for an operation: what is enqueued from here on is behind it.
void waitFor(const OperationPtr &operation);
/// Everything on the stream.
void drain(StreamObject &stream);
/// A sum over the memory that a copy will read.
uint64_t hostSum(const HostRange &range);
/// To be called when an operation is enqueued that copies from or to the host.
void prepareHost(Operation &operation);

/// Largest shared memory of a block that asked for it.
uint64_t optInShared();
void writeStatistics(const std::string &file);
/// The calling thread has no context any more.
void forgetContext();

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_DRIVERSTATE_H
