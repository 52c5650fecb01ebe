//===- Model.cpp - A compiled program with its memory ---------------------------------------===//
#include "runtime/trainer/Model.h"
#include "runtime/core/Error.h"
#include "runtime/core/Narrow.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Checkpoint.h"
#include "runtime/trainer/Safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

using namespace descent;

Model::Model(const descent_program &program, int threads, bool profile)
    : program(program), batch(batchSize(program)), stepFunction(findFunction(program, "step")),
      arena(program.memory, threads), context(program, arena, threads, profile),
      evaluateFunction(findFunction(program, "evaluate")),
      refreshFunction(lookFunction(program, "refresh")) {
  auto place = [&](const descent_function &function, const char *name) {
    return at(*findOutput(function, name));
  };
  stepLossSum = reinterpret_cast<float *>(place(stepFunction, "loss_sum"));
  stepLossWeight = reinterpret_cast<float *>(place(stepFunction, "loss_weight"));
  gradientNorm = reinterpret_cast<float *>(place(stepFunction, "grad_norm"));
  learningRate = reinterpret_cast<float *>(place(stepFunction, "learning_rate"));
  committed = place(stepFunction, "committed");
  if (findOutput(stepFunction, "unscale"))
    unscale = reinterpret_cast<float *>(place(stepFunction, "unscale"));
  if (findOutput(stepFunction, "loss_scale"))
    lossScale = reinterpret_cast<float *>(place(stepFunction, "loss_scale"));
  evaluateLossSum = reinterpret_cast<float *>(place(evaluateFunction, "loss_sum"));
  evaluateLossWeight = reinterpret_cast<float *>(place(evaluateFunction, "loss_weight"));
  for (uint64_t i = 0; i < program.input_count; ++i)
    if (program.inputs[i].role == DESCENT_INPUT_RNG)
      random = reinterpret_cast<int32_t *>(at(program.inputs[i].tensor));
}

/// Sets all elements of a state to one number.
static void fillState(const descent_state &state, uint8_t *data) {
  uint64_t width = elementBytes(state.tensor.dtype), count = state.tensor.bytes / width;
  auto fill = [&](auto value) {
    std::fill_n(reinterpret_cast<decltype(value) *>(data), count, value);
  };
  switch (state.tensor.dtype) {
  case DESCENT_F32:
    return fill(static_cast<float>(state.initial));
  case DESCENT_I32:
    return fill(static_cast<int32_t>(state.initial));
  case DESCENT_I64:
    return fill(static_cast<int64_t>(state.initial));
  case DESCENT_I1:
    return fill(static_cast<uint8_t>(state.initial != 0));
  case DESCENT_BF16:
    return fill(floatToBrain(static_cast<float>(state.initial)));
  default:
    if (state.initial == 0.0) {
      std::memset(data, 0, state.tensor.bytes);
      return;
    }
    throw Error(fmt::format("state '{}' of type {} cannot start at {}", state.tensor.name,
                            dtypeName(state.tensor.dtype), state.initial));
  }
}

/// Calls make(first, count, floats) for the elements of a parameter, all at once where they are
/// stored as floats. For bf16 it is called piece by piece, since the floats have no room in the
/// arena, and what it makes is rounded.
template <typename Make>
static void makeFloats(const descent_tensor &tensor, uint8_t *data, Make make) {
  int64_t count = static_cast<int64_t>(tensor.bytes / elementBytes(tensor.dtype));
  if (tensor.dtype == DESCENT_F32) {
    make(0, count, reinterpret_cast<float *>(data));
    return;
  }
  constexpr int64_t piece = 1 << 16; // A multiple of four, as the random numbers ask.
  std::vector<float> floats(std::min(piece, count));
  uint16_t *narrow = reinterpret_cast<uint16_t *>(data);
  for (int64_t first = 0; first < count; first += piece) {
    int64_t part = std::min(piece, count - first);
    make(first, part, floats.data());
    std::transform(floats.begin(), floats.begin() + part, narrow + first, floatToBrain);
  }
}

void Model::initialize(uint64_t seed) {
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    const char *name = parameter.tensor.name;
    double a = parameter.a, b = parameter.b;
    makeFloats(parameter.tensor, at(parameter.tensor),
               [&](int64_t first, int64_t count, float *out) {
                 switch (parameter.initializer) {
                 case DESCENT_INIT_CONSTANT:
                   std::fill_n(out, count, static_cast<float>(a));
                   break;
                 case DESCENT_INIT_NORMAL:
                   fillNormal(out, count, seed, name, a, b, first);
                   break;
                 case DESCENT_INIT_UNIFORM:
                   fillUniform(out, count, seed, name, a, b, first);
                   break;
                 }
               });
  }
  for (uint64_t i = 0; i < program.state_count; ++i)
    fillState(program.states[i], at(program.states[i].tensor));
}

void Model::setIteration(uint64_t seed, int64_t iteration) {
  if (!random)
    return;
  random[0] = static_cast<int32_t>(seed);
  random[1] = static_cast<int32_t>(seed >> 32);
  random[2] = static_cast<int32_t>(iteration);
  random[3] = 0;
}

void Model::refresh() {
  if (refreshFunction)
    runFunction(context, *refreshFunction);
}

StepResult Model::step() {
  runFunction(context, stepFunction);
  StepResult result{*stepLossSum, *stepLossWeight, *gradientNorm, *learningRate, *committed != 0};
  if (unscale)
    result.unscale = *unscale;
  if (lossScale)
    result.lossScale = *lossScale;
  return result;
}

EvaluateResult Model::evaluate() {
  runFunction(context, evaluateFunction);
  return {*evaluateLossSum, *evaluateLossWeight};
}

void Model::loadWeights(const SafetensorsReader &file, std::string &note) {
  EntryDifferences differences;
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    differences.require(file, safetensorsName(program.parameters[i].tensor.name),
                        program.parameters[i].tensor, /*anyFloat=*/true);
  for (const auto &[name, entry] : file.entries())
    if (!name.starts_with(statePrefix))
      differences.offer(name, entry);
  if (differences.blocking())
    throw Error(fmt::format("{} does not hold the weights of model '{}':{}", file.path(),
                            program.name, differences.text()));
  if (differences.any())
    note = fmt::format("entries of {} that model '{}' has no use for:{}", file.path(), program.name,
                       differences.text());
  std::map<std::pair<std::string, int32_t>, int> converted; // by types
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_tensor &tensor = program.parameters[i].tensor;
    std::string name = safetensorsName(tensor.name);
    const SafetensorsEntry &entry = file.entries().at(name);
    makeFloats(tensor, at(tensor), [&](int64_t first, int64_t count, float *out) {
      file.readFloats(name, entry, static_cast<uint64_t>(first), static_cast<uint64_t>(count), out);
    });
    if (entry.dtype != safetensorsDtype(tensor.dtype))
      ++converted[{entry.dtype, tensor.dtype}];
  }
  for (const auto &[types, count] : converted) {
    const auto &[from, to] = types;
    bool exact = to == DESCENT_F32 && from != "F64";
    note += fmt::format("{}{}: {} of {} parameters are {} there and {} here, {}",
                        note.empty() ? "" : "\n", file.path(), count, program.parameter_count, from,
                        dtypeName(to), exact ? "which loses nothing" : "rounded to nearest even");
  }
}

static std::vector<int64_t> shapeOf(const descent_tensor &tensor) {
  return {tensor.shape, tensor.shape + tensor.rank};
}

void Model::exportWeights(const std::string &path, const std::string &vocabulary) const {
  std::vector<SafetensorsTensor> tensors;
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_tensor &tensor = program.parameters[i].tensor;
    tensors.push_back({tensor.name, tensor.dtype, shapeOf(tensor), at(tensor), tensor.bytes});
  }
  SafetensorsWriter::Metadata metadata = {{"format", "descent weights"},
                                          {"model", safetensorsName(program.name)}};
  if (!vocabulary.empty())
    metadata.emplace_back("vocabulary", hexadecimal(vocabulary));
  SafetensorsWriter(std::move(tensors), metadata, /*checksum=*/false).write(path.c_str());
}

void Model::exportGradients(const std::string &path, const StepResult &result) const {
  std::vector<SafetensorsTensor> tensors;
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    if (parameter.gradient_offset != DESCENT_NO_OFFSET)
      tensors.push_back({parameter.tensor.name, DESCENT_F32, shapeOf(parameter.tensor),
                         at(parameter.gradient_offset), gradientBytes(parameter)});
  }
  SafetensorsWriter::Metadata metadata = {{"format", "descent gradients"},
                                          {"model", safetensorsName(program.name)}};
  SafetensorsWriter(std::move(tensors), metadata, /*checksum=*/false)
      .write(path.c_str(), {.factor = result.unscale, .divisor = result.lossWeight});
}

std::string descent::hexadecimal(const std::string &bytes) {
  std::string text;
  for (unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

std::string descent::fromHexadecimal(const std::string &text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value;
    if (std::sscanf(text.c_str() + i, "%2x", &value) != 1)
      return {};
    bytes += static_cast<char>(value);
  }
  return bytes;
}
