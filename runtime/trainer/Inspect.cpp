//===- Inspect.cpp - A step whose launches are looked into ----------------------------------===//
#include "runtime/trainer/Inspect.h"
#include "runtime/core/Narrow.h"
#include "runtime/core/Program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>

using namespace descent;

Inspector::Inspector(Model &model, const Injection &injection)
    : model(model), injection(injection) {
  const descent_program &program = model.program;
  size_t bytes = 0;
  for (uint64_t i = 0; i < program.state_count; ++i) {
    const descent_state &state = program.states[i];
    addRange(Finding::Place::Parameter, fmt::format("state '{}'", state.tensor.name), state.tensor,
             state.tensor.offset, state.tensor.dtype);
    // Moments have their parameter's shape, and only a commit writes them.
    if (state.parameter >= 0) {
      const descent_tensor &parameter = program.parameters[state.parameter].tensor;
      if (std::equal(state.tensor.shape, state.tensor.shape + state.tensor.rank, parameter.shape,
                     parameter.shape + parameter.rank))
        continue;
    }
    counters.push_back(&state.tensor);
    bytes += state.tensor.bytes;
  }
  countersBefore.resize(bytes);
  countersAfter.resize(bytes);
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    addRange(Finding::Place::Parameter, fmt::format("parameter '{}'", parameter.tensor.name),
             parameter.tensor, parameter.tensor.offset, parameter.tensor.dtype);
    if (parameter.gradient_offset != DESCENT_NO_OFFSET)
      addRange(Finding::Place::Gradient, fmt::format("the gradient of {}", parameter.tensor.name),
               parameter.tensor, parameter.gradient_offset, DESCENT_F32);
  }
  for (uint64_t i = 0; i < program.input_count; ++i)
    addRange(Finding::Place::Input, fmt::format("input '{}'", program.inputs[i].tensor.name),
             program.inputs[i].tensor, program.inputs[i].tensor.offset,
             program.inputs[i].tensor.dtype);
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
}

void Inspector::addRange(Finding::Place place, std::string name, const descent_tensor &tensor,
                         uint64_t offset, int32_t dtype) {
  uint64_t elements = tensor.bytes / elementBytes(tensor.dtype);
  const uint8_t *begin = model.at(offset);
  ranges.push_back({place,
                    std::move(name),
                    dtype,
                    {tensor.shape, tensor.shape + tensor.rank},
                    begin,
                    begin + elements * elementBytes(dtype)});
}

const Inspector::Range *Inspector::rangeOf(const uint8_t *address) const {
  auto next =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](const uint8_t *a, const Range &range) { return a < range.begin; });
  return next != ranges.begin() && address < next[-1].end ? &next[-1] : nullptr;
}

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

void Inspector::copyCounters(std::vector<uint8_t> &to) const {
  uint8_t *next = to.data();
  for (const descent_tensor *tensor : counters) {
    std::memcpy(next, model.at(*tensor), tensor->bytes);
    next += tensor->bytes;
  }
}

void Inspector::setCounters(const std::vector<uint8_t> &from) {
  const uint8_t *next = from.data();
  for (const descent_tensor *tensor : counters) {
    std::memcpy(model.at(*tensor), next, tensor->bytes);
    next += tensor->bytes;
  }
}

StepResult Inspector::step(int64_t number) {
  copyCounters(countersBefore);
  injecting = number == injection.step;
  if (!injecting)
    return model.step();
  launch = 0;
  model.context.observer = this;
  StepResult result = model.step();
  model.context.observer = nullptr;
  return result;
}

std::optional<Finding> Inspector::find(const StepResult &result) {
  found.reset();
  searching = true;
  launch = 0;
  model.context.observer = this;
  if (result.committed) {
    // The weights are those after the step by now, and another step would change them again.
    injecting = false;
    model.evaluate();
  } else {
    copyCounters(countersAfter);
    setCounters(countersBefore);
    model.step();
    setCounters(countersAfter);
  }
  model.context.observer = nullptr;
  searching = false;
  return found;
}

//===----------------------------------------------------------------------------------------===//
// Observing
//===----------------------------------------------------------------------------------------===//

static uint64_t bytesOf(const descent_operand &operand) {
  return elementCount(operand) * elementBytes(operand.dtype);
}

void Inspector::before(const descent_site &site, void *const *buffers) {
  const descent_kernel &kernel = *site.kernel;
  if (injecting && launch >= static_cast<int64_t>(model.stepFunction.gradients_ready)) {
    // The slab of another group may be ready before this parameter's, whose sum is complete when a
    // launch reads it and does not write it.
    uint8_t *target = model.at(injection.parameter->gradient_offset);
    bool reads = false, writes = false;
    for (uint64_t i = 0; i < kernel.operand_count; ++i) {
      const uint8_t *begin = static_cast<const uint8_t *>(buffers[i]);
      if (begin <= target && target < begin + bytesOf(kernel.operands[i]))
        (i < kernel.input_count ? reads : writes) = true;
    }
    if (reads && !writes) {
      float infinity = std::numeric_limits<float>::infinity();
      std::memcpy(target, &infinity, sizeof infinity);
    }
  }
  if (!searching)
    return;
  // What no launch made was there before: the batch, weights, an injected gradient.
  const uint8_t *first = model.at(uint64_t(0)), *last = first + model.program.memory.persistent;
  for (uint64_t i = 0; i < kernel.input_count; ++i) {
    const uint8_t *data = static_cast<const uint8_t *>(buffers[i]);
    if ((data >= first && data < last) || rangeOf(data))
      scan(site, kernel.operands[i], data, nullptr);
  }
}

void Inspector::after(const descent_site &site, void *const *buffers) {
  const descent_kernel &kernel = *site.kernel;
  if (searching)
    for (uint64_t i = kernel.input_count; i < kernel.operand_count; ++i)
      scan(site, kernel.operands[i], buffers[i], site.outputs[i - kernel.input_count]);
  ++launch;
}

/// Where the element lies in a tensor of this shape.
static std::vector<int64_t> indexOf(int64_t position, const int64_t *shape, size_t rank) {
  std::vector<int64_t> index(rank);
  for (size_t axis = rank; axis-- > 0; position /= shape[axis])
    index[axis] = position % shape[axis];
  return index;
}

static std::string typeOf(int32_t dtype, const std::vector<int64_t> &shape) {
  return fmt::format("{} [{}]", dtypeName(dtype), fmt::join(shape, ", "));
}

void Inspector::scan(const descent_site &site, const descent_operand &operand, const void *data,
                     const char *output) {
  if (found)
    return;
  int64_t position =
      findNonfinite(data, operand.dtype, static_cast<int64_t>(elementCount(operand)));
  if (position < 0)
    return;
  const uint8_t *address =
      static_cast<const uint8_t *>(data) + position * elementBytes(operand.dtype);
  Finding finding;
  finding.site = &site;
  finding.launch = launch;
  finding.value = floatAt(data, operand.dtype, position);
  finding.isHalf = operand.dtype == DESCENT_F16;
  finding.index = indexOf(position, operand.shape, static_cast<size_t>(operand.rank));
  finding.type = typeText(operand);
  if (output)
    finding.tensor = output;
  // Operands may be whole slabs: the name and place that a person knows are those of the member.
  if (const Range *range = rangeOf(address)) {
    int64_t width = static_cast<int64_t>(elementBytes(range->dtype));
    finding.index =
        indexOf((address - range->begin) / width, range->shape.data(), range->shape.size());
    finding.type = typeOf(range->dtype, range->shape);
    finding.tensor = range->name;
    if (!output)
      finding.place = range->place;
  } else if (!output) {
    finding.place = Finding::Place::Parameter;
    finding.tensor = "the working copy of a parameter";
  }
  found = std::move(finding);
}
