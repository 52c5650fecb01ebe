//===- Progress.h - What a run shows while it trains ----------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_PROGRESS_H
#define DESCENT_RUNTIME_TRAINER_PROGRESS_H

#include "runtime/trainer/Metrics.h"

#include <chrono>
#include <cstdint>

namespace descent {

/// Lines with loss, rate and time to go on standard output: one every `logEvery` steps (none for
/// 0), and on a terminal a line that moves in between. Allocates nothing, and does not mind when
/// nobody reads.
class Progress {
public:
  Progress(int64_t firstStep, int64_t totalSteps, int64_t logEvery);

  void show(const StepMetrics &metrics);
  /// Ends the moving line, so that other output starts on its own.
  void endLine();

private:
  using Clock = std::chrono::steady_clock;

  int64_t totalSteps, logEvery, shown = 0;
  bool terminal, lineOpen = false;
  Clock::time_point last, lastDrawn;
  double secondsPerStep = 0, weight = 0; // Exponential mean and its normalisation.
};

/// "42 s", "3 min 05 s", "2 h 07 min".
struct DurationText {
  char text[32];
};
DurationText formatDuration(double seconds);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_PROGRESS_H
