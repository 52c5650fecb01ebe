//===- Launch.cpp - Kernels on threads ------------------------------------------------------===//
//
// A function of the program runs in one parallel region of libgomp: the first thread runs the
// function, the others follow its launches (Team.cpp). A region for each kernel would cost a
// barrier for each kernel, at which everybody waits for a thread that lost its core.
//
// The region has the same size every time: libgomp ends the threads that a smaller one leaves out
// and must create them again for the next, and it allocates when the size changes.
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

/// Calls `body` on this thread while the others of the context's team follow its launches.
template <typename Body> static void inSession(descent_context &context, Body body) {
  if (context.threads == 1 || context.inSession)
    return body();
#pragma omp parallel num_threads(context.threads)
  {
    // The runtime may grant fewer threads than asked for.
#pragma omp master
    {
      context.team.begin(omp_get_num_threads());
      context.inSession = true;
    }
#pragma omp barrier
    if (omp_get_thread_num() != 0) {
      context.team.follow(omp_get_thread_num());
    } else {
      body();
      context.team.end();
      context.inSession = false;
    }
  }
}

void descent::runFunction(descent_context &context, const descent_function &function) {
  inSession(context, [&] { function.run(&context, context.arena.data()); });
}

/// Whether handing the kernel to other threads takes longer than what they could save: a few
/// microseconds.
static bool isTiny(const descent_kernel &kernel) {
  return kernel.tasks == 1 || (kernel.bytes > 0 && kernel.bytes < 32e3 && kernel.flops < 1e5);
}

static void runTasks(descent_context &context, const descent_kernel &kernel, void *const *buffers) {
  if (context.threads == 1 || isTiny(kernel))
    kernel.function(buffers, 0, kernel.tasks, context.arena.scratch(0));
  else
    inSession(context, [&] { context.team.launch(kernel, buffers); });
}

static void runTimed(descent_context &context, const descent_kernel &kernel, void *const *buffers) {
  auto start = std::chrono::steady_clock::now();
  runTasks(context, kernel, buffers);
  auto end = std::chrono::steady_clock::now();
  KernelTime &time = context.times[&kernel - context.program.kernels];
  ++time.calls;
  time.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}

static void runKernel(descent_context &context, const descent_kernel &kernel,
                      void *const *buffers) {
  if (context.times.empty())
    runTasks(context, kernel, buffers);
  else
    runTimed(context, kernel, buffers);
}

static void runObserved(descent_context &context, const descent_site &site, void *const *buffers) {
  std::vector<uint64_t> offsets(site.kernel->operand_count);
  for (size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = static_cast<const uint8_t *>(buffers[i]) - context.arena.data();
  context.observer->before(site, offsets.data());
  runKernel(context, *site.kernel, buffers);
  context.observer->after(site, offsets.data());
}

extern "C" void descent_launch(descent_context *context, const descent_site *site,
                               void *const *buffers) {
  if (context->observer)
    runObserved(*context, *site, buffers);
  else
    runKernel(*context, *site->kernel, buffers);
}
