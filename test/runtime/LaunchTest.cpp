//===- LaunchTest.cpp - Arena and launches --------------------------------------------------===//
#include "runtime/core/Arena.h"
#include "runtime/core/Context.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

using namespace descent;

TEST(Arena, IsZeroAlignedAndHasScratchForEachThread) {
  descent_memory memory = {};
  memory.arena = 1000;
  memory.thread_scratch = 100;
  Arena arena(memory, 3);
  EXPECT_EQ(arena.size(), 1024u + 3 * 128u);
  for (int thread = 0; thread < 3; ++thread) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.scratch(thread)) % 64, 0u);
    EXPECT_GE(arena.scratch(thread), arena.data() + memory.arena);
  }
  EXPECT_EQ(arena.scratch(1) - arena.scratch(0), 128);
  for (uint64_t i = 0; i < arena.size(); ++i)
    ASSERT_EQ(arena.data()[i], 0);
  std::memset(arena.data(), 1, arena.size());
}

TEST(Arena, LargeBlocksStartAtAHugePage) {
  descent_memory memory = {};
  memory.arena = 8 << 20;
  Arena arena(memory, 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % (2 << 20), 0u);
}

TEST(Arena, SaysWhatWasAskedWhatIsThereAndWhatWouldHelp) {
  descent_memory memory = {};
  memory.arena = uint64_t(1) << 50;
  memory.activations = memory.arena;
  memory.thread_scratch = 1 << 20;
  try {
    Arena arena(memory, 2);
    FAIL() << "a pebibyte was granted";
  } catch (const Error &error) {
    std::string text = error.what();
    for (const char *part :
         {"1024.00 TiB", "are available", "batch.size", "fewer --threads save 1.00 MiB each"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Arena, FormatsBytes) {
  EXPECT_STREQ(formatBytes(0).text, "0 B");
  EXPECT_STREQ(formatBytes(1023).text, "1023 B");
  EXPECT_STREQ(formatBytes(3 << 19).text, "1.50 MiB");
}

namespace {

constexpr int64_t manyTasks = 1001;

/// Counts visits of a task and sums in an order of its own; scratch holds a partial sum.
void work(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  auto *visits = static_cast<std::atomic<int> *>(buffers[0]);
  float *sums = static_cast<float *>(buffers[1]);
  for (int64_t task = first; task < last; ++task) {
    ++visits[task];
    float *partial = static_cast<float *>(scratch);
    *partial = 0.0f;
    for (int i = 1; i <= 100; ++i)
      *partial += 1.0f / static_cast<float>(task + i);
    sums[task] = *partial;
  }
}

std::vector<float> launchWith(int threads, int64_t tasks, bool profile, uint64_t *calls = nullptr) {
  static const descent_operand operands[2] = {};
  descent_kernel kernel = {"work", "", work, tasks, 4, 0, 0, operands, 2, 1};
  static const char *const outputs[] = {"sums"};
  descent_site site = {&kernel, "", outputs};
  descent_program program = {};
  program.kernels = &kernel;
  program.kernel_count = 1;
  program.memory.thread_scratch = 4;
  Arena arena(program.memory, threads);
  descent_context context(program, arena, threads, profile);
  std::vector<std::atomic<int>> visits(tasks);
  std::vector<float> sums(tasks);
  void *buffers[] = {visits.data(), sums.data()};
  descent_launch(&context, &site, buffers);
  for (auto &count : visits)
    EXPECT_EQ(count, 1);
  if (calls)
    *calls = context.times[0].calls;
  return sums;
}

} // namespace

TEST(Launch, RunsEachTaskOnceWithTheSameBitsForAnyNumberOfThreads) {
  std::vector<float> one = launchWith(1, manyTasks, false);
  for (int threads : {2, 3, 7})
    EXPECT_EQ(launchWith(threads, manyTasks, false), one) << threads << " threads";
}

TEST(Launch, RunsFewerTasksThanThreads) {
  for (int64_t tasks : {1, 2, 3})
    EXPECT_EQ(launchWith(7, tasks, false), launchWith(1, tasks, false));
}

TEST(Launch, CountsCallsWhenProfiling) {
  uint64_t calls = 0;
  launchWith(3, 5, true, &calls);
  EXPECT_EQ(calls, 1u);
}

namespace {

/// A function of many launches: task t of kernel k adds k to element t, after checking that all
/// kernels before were finished. Lengths vary, so that threads steal and wake up late.
constexpr int64_t functionKernels = 500, functionTasks = 37;

void addOne(void *const *buffers, int64_t first, int64_t last, void *scratch) {
  auto *counts = static_cast<int64_t *>(buffers[0]);
  auto *failures = static_cast<std::atomic<int> *>(buffers[1]);
  const int64_t expected = *static_cast<int64_t *>(buffers[2]);
  auto *mine = static_cast<std::atomic<int64_t> *>(scratch);
  for (int64_t task = first; task < last; ++task) {
    *mine = task;
    if (__atomic_load_n(&counts[task], __ATOMIC_RELAXED) != expected ||
        __atomic_load_n(&counts[functionTasks - 1 - task], __ATOMIC_RELAXED) < expected)
      ++*failures;
    for (volatile int64_t i = 0; i < task * expected; i = i + 1)
      ;
    if (*mine != task)
      ++*failures;
    __atomic_fetch_add(&counts[task], 1, __ATOMIC_RELAXED);
  }
}

int64_t counts[functionTasks];
std::atomic<int> failures;
const descent_operand addOperands[3] = {};
const char *const addOutputs[] = {"counts"};
const descent_kernel addKernel = {"add", "", addOne, functionTasks, 8, 0, 0, addOperands, 3, 2};
const descent_site addSite = {&addKernel, "", addOutputs};

void runAdds(descent_context *context, uint8_t *) {
  for (int64_t kernel = 0; kernel < functionKernels; ++kernel) {
    void *buffers[] = {counts, &failures, &kernel};
    descent_launch(context, &addSite, buffers);
  }
}

} // namespace

TEST(Launch, FinishesEachKernelOfAFunctionBeforeTheNext) {
  descent_program program = {};
  program.memory.thread_scratch = 8;
  descent_function function = {};
  function.run = runAdds;
  for (int threads : {1, 2, 5}) {
    Arena arena(program.memory, threads);
    descent_context context(program, arena, threads, /*profile=*/false);
    for (int call = 0; call < 3; ++call) {
      std::memset(counts, 0, sizeof counts);
      runFunction(context, function);
      for (int64_t count : counts)
        ASSERT_EQ(count, functionKernels);
    }
  }
  EXPECT_EQ(failures, 0);
}
