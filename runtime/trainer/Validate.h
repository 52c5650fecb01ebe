//===- Validate.h - Loss and accuracy on data that is not trained on ------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_VALIDATE_H
#define DESCENT_RUNTIME_TRAINER_VALIDATE_H

#include "runtime/trainer/Batches.h"
#include "runtime/trainer/Metrics.h"

#include <optional>

namespace descent {

class Model;

class Validator {
public:
  Validator(Model &model, const data::Dataset &dataset, const std::string &path);

  /// One pass over the data: sums of loss and weight over all batches, divided once. Nothing if a
  /// signal asked to stop.
  std::optional<Validation> run();

private:
  template <typename Integer> void count(int rows);

  Model &model;
  Batches batches;
  // Where targets are class indices of the predictions' last axis, else null.
  const descent_input *target = nullptr;
  const descent_tensor *predictions = nullptr;
  int64_t perRow = 0, classes = 0;
  int64_t counted = 0, correct = 0;
};

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_VALIDATE_H
