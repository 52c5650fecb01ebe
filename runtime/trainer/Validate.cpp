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
  predictions = reinterpret_cast<const float *>(model.at(*output));
  classes = output->shape[tensor.rank];
  perRow = static_cast<int64_t>(tensor.bytes / elementBytes(tensor.dtype)) / model.batch;
}

template <typename Integer> void Validator::count(int rows) {
  const Integer *labels = reinterpret_cast<const Integer *>(model.at(target->tensor));
  for (int64_t i = 0; i < rows * perRow; ++i) {
    if (target->has_ignore_index && labels[i] == target->ignore_index)
      continue;
    const float *scores = predictions + i * classes;
    ++counted;
    correct += std::max_element(scores, scores + classes) - scores == labels[i];
  }
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
