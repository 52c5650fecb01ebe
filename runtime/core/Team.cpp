//===- Team.cpp - Threads that share the tasks of kernels -----------------------------------===//
//
// Each thread owns a fixed contiguous share of a kernel's tasks, so that it meets the same rows in
// consecutive kernels and finds them in its own cache. It takes its share in two pieces; who has
// none left takes from the ends of the others'. A thread that another program keeps from its core
// therefore delays a kernel by the piece it holds, and one that has not even woken up by nothing:
// the rest of the team does its work. A barrier between fixed ranges would wait for it, and a step
// has hundreds of kernels. Pieces are large since each costs a product the packing of its operands.
//
// Which thread runs a task never changes its bits, by the contract of a kernel function.
//
// A follower may wake up late, when its launch is over and the next is under way. It looks at the
// kernel only after it has taken tasks: as long as these are not finished, neither is the launch
// that they belong to.
//
// Threads that wait spin for about the length of a kernel and then sleep: shorter, and followers
// would pay a system call in the short sequential parts of a step; longer, and they would take
// time slices from whoever else has work for the machine.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Team.h"

#include "runtime/core/Arena.h"

#include <algorithm>
#include <chrono>

#include <sched.h>

using namespace descent;

static void relax() { __builtin_ia32_pause(); }

/// Returns when `done()`, or after about a tenth of a millisecond.
template <typename Done> static bool spin(Done done) {
  // Some 20 microseconds, depending on the processor's idea of a pause.
  for (int i = 0; i < 1000; ++i) {
    if (done())
      return true;
    relax();
  }
  // With more threads than cores, whoever is waited for may need this one.
  auto limit = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (std::chrono::steady_clock::now() < limit) {
    sched_yield();
    if (done())
      return true;
  }
  return false;
}

static uint64_t packed(uint64_t first, uint64_t last) { return last << 32 | first; }
static uint64_t firstOf(uint64_t tasks) { return tasks & UINT32_MAX; }
static uint64_t lastOf(uint64_t tasks) { return tasks >> 32; }

Team::Team(const Arena &arena, int threads) : arena(arena), shares(new Share[threads]) {}

void Team::begin(int granted) {
  members = granted;
  finished.store(false, std::memory_order_relaxed);
}

void Team::end() {
  finished.store(true, std::memory_order_relaxed);
  launches.fetch_add(1, std::memory_order_release);
  launches.notify_all();
}

void Team::runTasks(int thread, int64_t first, int64_t last) {
  kernel->function(buffers, first, last, arena.scratch(thread));
  auto count = static_cast<uint32_t>(last - first);
  if (unfinished.fetch_sub(count, std::memory_order_acq_rel) == count)
    unfinished.notify_one();
}

void Team::work(int thread) {
  std::atomic<uint64_t> &own = shares[thread].tasks;
  for (uint64_t tasks = own.load(std::memory_order_acquire);;) {
    uint64_t first = firstOf(tasks), last = lastOf(tasks);
    if (first == last)
      break;
    uint64_t middle = first + std::max<uint64_t>((last - first) / 2, 1);
    if (!own.compare_exchange_weak(tasks, packed(middle, last), std::memory_order_acq_rel))
      continue;
    runTasks(thread, first, middle);
    tasks = own.load(std::memory_order_acquire);
  }
  for (int i = 1; i < members; ++i) {
    std::atomic<uint64_t> &other = shares[(thread + i) % members].tasks;
    for (uint64_t tasks = other.load(std::memory_order_acquire);;) {
      uint64_t first = firstOf(tasks), last = lastOf(tasks);
      if (first == last)
        break;
      uint64_t middle = first + (last - first) / 2;
      if (!other.compare_exchange_weak(tasks, packed(first, middle), std::memory_order_acq_rel))
        continue;
      runTasks(thread, middle, last);
      tasks = other.load(std::memory_order_acquire);
    }
  }
}

void Team::launch(const descent_kernel &next, void *const *nextBuffers) {
  kernel = &next;
  buffers = nextBuffers;
  unfinished.store(static_cast<uint32_t>(next.tasks), std::memory_order_relaxed);
  for (int64_t thread = 0; thread < members; ++thread)
    shares[thread].tasks.store(
        packed(next.tasks * thread / members, next.tasks * (thread + 1) / members),
        std::memory_order_release);
  launches.fetch_add(1, std::memory_order_release);
  launches.notify_all();
  work(0);
  auto done = [&] { return unfinished.load(std::memory_order_acquire) == 0; };
  while (!spin(done))
    if (uint32_t left = unfinished.load(std::memory_order_acquire))
      unfinished.wait(left, std::memory_order_acquire);
}

void Team::follow(int thread) {
  // A session may begin before this thread does: the first look always finds something new.
  for (uint32_t seen = launches.load(std::memory_order_acquire) - 1;;) {
    auto changed = [&] { return launches.load(std::memory_order_acquire) != seen; };
    if (!spin(changed))
      launches.wait(seen, std::memory_order_acquire);
    seen = launches.load(std::memory_order_acquire);
    if (finished.load(std::memory_order_relaxed))
      return;
    work(thread);
  }
}
