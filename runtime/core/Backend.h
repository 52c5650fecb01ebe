//===- Backend.h - Where a program's memory lies and who runs its functions -----------------===//
//
// The trainer knows the arena by offsets and nothing else. Memory of the host is read and written
// in place; memory of a device goes through a window of the host's, piece by piece. `run` returns
// when the function has finished. Steps may also be submitted one after the other without waiting:
// what a step leaves to be reported (its loss, say) arrives later and in order.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_BACKEND_H
#define DESCENT_RUNTIME_CORE_BACKEND_H

#include "descent/abi.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace descent {

/// Sees every launch of a function. Must not throw where the host runs it, since compiled code
/// stands between the observer and whoever would catch.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// Before and after the launch of `site`; `offsets` are those of its operands in the arena,
  /// inputs first.
  virtual void before(const descent_site &site, const uint64_t *offsets) = 0;
  virtual void after(const descent_site &site, const uint64_t *offsets) = 0;
};

/// Calls of one kernel so far and the time they took.
struct KernelTime {
  uint64_t calls = 0;
  uint64_t nanoseconds = 0;
};

/// A few bytes of the arena that are reported after each step.
struct Watched {
  uint64_t offset, bytes;
};

class Backend {
public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend &) = delete;
  Backend &operator=(const Backend &) = delete;

  /// "2 threads", "NVIDIA H200 (cuda:sm_90)": where steps run, for people.
  virtual std::string place() const = 0;
  /// What the user should know about how the program is run, once.
  virtual std::span<const std::string> notes() const { return {}; }

  // Memory.

  /// The arena where the host may work in it, null where it is a device's.
  virtual uint8_t *arena() const { return nullptr; }
  /// Copies between the arena and the host. Functions that were started before have finished.
  virtual void read(uint64_t offset, void *to, uint64_t bytes) = 0;
  virtual void write(uint64_t offset, const void *from, uint64_t bytes) = 0;

  /// Calls consume(data, bytes) for the bytes at `offset`, in order: once and in place where they
  /// are the host's. Allocates nothing.
  template <typename Consume> void consume(uint64_t offset, uint64_t bytes, Consume consume) {
    if (const uint8_t *data = arena())
      return consume(data + offset, bytes);
    std::span<uint8_t> pieces = window();
    for (uint64_t done = 0; done < bytes;) {
      uint64_t part = std::min<uint64_t>(bytes - done, pieces.size());
      read(offset + done, pieces.data(), part);
      consume(pieces.data(), part);
      done += part;
    }
  }

  /// The other direction: produce(data, first, bytes) writes bytes [first, first + bytes) of what
  /// is to lie at `offset`. Pieces begin at multiples of 4096.
  template <typename Produce> void produce(uint64_t offset, uint64_t bytes, Produce produce) {
    if (uint8_t *data = arena())
      return produce(data + offset, uint64_t(0), bytes);
    std::span<uint8_t> pieces = window();
    for (uint64_t done = 0; done < bytes;) {
      uint64_t part = std::min<uint64_t>(bytes - done, pieces.size());
      produce(pieces.data(), done, part);
      write(offset + done, pieces.data(), part);
      done += part;
    }
  }

  // Inputs.

  /// Makes room for the inputs of the next `run` or `submit`, which takes them over. One without it
  /// works on the inputs of the one before.
  virtual void beginInputs() = 0;
  /// Where the host writes that input; valid until the next beginInputs.
  virtual uint8_t *input(const descent_tensor &tensor) = 0;

  // Functions.

  virtual void run(const descent_function &function) = 0;

  /// What is to be reported after each submitted function. Set once.
  virtual void watch(std::vector<Watched> places) = 0;
  /// Starts a function whose report will arrive.
  virtual void submit(const descent_function &function) = 0;
  /// Submitted functions whose reports were not taken, and the most there may be.
  virtual int64_t pending() const = 0;
  virtual int64_t mostPending() const { return 1; }
  /// Whether the oldest of them has finished.
  virtual bool arrived() = 0;
  struct Report {
    const uint8_t *const *values; ///< of the watched places; valid until the next submit
    /// Since the one before was complete; after a pause, since its inputs were begun.
    double milliseconds;
  };
  /// Takes the oldest report, and waits for it where it has not arrived.
  virtual Report report() = 0;

  // Looking closer.

  /// Null but for the functions that somebody wants to look into. Where a device runs them, they
  /// run launch by launch.
  LaunchObserver *observer = nullptr;
  /// One entry a kernel when profiling, else empty.
  virtual std::span<const KernelTime> times() const = 0;

protected:
  /// Memory of the host through which others move data; a multiple of 4096 bytes.
  virtual std::span<uint8_t> window() { return {}; }
};

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_BACKEND_H
