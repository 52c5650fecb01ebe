//===- Team.h - Threads that share the tasks of kernels -------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_TEAM_H
#define DESCENT_RUNTIME_CORE_TEAM_H

#include "descent/abi.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace descent {

class Arena;

/// The threads of one step. The leader hands out kernels with `launch`; every other thread spends
/// the step in `follow`. Nothing is allocated after construction.
class Team {
public:
  Team(const Arena &arena, int threads);

  /// Starts a session of `granted` threads, at most as many as the team was made for.
  void begin(int granted);
  /// Runs all tasks; returns when the last has finished. For the leader, within a session.
  void launch(const descent_kernel &kernel, void *const *buffers);
  /// Lets the followers go.
  void end();
  /// Takes part until `end`. For threads 1 to granted - 1 of the session.
  void follow(int thread);

private:
  static constexpr unsigned line = 64;
  /// The tasks of one thread that nobody has taken: first in the low half, last in the high one.
  struct alignas(line) Share {
    std::atomic<uint64_t> tasks{0};
  };

  void work(int thread);
  void runTasks(int thread, int64_t first, int64_t last);

  const Arena &arena;
  const std::unique_ptr<Share[]> shares;
  int members = 1;
  // Valid while tasks of a launch are taken and not finished; read only after taking one.
  const descent_kernel *kernel = nullptr;
  void *const *buffers = nullptr;
  std::atomic<bool> finished{false};
  alignas(line) std::atomic<uint32_t> launches{0};
  alignas(line) std::atomic<uint32_t> unfinished{0};
};

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_TEAM_H
