//===- Launch.cpp - Kernels on threads ------------------------------------------------------===//
//
// Tasks are cut into one contiguous range a thread: ranges are fixed, so each thread meets the same
// rows in consecutive kernels and finds them in its own cache. Which thread runs a task never
// changes its bits, by the contract of a kernel function.
//
// The team has the same size in every launch, even when there are fewer tasks than threads: libgomp
// ends the threads that a smaller team leaves out and must create them again for the next one, and
// it allocates when the size changes.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Context.h"

#include <omp.h>

#include <algorithm>
#include <chrono>

using namespace descent;

int descent::defaultThreads() {
  return std::max(1, std::min(omp_get_max_threads(), omp_get_thread_limit()));
}

static void runTasks(descent_context *context, const descent_kernel *kernel, void *const *buffers) {
  const int64_t tasks = kernel->tasks;
  if (tasks == 1 || context->threads == 1) {
    kernel->function(buffers, 0, tasks, context->arena.scratch(0));
    return;
  }
  // The task count is at most 2^31 times a thread count well below 2^31, so the products cannot
  // overflow.
#pragma omp parallel num_threads(context->threads)
  {
    // The runtime may grant fewer threads than asked for; the split follows what it granted.
    const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t first = tasks * thread / team, last = tasks * (thread + 1) / team;
    if (first < last)
      kernel->function(buffers, first, last, context->arena.scratch(static_cast<int>(thread)));
  }
}

extern "C" void descent_launch(descent_context *context, const descent_kernel *kernel,
                               void *const *buffers) {
  if (context->times.empty()) {
    runTasks(context, kernel, buffers);
    return;
  }
  auto start = std::chrono::steady_clock::now();
  runTasks(context, kernel, buffers);
  auto end = std::chrono::steady_clock::now();
  descent_context::KernelTime &time = context->times[kernel - context->program.kernels];
  ++time.calls;
  time.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}
