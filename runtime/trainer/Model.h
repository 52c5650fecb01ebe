//===- Model.h - A compiled program with its memory -----------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_MODEL_H
#define DESCENT_RUNTIME_TRAINER_MODEL_H

#include "runtime/core/Backend.h"

#include "descent/abi.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace descent {

class SafetensorsReader;
struct SafetensorsTensor;

/// What a step reports.
struct StepResult {
  float lossSum, lossWeight, gradientNorm, learningRate;
  bool committed;
  /// What gradients in memory are to be multiplied with: not 1 where the loss is scaled.
  float unscale = 1.0f;
  /// The loss scale that the step used, where there is one.
  std::optional<float> lossScale = std::nullopt;
  /// The scale that it left to the next, where it changes, and the committed updates so far.
  std::optional<float> nextLossScale = std::nullopt;
  std::optional<int64_t> updates = std::nullopt;
  /// How long it took: see Backend::Report.
  double milliseconds = 0;
  /// Mean over counted targets. Not a number when nothing was counted.
  float loss() const { return lossSum / lossWeight; }
};

struct EvaluateResult {
  float lossSum, lossWeight;
};

/// The program's tables, with the memory and the threads or the device that run it. Checked
/// programs only (checkProgram).
class Model {
public:
  Model(const descent_program &program, std::unique_ptr<Backend> backend);
  /// On threads of the host.
  Model(const descent_program &program, int threads, bool profile);

  /// Gives every parameter and state its first value: a function of the seed and the parameter's
  /// name.
  void initialize(uint64_t seed);

  /// Sets the hidden input for random numbers, if there is one. `iteration` counts from 0.
  void setIteration(uint64_t seed, int64_t iteration);

  /// Computes the working copies, where the program keeps any, from the parameters. Due once after
  /// initialize, loadWeights or a checkpoint, before the first step or evaluate.
  void refresh();

  StepResult step();
  EvaluateResult evaluate();

  /// Starts a step without waiting for it; at most `backend.mostPending()` may be under way.
  void submit();
  /// The result of the oldest step under way.
  StepResult finish();

  /// Parameters from a weight file, converted where the file has another float type. Missing or
  /// reshaped ones make it throw Error with the whole list; other entries are ignored and named in
  /// `note`, apart from the optimizer state of a checkpoint, and so are conversions.
  void loadWeights(const SafetensorsReader &file, std::string &note);

  /// Writes the parameters, with `vocabulary` (may be empty) in the metadata.
  void exportWeights(const std::string &path, const std::string &vocabulary) const;

  /// Writes the gradients of the mean loss that the step with this result left.
  void exportGradients(const std::string &path, const StepResult &result) const;

  /// A tensor of the arena as a file is to hold it.
  SafetensorsTensor entry(std::string name, const descent_tensor &tensor, int32_t dtype,
                          uint64_t offset, uint64_t bytes) const;
  SafetensorsTensor entry(std::string name, const descent_tensor &tensor) const;

  /// One number of the arena.
  template <typename Number> Number get(const descent_tensor &tensor) const {
    Number value;
    backend.read(tensor.offset, &value, sizeof value);
    return value;
  }

  /// Addresses in the arena, where it is the host's.
  uint8_t *at(uint64_t offset) const { return backend.arena() + offset; }
  uint8_t *at(const descent_tensor &tensor) const { return at(tensor.offset); }

  const descent_program &program;
  const int64_t batch;
  const descent_function &stepFunction;

private:
  std::unique_ptr<Backend> owned;

public:
  Backend &backend;

private:
  const descent_function &evaluateFunction;
  const descent_function *refreshFunction; // Null without working copies.
  const descent_tensor &evaluateLossSum, &evaluateLossWeight;
  const descent_tensor *random = nullptr;
  // Whether a step's report has these; they follow those that every step has.
  bool hasUnscale = false, hasLossScale = false, hasNextScale = false, hasUpdates = false;
};

/// Bytes as hexadecimal digits and back; metadata must be text and a vocabulary is any bytes. Text
/// that is no such digits gives an empty string.
std::string hexadecimal(const std::string &bytes);
std::string fromHexadecimal(const std::string &text);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_MODEL_H
