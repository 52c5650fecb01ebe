//===- Batches.cpp - From samples to the inputs of a step -----------------------------------===//
#include "runtime/trainer/Batches.h"
#include "runtime/core/Error.h"
#include "runtime/trainer/Model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

using namespace descent;

static bool isSampled(const descent_input &input) {
  return input.role == DESCENT_INPUT_DATA || input.role == DESCENT_INPUT_TARGET;
}

std::string descent::dataFormat(const Settings &settings, const std::string &path) {
  if (std::string format = settings.text("data.format", ""); !format.empty())
    return format;
  std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npz" || extension == ".npy")
    return extension.substr(1);
  if (extension == ".bin")
    return "tokens";
  if (extension == ".txt")
    return "text";
  throw Error(fmt::format("the recipe has no data.format and the name of {} does not tell it; give "
                          "text, tokens, npz, npy or idx",
                          path));
}

std::unique_ptr<data::Dataset> descent::openDataset(const descent_program &program,
                                                    const Settings &settings,
                                                    const DataSource &source) {
  data::OpenRequest request;
  request.format = source.format;
  request.path = source.path;
  request.sequence = settings.integer("data.sequence", 0);
  request.validation = source.validation;
  request.validationPart = source.validationPart;
  request.settings = settings.all();
  request.vocabulary = source.vocabulary;
  for (uint64_t i = 0; i < program.input_count; ++i) {
    const descent_input &input = program.inputs[i];
    if (!isSampled(input))
      continue;
    const descent_tensor &tensor = input.tensor;
    request.fields.push_back(
        {tensor.name, tensor.dtype, {tensor.shape + 1, tensor.shape + tensor.rank}});
    request.isTarget.push_back(input.role == DESCENT_INPUT_TARGET);
  }
  return data::open(request);
}

Batches::Batches(Model &model, const data::Dataset &dataset, const std::string &path, uint64_t seed,
                 bool shuffle)
    : model(model), dataset(dataset), path(path),
      sampler(dataset.size(), model.batch, seed, shuffle), indices(model.batch) {
  for (uint64_t i = 0; i < model.program.input_count; ++i) {
    const descent_input &input = model.program.inputs[i];
    if (isSampled(input))
      columns.push_back({&input, input.tensor.bytes / static_cast<uint64_t>(model.batch)});
    else if (input.role == DESCENT_INPUT_ROW_WEIGHTS)
      rowWeights = &input.tensor;
  }
  if (!rowWeights && dataset.size() % model.batch)
    throw Error(fmt::format("model '{}' has no row weights, so the last batch of {} instead of {} "
                            "samples cannot be trained exactly; choose a "
                            "batch.size that divides the {} samples of {}",
                            model.program.name, dataset.size() % model.batch, model.batch,
                            dataset.size(), path));
}

int Batches::fill(int64_t index) {
  model.backend.beginInputs();
  int rows = sampler.fill(index, indices.data());
  for (size_t field = 0; field < columns.size(); ++field) {
    Column &column = columns[field];
    column.data = model.backend.input(column.input->tensor);
    for (int64_t row = 0; row < model.batch; ++row)
      dataset.read(indices[row], static_cast<int>(field), column.data + row * column.rowBytes);
    if (column.input->bounded)
      checkBounds(column, rows);
  }
  if (rowWeights) {
    float *weights = reinterpret_cast<float *>(model.backend.input(*rowWeights));
    for (int64_t row = 0; row < model.batch; ++row)
      weights[row] = row < rows ? 1.0f : 0.0f;
  }
  return rows;
}

/// Position of the first element outside [low, high) that is not the ignored value, or -1.
template <typename Integer>
static int64_t findOutside(const Integer *values, int64_t count, const descent_input &input) {
  bool ignores = input.has_ignore_index;
  for (int64_t i = 0; i < count; ++i)
    if ((values[i] < input.low || values[i] >= input.high) &&
        !(ignores && values[i] == input.ignore_index))
      return i;
  return -1;
}

void Batches::checkBounds(const Column &column, int rows) const {
  const descent_input &input = *column.input;
  bool wide = input.tensor.dtype == DESCENT_I64;
  int64_t perRow = static_cast<int64_t>(column.rowBytes / elementBytes(input.tensor.dtype));
  int64_t place =
      wide ? findOutside(reinterpret_cast<const int64_t *>(column.data), rows * perRow, input)
           : findOutside(reinterpret_cast<const int32_t *>(column.data), rows * perRow, input);
  if (place < 0)
    return;
  int64_t value = wide ? reinterpret_cast<const int64_t *>(column.data)[place]
                       : reinterpret_cast<const int32_t *>(column.data)[place];
  int64_t row = place / perRow;
  throw Error(fmt::format(
      "{}: sample {}, position {} has the value {}; input '{}' takes {} to {}{} (row {} of the "
      "batch)",
      path, indices[row], place % perRow, value, input.tensor.name, input.low, input.high - 1,
      input.has_ignore_index ? fmt::format(" or {}", input.ignore_index) : "", row));
}
