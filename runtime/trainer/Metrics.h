//===- Metrics.h - DIR/metrics.jsonl --------------------------------------------------------===//
//
// One JSON object a step, on one line, written by one system call: a reader never sees half a line
// of a running process, and a killed one leaves none.
//
//   step               from 1
//   loss               mean over the counted targets of the step, before its update
//   lr, grad_norm      as the compiled step reports them
//   step_ms            filling the batch and the step, without validation and saving
//   tokens_per_second  for language data, else samples_per_second
//   loss_scale         that the step used, where the loss is scaled
//   skipped            number of steps of this run so far that changed nothing; only when there are
//                      any or the loss is scaled
//   validation_loss, validation_accuracy   in the objects of steps after which the model was
//                      validated
//
// Numbers that JSON lacks (NaN, inf) are null.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_METRICS_H
#define DESCENT_RUNTIME_TRAINER_METRICS_H

#include <cstdint>
#include <optional>
#include <string>

namespace descent {

struct Validation {
  double loss = 0;
  std::optional<double> accuracy; ///< where targets are class indices
};

struct StepMetrics {
  int64_t step = 0;
  float loss = 0, learningRate = 0, gradientNorm = 0;
  double stepMilliseconds = 0;
  double itemsPerSecond = 0;
  bool itemsAreTokens = false;
  std::optional<float> lossScale;
  int64_t skipped = 0;
  const Validation *validation = nullptr;
};

class MetricsFile {
public:
  /// Opens the file to go on after `step` steps: what it says about later steps is cut off, also
  /// half a line.
  MetricsFile(const std::string &path, int64_t step);
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  /// Appends one line. Allocates nothing; throws Error when the disk is full.
  void write(const StepMetrics &metrics);
  /// Makes the lines so far durable.
  void sync();

private:
  std::string path;
  int fd = -1;
};

/// Writes the line of a step, with its newline, to `out` and returns its length.
size_t formatMetrics(const StepMetrics &metrics, char *out, size_t size);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_METRICS_H
