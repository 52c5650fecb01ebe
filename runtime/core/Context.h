//===- Context.h - What compiled code is called with ----------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_CONTEXT_H
#define DESCENT_RUNTIME_CORE_CONTEXT_H

#include "runtime/core/Arena.h"
#include "runtime/core/Backend.h"
#include "runtime/core/Team.h"

#include <cstdint>
#include <vector>

/// Opaque to compiled code, which hands it on to `descent_launch`.
struct descent_context {
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
  std::vector<descent::KernelTime> times;
  /// Null but for the functions that somebody wants to look into. Called on the thread that runs
  /// the function, while the others wait.
  descent::LaunchObserver *observer = nullptr;
};

namespace descent {

/// Threads to use when nobody says: what OMP_NUM_THREADS or the CPUs this process may run on give.
int defaultThreads();

/// Calls a function of the program with the context's threads at hand.
void runFunction(descent_context &context, const descent_function &function);

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_CONTEXT_H
