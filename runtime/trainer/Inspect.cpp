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
  ranges.push_back({place,
                    std::move(name),
                    dtype,
                    {tensor.shape, tensor.shape + tensor.rank},
                    offset,
                    offset + elements * elementBytes(dtype)});
}

const Inspector::Range *Inspector::rangeOf(uint64_t offset) const {
  auto next = std::upper_bound(ranges.begin(), ranges.end(), offset,
                               [](uint64_t a, const Range &range) { return a < range.begin; });
  return next != ranges.begin() && offset < next[-1].end ? &next[-1] : nullptr;
}

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

void Inspector::copyCounters(std::vector<uint8_t> &to) const {
  uint8_t *next = to.data();
  for (const descent_tensor *tensor : counters) {
    model.backend.read(tensor->offset, next, tensor->bytes);
    next += tensor->bytes;
  }
}

void Inspector::setCounters(const std::vector<uint8_t> &from) {
  const uint8_t *next = from.data();
  for (const descent_tensor *tensor : counters) {
    model.backend.write(tensor->offset, next, tensor->bytes);
    next += tensor->bytes;
  }
}

void Inspector::submit(int64_t number) {
  if (model.backend.mostPending() == 1)
    copyCounters(countersBefore);
  injecting = number == injection.step;
  launch = 0;
  model.backend.observer = injecting ? this : nullptr;
  model.submit();
  model.backend.observer = nullptr;
}

StepResult Inspector::step(int64_t number) {
  submit(number);
  return model.finish();
}

/// Runs the step, or its forward pass, with every launch looked into.
void Inspector::search(bool wholeStep) {
  found.reset();
  searching = true;
  launch = 0;
  model.backend.observer = this;
  if (wholeStep)
    model.step();
  else
    model.evaluate();
  model.backend.observer = nullptr;
  searching = false;
}

std::optional<Finding> Inspector::find(const StepResult &result) {
  if (result.committed) {
    // The weights are those after the step by now, and another step would change them again.
    injecting = false;
    search(/*wholeStep=*/false);
  } else {
    copyCounters(countersAfter);
    setCounters(countersBefore);
    search(/*wholeStep=*/true);
    setCounters(countersAfter);
  }
  return found;
}

std::optional<Finding> Inspector::findLate(const StepResult &result) {
  injecting = false;
  const descent_tensor *scale = findState(model.program, DESCENT_LOSS_SCALE_STATE);
  if (scale && result.lossScale)
    model.backend.write(scale->offset, &*result.lossScale, sizeof(float));
  search(/*wholeStep=*/!result.committed);
  return found;
}

//===----------------------------------------------------------------------------------------===//
// Observing
//===----------------------------------------------------------------------------------------===//

/// The bytes at `offset`: in place, or a copy that the next call replaces.
const void *Inspector::look(uint64_t offset, uint64_t bytes) {
  if (const uint8_t *arena = model.backend.arena())
    return arena + offset;
  copied.resize(std::max(copied.size(), static_cast<size_t>(bytes)));
  model.backend.read(offset, copied.data(), bytes);
  return copied.data();
}

void Inspector::before(const descent_site &site, const uint64_t *offsets) {
  const descent_kernel &kernel = *site.kernel;
  if (injecting && launch >= static_cast<int64_t>(model.stepFunction.gradients_ready)) {
    // The slab of another group may be ready before this parameter's, whose sum is complete when a
    // launch reads it and does not write it.
    uint64_t target = injection.parameter->gradient_offset;
    bool reads = false, writes = false;
    for (uint64_t i = 0; i < kernel.operand_count; ++i)
      if (offsets[i] <= target && target < offsets[i] + byteCount(kernel.operands[i]))
        (i < kernel.input_count ? reads : writes) = true;
    if (reads && !writes) {
      float infinity = std::numeric_limits<float>::infinity();
      model.backend.write(target, &infinity, sizeof infinity);
    }
  }
  if (!searching)
    return;
  // What no launch made was there before: the batch, weights, an injected gradient.
  for (uint64_t i = 0; i < kernel.input_count; ++i)
    if (offsets[i] < model.program.memory.persistent || rangeOf(offsets[i]))
      scan(site, kernel.operands[i], offsets[i], nullptr);
}

void Inspector::after(const descent_site &site, const uint64_t *offsets) {
  const descent_kernel &kernel = *site.kernel;
  if (searching)
    for (uint64_t i = kernel.input_count; i < kernel.operand_count; ++i)
      scan(site, kernel.operands[i], offsets[i], site.outputs[i - kernel.input_count]);
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

void Inspector::scan(const descent_site &site, const descent_operand &operand, uint64_t offset,
                     const char *output) {
  if (found)
    return;
  const void *data = look(offset, byteCount(operand));
  int64_t position =
      findNonfinite(data, operand.dtype, static_cast<int64_t>(elementCount(operand)));
  if (position < 0)
    return;
  uint64_t place = offset + static_cast<uint64_t>(position) * elementBytes(operand.dtype);
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
  if (const Range *range = rangeOf(place)) {
    uint64_t element = (place - range->begin) / elementBytes(range->dtype);
    finding.index =
        indexOf(static_cast<int64_t>(element), range->shape.data(), range->shape.size());
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
