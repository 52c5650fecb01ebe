//===- Peak.cpp - What a plan holds when it holds most --------------------------------------===//
//
// A program has no table of transient values, but its launches say all: a value exists from the
// launch that writes it to the last that reads it before others are written over it, and its name
// is that of the op that made it.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Arena.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

using namespace descent;
using namespace descent::cuda;

namespace {

struct Value {
  std::string name;
  uint64_t bytes;
  uint64_t first, last; // Launches.
};

} // namespace

/// Values behind the persistent part, in the order in which they are written. Inputs, which are
/// there before the first launch, are no part of it.
static std::vector<Value> transientValues(const descent_program &program,
                                          const descent_function &step) {
  std::vector<Value> values;
  std::map<uint64_t, size_t> current; // By offset.
  for (uint64_t launch = 0; launch < step.site_count; ++launch) {
    const descent_site &site = step.sites[launch];
    const descent_kernel &kernel = *site.kernel;
    for (uint64_t i = 0; i < kernel.input_count; ++i) {
      auto next = current.upper_bound(site.offsets[i]);
      if (next == current.begin())
        continue;
      auto [begin, index] = *std::prev(next);
      if (site.offsets[i] < begin + values[index].bytes)
        values[index].last = launch;
    }
    for (uint64_t i = kernel.input_count; i < kernel.operand_count; ++i) {
      uint64_t begin = site.offsets[i], bytes = byteCount(kernel.operands[i]), end = begin + bytes;
      if (begin < program.memory.persistent || !bytes)
        continue;
      for (auto it = current.begin(); it != current.end();) {
        bool overlaps = it->first < end && begin < it->first + values[it->second].bytes;
        it = overlaps ? current.erase(it) : std::next(it);
      }
      current[begin] = values.size();
      values.push_back(
          {fmt::format("{} {}", site.outputs[i - kernel.input_count], typeText(kernel.operands[i])),
           bytes, launch, launch});
    }
  }
  return values;
}

/// "forward pass", "backward pass" or "optimizer": the loss ends the first, and the first launch
/// that reads all gradients the second.
static const char *phaseOf(const descent_function &step, uint64_t launch) {
  if (step.gradients_ready != DESCENT_NO_LAUNCH && launch >= step.gradients_ready)
    return "optimizer";
  const descent_tensor *loss = findOutput(step, "loss_sum");
  for (uint64_t i = 0; i < step.site_count; ++i) {
    const descent_site &site = step.sites[i];
    for (uint64_t j = site.kernel->input_count; j < site.kernel->operand_count; ++j)
      if (site.offsets[j] == loss->offset)
        return launch <= i ? "forward pass" : "backward pass";
  }
  return "forward pass";
}

std::string cuda::peakText(const descent_program &program) {
  const descent_function &step = findFunction(program, "step");
  std::vector<Value> values = transientValues(program, step);
  std::vector<uint64_t> alive(step.site_count);
  for (const Value &value : values)
    for (uint64_t launch = value.first; launch <= value.last; ++launch)
      alive[launch] += value.bytes;
  uint64_t peak =
      static_cast<uint64_t>(std::max_element(alive.begin(), alive.end()) - alive.begin());
  std::string text;
  if (!alive.empty())
    text = fmt::format("The plan is fullest in the {} (launch {} of {}: {}), with {} of transient "
                       "values.\n",
                       phaseOf(step, peak), peak, step.site_count, step.sites[peak].source,
                       formatBytes(alive[peak]).text);
  std::erase_if(values, [&](const Value &v) { return v.first > peak || v.last < peak; });
  auto add = [&](std::string name, const descent_tensor &tensor, uint64_t bytes) {
    values.push_back({name + " " + typeText(tensor), bytes, peak, peak});
  };
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    add(fmt::format("parameter {}", parameter.tensor.name), parameter.tensor,
        parameter.tensor.bytes);
    if (parameter.gradient_offset != DESCENT_NO_OFFSET) {
      descent_tensor gradient = parameter.tensor;
      gradient.dtype = DESCENT_F32;
      add(fmt::format("gradient of {}", parameter.tensor.name), gradient, gradientBytes(parameter));
    }
  }
  for (uint64_t i = 0; i < program.state_count; ++i)
    add(fmt::format("state {}", program.states[i].tensor.name), program.states[i].tensor,
        program.states[i].tensor.bytes);
  for (uint64_t i = 0; i < program.input_count; ++i)
    add(fmt::format("input {}", program.inputs[i].tensor.name), program.inputs[i].tensor,
        program.inputs[i].tensor.bytes);
  std::stable_sort(values.begin(), values.end(),
                   [](const Value &a, const Value &b) { return a.bytes > b.bytes; });
  values.resize(std::min<size_t>(values.size(), 10));
  text += fmt::format("The {} biggest tensors there:\n", values.size());
  for (const Value &value : values)
    text += fmt::format("  {:>10}  {}\n", formatBytes(value.bytes).text, value.name);
  return text;
}
