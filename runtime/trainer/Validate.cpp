//===- Validate.cpp - Loss and accuracy on data that is not trained on ----------------------===//
#include "runtime/trainer/Validate.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Model.h"
#include "runtime/trainer/Signals.h"

#include <algorithm>

using namespace descent;

Validator::Validator(Model &model, const data::Dataset &dataset, const std::string &path)
    : model(model), batches(model, dataset, path, /*seed=*/0, /*shuffle=*/false) {
  const descent_program &program = model.program;
  const descent_tensor *output = findOutput(findFunction(program, "evaluate"), "predictions");
  const descent_input *only = nullptr;
  int targets = 0;
  for (uint64_t i = 0; i < program.input_count; ++i)
    if (program.inputs[i].role == DESCENT_INPUT_TARGET) {
      only = &program.inputs[i];
      ++targets;
    }
  if (!output || output->dtype != DESCENT_F32 || targets != 1)
    return;
  const descent_tensor &tensor = only->tensor;
  bool integers = tensor.dtype == DESCENT_I32 || tensor.dtype == DESCENT_I64;
  if (!integers || output->rank != tensor.rank + 1 ||
      !std::equal(tensor.shape, tensor.shape + tensor.rank, output->shape))
    return;
  target = only;
  predictions = output;
  classes = output->shape[tensor.rank];
  perRow = static_cast<int64_t>(tensor.bytes / elementBytes(tensor.dtype)) / model.batch;
}

template <typename Integer> void Validator::count(int rows) {
  const Integer *labels = reinterpret_cast<const Integer *>(model.backend.input(target->tensor));
  // What is not memory of the host comes in pieces, which end anywhere in a row of scores.
  int64_t best = 0, column = 0, position = 0;
  float bestScore = 0;
  auto scan = [&](const void *data, uint64_t bytes) {
    const float *scores = static_cast<const float *>(data), *end = scores + bytes / sizeof(float);
    while (scores != end) {
      int64_t part = std::min<int64_t>(end - scores, classes - column);
      bool counts = !target->has_ignore_index || labels[position] != target->ignore_index;
      const float *largest = counts ? std::max_element(scores, scores + part) : scores;
      if (column == 0 || *largest > bestScore) {
        bestScore = *largest;
        best = column + (largest - scores);
      }
      scores += part;
      column += part;
      if (column < classes)
        continue;
      counted += counts;
      correct += counts && best == labels[position];
      column = 0;
      ++position;
    }
  };
  uint64_t scores = static_cast<uint64_t>(rows * perRow * classes);
  model.backend.consume(predictions->offset, scores * sizeof(float), scan);
}

std::optional<Validation> Validator::run() {
  double sum = 0, weight = 0;
  counted = correct = 0;
  for (int64_t index = 0; index < batches.perEpoch(); ++index) {
    if (stopSignal())
      return std::nullopt;
    int rows = batches.fill(index);
    EvaluateResult result = model.evaluate();
    sum += result.lossSum;
    weight += result.lossWeight;
    if (target)
      target->tensor.dtype == DESCENT_I64 ? count<int64_t>(rows) : count<int32_t>(rows);
  }
  Validation validation;
  validation.loss = sum / weight;
  if (counted)
    validation.accuracy = static_cast<double>(correct) / static_cast<double>(counted);
  return validation;
}
