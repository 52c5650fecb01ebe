//===- DeviceBackend.h - A program in the memory of a CUDA device ---------------------------===//
//
// What a step needs and leaves moves beside the computation. Inputs: the host fills a pinned slot,
// the copy-in stream brings it to a slot on the device, and the compute stream takes it to its
// place before the step; there are two slots of each, so that the host fills the next batch, and
// the copy engine brings it, while a step runs. Reports: behind each step, a few numbers are copied
// to the next entry of a ring in pinned memory. Nobody waits for the device but for memory that it
// has not finished with: a slot of two steps ago, or a report when as many steps as are allowed
// are under way.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CUDA_DEVICEBACKEND_H
#define DESCENT_RUNTIME_CUDA_DEVICEBACKEND_H

#include "runtime/core/Backend.h"
#include "runtime/cuda/Executor.h"

#include <optional>

namespace descent::cuda {

struct DeviceOptions {
  int ordinal = 0;
  bool graph = true;
  std::string products; ///< file of their algorithms; empty: the default one
  bool profile = false;
  int64_t mostPending = 1; ///< steps under way before their reports are waited for
};

class DeviceBackend final : public Backend {
public:
  /// Throws Error.
  DeviceBackend(const descent_program &program, const DeviceOptions &options);
  ~DeviceBackend() override;

  std::string place() const override;
  std::span<const std::string> notes() const override {
    return products ? products->notes() : std::span<const std::string>();
  }
  void read(uint64_t offset, void *to, uint64_t bytes) override;
  void write(uint64_t offset, const void *from, uint64_t bytes) override;
  void beginInputs() override;
  uint8_t *input(const descent_tensor &tensor) override;
  void run(const descent_function &function) override;
  void watch(std::vector<Watched> places) override;
  void submit(const descent_function &function) override;
  int64_t pending() const override { return submitted - reported; }
  int64_t mostPending() const override { return options.mostPending; }
  bool arrived() override;
  Report report() override;
  std::span<const KernelTime> times() const override { return executor->times(); }

protected:
  std::span<uint8_t> window() override { return pieces.bytes(); }

private:
  struct Range {
    uint64_t offset, bytes; ///< in the arena
    uint64_t place;         ///< in a slot of inputs, or in an entry of the ring
  };
  /// A slot of inputs, on both sides.
  struct Slot {
    Event copied;   ///< to the device: the host may fill it again
    Event consumed; ///< from there to the arena: the next may be copied
  };
  struct Entry {
    Event done;
    std::vector<const uint8_t *> values;
    bool afterPause = false;
  };

  void chooseProducts();
  void findInputs();
  void stage();
  void waitFor(CUstream stream);

  const descent_program &program;
  const DeviceOptions options;
  // They go in the reverse order: graphs and streams, the library, memory, the context.
  Device device;
  std::optional<DeviceBlock> block;
  std::optional<Products> products;
  std::optional<Executor> executor;
  Stream copyIn;
  Event finished; ///< what a call waits for
  PinnedMemory pieces, bounce;
  std::optional<PinnedMemory> inputs;
  std::vector<Slot> slots;
  std::vector<Range> inputRanges;
  uint64_t firstInput = 0, slotBytes = 0;
  int slot = 0;
  bool begun = false; ///< inputs were begun and no function has taken them
  std::vector<Range> watched;
  std::optional<PinnedMemory> ring;
  std::vector<Entry> entries;
  uint64_t entryBytes = 0;
  Event pauseEnd; ///< when the first inputs behind a pause were begun
  bool paused = true;
  int64_t submitted = 0, reported = 0;
};

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_DEVICEBACKEND_H
