//===- Context.h - What compiled code is called with ----------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_CONTEXT_H
#define DESCENT_RUNTIME_CORE_CONTEXT_H

#include "runtime/core/Arena.h"
#include "runtime/core/Team.h"

#include <cstdint>
#include <vector>

namespace descent {

/// Sees every launch of a function. Called on the thread that runs the function, while the others
/// wait; it must not throw, since compiled code stands between it and whoever would catch.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// Before and after the launch of `site`; `buffers` are its operands, inputs first.
  virtual void before(const descent_site &site, void *const *buffers) = 0;
  virtual void after(const descent_site &site, void *const *buffers) = 0;
};

} // namespace descent

/// Opaque to compiled code, which hands it on to `descent_launch`.
struct descent_context {
  /// Calls of one kernel so far and the time they took.
  struct KernelTime {
    uint64_t calls = 0;
    uint64_t nanoseconds = 0;
  };

  descent_context(const descent_program &program, const descent::Arena &arena, int threads,
                  bool profile)
      : program(program), arena(arena), threads(threads), team(arena, threads),
        times(profile ? program.kernel_count : 0) {}

  const descent_program &program;
  const descent::Arena &arena;
  const int threads;
  descent::Team team;
  /// The team's threads are waiting for kernels.
  bool inSession = false;
  /// One entry a kernel when profiling, else empty.
  std::vector<KernelTime> times;
  /// Null but for the steps that somebody wants to look into.
  descent::LaunchObserver *observer = nullptr;
};

namespace descent {

/// Threads to use when nobody says: what OMP_NUM_THREADS or the CPUs this process may run on give.
int defaultThreads();

/// Calls a function of the program with the context's threads at hand.
void runFunction(descent_context &context, const descent_function &function);

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_CONTEXT_H
