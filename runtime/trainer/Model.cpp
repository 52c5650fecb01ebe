//===- Model.cpp - A compiled program with its memory ---------------------------------------===//
#include "runtime/trainer/Model.h"
#include "runtime/core/Error.h"
#include "runtime/core/HostBackend.h"
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

Model::Model(const descent_program &program, std::unique_ptr<Backend> given)
    : program(program), batch(batchSize(program)), stepFunction(findFunction(program, "step")),
      owned(std::move(given)), backend(*owned), evaluateFunction(findFunction(program, "evaluate")),
      refreshFunction(lookFunction(program, "refresh")),
      evaluateLossSum(*findOutput(evaluateFunction, "loss_sum")),
      evaluateLossWeight(*findOutput(evaluateFunction, "loss_weight")) {
  for (uint64_t i = 0; i < program.input_count; ++i)
    if (program.inputs[i].role == DESCENT_INPUT_RNG)
      random = &program.inputs[i].tensor;
  std::vector<Watched> watched;
  auto watch = [&](const descent_tensor *tensor) {
    if (tensor)
      watched.push_back({tensor->offset, tensor->bytes});
    return tensor != nullptr;
  };
  // In the order in which `finish` takes them.
  for (const char *name : {"loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"})
    watch(findOutput(stepFunction, name));
  hasUnscale = watch(findOutput(stepFunction, "unscale"));
  hasLossScale = watch(findOutput(stepFunction, "loss_scale"));
  hasNextScale = watch(findState(program, DESCENT_LOSS_SCALE_STATE));
  hasUpdates = watch(findState(program, DESCENT_UPDATES_STATE));
  backend.watch(std::move(watched));
}

Model::Model(const descent_program &program, int threads, bool profile)
    : Model(program, std::make_unique<HostBackend>(program, threads, profile)) {}

/// Makes `bytes` of a state, all elements of which are one number.
static void fillState(const descent_state &state, uint8_t *data, uint64_t bytes) {
  uint64_t count = bytes / elementBytes(state.tensor.dtype);
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
      std::memset(data, 0, bytes);
      return;
    }
    throw Error(fmt::format("state '{}' of type {} cannot start at {}", state.tensor.name,
                            dtypeName(state.tensor.dtype), state.initial));
  }
}

/// Calls make(first, count, floats) for the elements of a parameter, all at once where they are
/// stored as floats in memory of the host. For bf16 it is called piece by piece, since the floats
/// have no room in the arena, and what it makes is rounded. Pieces begin at multiples of four, as
/// the random numbers ask.
template <typename Make>
static void makeFloats(Backend &backend, const descent_tensor &tensor, Make make) {
  constexpr int64_t piece = 1 << 16;
  std::vector<float> floats;
  backend.produce(
      tensor.offset, tensor.bytes, [&](uint8_t *data, uint64_t firstByte, uint64_t bytes) {
        uint64_t width = elementBytes(tensor.dtype);
        int64_t begin = static_cast<int64_t>(firstByte / width),
                count = static_cast<int64_t>(bytes / width);
        if (tensor.dtype == DESCENT_F32) {
          make(begin, count, reinterpret_cast<float *>(data));
          return;
        }
        floats.resize(std::min(piece, count));
        uint16_t *narrow = reinterpret_cast<uint16_t *>(data);
        for (int64_t first = 0; first < count; first += piece) {
          int64_t part = std::min(piece, count - first);
          make(begin + first, part, floats.data());
          std::transform(floats.begin(), floats.begin() + part, narrow + first, floatToBrain);
        }
      });
}

void Model::initialize(uint64_t seed) {
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    const char *name = parameter.tensor.name;
    double a = parameter.a, b = parameter.b;
    makeFloats(backend, parameter.tensor, [&](int64_t first, int64_t count, float *out) {
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
  for (uint64_t i = 0; i < program.state_count; ++i) {
    const descent_state &state = program.states[i];
    backend.produce(
        state.tensor.offset, state.tensor.bytes,
        [&](uint8_t *data, uint64_t, uint64_t bytes) { fillState(state, data, bytes); });
  }
}

void Model::setIteration(uint64_t seed, int64_t iteration) {
  if (!random)
    return;
  int32_t *words = reinterpret_cast<int32_t *>(backend.input(*random));
  words[0] = static_cast<int32_t>(seed);
  words[1] = static_cast<int32_t>(seed >> 32);
  words[2] = static_cast<int32_t>(iteration);
  words[3] = 0;
}

void Model::refresh() {
  if (refreshFunction)
    backend.run(*refreshFunction);
}

void Model::submit() { backend.submit(stepFunction); }

StepResult Model::finish() {
  Backend::Report report = backend.report();
  const uint8_t *const *next = report.values;
  auto real = [&] {
    float value;
    std::memcpy(&value, *next++, sizeof value);
    return value;
  };
  StepResult result{};
  result.lossSum = real();
  result.lossWeight = real();
  result.gradientNorm = real();
  result.learningRate = real();
  result.committed = **next++ != 0;
  if (hasUnscale)
    result.unscale = real();
  if (hasLossScale)
    result.lossScale = real();
  if (hasNextScale)
    result.nextLossScale = real();
  if (hasUpdates) {
    int64_t updates;
    std::memcpy(&updates, *next++, sizeof updates);
    result.updates = updates;
  }
  result.milliseconds = report.milliseconds;
  return result;
}

StepResult Model::step() {
  submit();
  return finish();
}

EvaluateResult Model::evaluate() {
  backend.run(evaluateFunction);
  return {get<float>(evaluateLossSum), get<float>(evaluateLossWeight)};
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
    makeFloats(backend, tensor, [&](int64_t first, int64_t count, float *out) {
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

SafetensorsTensor Model::entry(std::string name, const descent_tensor &tensor, int32_t dtype,
                               uint64_t offset, uint64_t bytes) const {
  SafetensorsTensor result;
  result.name = std::move(name);
  result.dtype = dtype;
  result.shape = {tensor.shape, tensor.shape + tensor.rank};
  result.bytes = bytes;
  if (backend.arena()) {
    result.data = at(offset);
  } else {
    result.memory = &backend;
    result.offset = offset;
  }
  return result;
}

SafetensorsTensor Model::entry(std::string name, const descent_tensor &tensor) const {
  return entry(std::move(name), tensor, tensor.dtype, tensor.offset, tensor.bytes);
}

void Model::exportWeights(const std::string &path, const std::string &vocabulary) const {
  std::vector<SafetensorsTensor> tensors;
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_tensor &tensor = program.parameters[i].tensor;
    tensors.push_back(entry(tensor.name, tensor));
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
      tensors.push_back(entry(parameter.tensor.name, parameter.tensor, DESCENT_F32,
                              parameter.gradient_offset, gradientBytes(parameter)));
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
