//===- Executor.h - Functions of a program on the streams of a device -----------------------===//
//
// A function is a list of launches at fixed places, so all addresses and arguments are known when
// the program starts: running it enqueues them, one after the other, on the stream that the
// schedule gives each, with events where streams meet. That is done once, into a graph, which is
// launched from then on; or each time, launch by launch, where somebody looks into them or times
// them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CUDA_EXECUTOR_H
#define DESCENT_RUNTIME_CUDA_EXECUTOR_H

#include "runtime/core/Backend.h"
#include "runtime/cuda/DeviceMemory.h"
#include "runtime/cuda/Products.h"

#include <memory>
#include <string>
#include <vector>

namespace descent::cuda {

/// Streams and events, destroyed with their owner.
class Stream {
public:
  Stream(const Device &device, int priority);
  ~Stream();
  Stream(const Stream &) = delete;
  operator CUstream() const { return handle; }

private:
  const Device &device;
  CUstream handle = nullptr;
};

class Event {
public:
  Event(const Device &device, bool timed);
  Event(Event &&other) noexcept;
  ~Event();
  operator CUevent() const { return handle; }

  void record(CUstream stream);
  /// Whether all that was on the stream before the record has finished; true if nothing was ever
  /// recorded.
  bool finished() const;
  void wait() const;
  /// Lets what comes on the stream wait.
  void orderBefore(CUstream stream) const;
  double millisecondsSince(const Event &start) const;

private:
  const Device *device;
  CUevent handle = nullptr;
  bool recorded = false;
};

class Executor {
public:
  struct Options {
    bool graph = true;
    bool profile = false;
  };
  /// `products` may be null where the program has no products. Throws Error.
  Executor(const Device &device, const descent_program &program, const DeviceBlock &block,
           Products *products, const Options &options);
  ~Executor();
  Executor(const Executor &) = delete;

  /// Puts the function on the compute stream. With an observer the call returns when it has
  /// finished.
  void enqueue(const descent_function &function, LaunchObserver *observer);

  /// Adds what events of profiled functions say, which have finished.
  void collectTimes();
  std::span<const KernelTime> times() const { return kernelTimes; }

  // In the order of destruction reversed: what runs on streams goes before them.
  Stream compute, communication;

private:
  struct Command {
    const descent_command *source = nullptr;
    CUfunction function = nullptr;
    size_t product = 0; ///< number of Products
    CUdeviceptr fill = 0;
    std::vector<CUdeviceptr> addresses;
    std::vector<void *> arguments; ///< to `addresses`, and a null pointer
    std::vector<NamedRange> ranges;
    std::vector<std::string> rangeNames;
  };
  struct Launch {
    const descent_site *site;
    std::vector<Command> commands;
    bool usesWorkspace = false; ///< which holds nothing when the launch starts
  };
  struct Prepared {
    const descent_function *function;
    std::vector<Launch> launches;
    std::vector<Event> events;         ///< of the schedule
    std::vector<Event> before, after;  ///< of each launch, when profiling
    bool timed = false;                ///< and they were recorded since collectTimes
    std::vector<NamedRange> undefined; ///< what holds nothing when the function starts
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
  };

  void prepare(const descent_function &function);
  void prepareCommands(Launch &launch, const descent_command *commands, uint64_t count,
                       const std::vector<CUdeviceptr> &operands);
  void findUndefined(Prepared &prepared);
  void capture(Prepared &prepared);
  void enqueueAll(Prepared &prepared, LaunchObserver *observer);
  void run(const Launch &launch, CUstream stream);
  void run(const Launch &launch, const Command &command, CUstream stream);

  const Device &device;
  const descent_program &program;
  const DeviceBlock &block;
  Products *const products;
  const Options options;
  Event begin, end; ///< of the communication stream within a function
  std::vector<Prepared> functions;
  std::vector<KernelTime> kernelTimes;
};

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_EXECUTOR_H
