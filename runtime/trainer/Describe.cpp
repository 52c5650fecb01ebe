//===- Describe.cpp - What is inside a training binary --------------------------------------===//
#include "runtime/trainer/Describe.h"
#include "runtime/core/Arena.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceMemory.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace descent;
using nlohmann::ordered_json;

static std::string initializerText(const descent_parameter &parameter) {
  switch (parameter.initializer) {
  case DESCENT_INIT_NORMAL:
    return fmt::format("normal({:g}, {:g})", parameter.a, parameter.b);
  case DESCENT_INIT_UNIFORM:
    return fmt::format("uniform({:g}, {:g})", parameter.a, parameter.b);
  default:
    return fmt::format("{:g}", parameter.a);
  }
}

static const char *roleText(int32_t role) {
  static constexpr const char *names[] = {"data", "target", "row weights", "random"};
  return role >= DESCENT_INPUT_DATA && role <= DESCENT_INPUT_RNG ? names[role] : "?";
}

/// A table with columns as wide as their widest cell; all but the first are aligned right when they
/// hold numbers.
static std::string tableText(const std::vector<std::vector<std::string>> &rows,
                             const std::string &alignment) {
  std::vector<size_t> widths(alignment.size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += alignment[i] == '>' ? fmt::format("  {:>{}}", row[i], widths[i])
                                  : fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

static uint64_t parameterElements(const descent_program &program) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < program.parameter_count; ++i)
    count += program.parameters[i].tensor.bytes / elementBytes(program.parameters[i].tensor.dtype);
  return count;
}

/// Rows for the states: those of parameters by kind (moments have one for each parameter), the
/// others one by one.
static std::vector<std::vector<std::string>> stateRows(const descent_program &program) {
  struct Kind {
    std::string name, type, initial;
    uint64_t tensors = 0, bytes = 0;
    bool operator==(const Kind &other) const {
      return name == other.name && type == other.type && initial == other.initial;
    }
  };
  std::vector<Kind> kinds;
  for (uint64_t i = 0; i < program.state_count; ++i) {
    const descent_state &state = program.states[i];
    Kind kind{state.tensor.name, typeText(state.tensor), fmt::format("{:g}", state.initial)};
    if (state.parameter >= 0) {
      std::string owner = program.parameters[state.parameter].tensor.name;
      if (kind.name.starts_with(owner + "."))
        kind.name = "*" + kind.name.substr(owner.size());
      kind.type = dtypeName(state.tensor.dtype);
    }
    auto known = std::find(kinds.begin(), kinds.end(), kind);
    if (known == kinds.end())
      known = kinds.insert(kinds.end(), kind);
    ++known->tensors;
    known->bytes += state.tensor.bytes;
  }
  std::vector<std::vector<std::string>> rows = {
      {"state", "type", "tensors", "memory", "starts as"}};
  for (const Kind &kind : kinds)
    rows.push_back({kind.name, kind.type, fmt::format("{}", kind.tensors),
                    formatBytes(kind.bytes).text, kind.initial});
  return rows;
}

std::string descent::targetText(const descent_program &program) {
  if (program.device)
    return fmt::format("{} ({})", program.device->target, cuda::imagesText(*program.device));
  return fmt::format("{} ({})", program.cpu ? program.cpu : "?",
                     program.cpu_features && *program.cpu_features ? program.cpu_features
                                                                   : "no extensions");
}

static constexpr std::string_view precisionPrefix = "precision.";

std::string descent::describeText(const descent_program &program) {
  std::string text =
      fmt::format("model {}: {} parameters in {} tensors, batch {}\ncompiled by {} for {}\n\n",
                  program.name, parameterElements(program), program.parameter_count,
                  batchSize(program), program.compiler, targetText(program));

  std::vector<std::vector<std::string>> rows = {
      {"parameter", "type", "starts as", "group", "lr x", "decay", "trained"}};
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    rows.push_back({parameter.tensor.name, typeText(parameter.tensor), initializerText(parameter),
                    parameter.group ? parameter.group : "-",
                    fmt::format("{:g}", parameter.learning_rate_scale),
                    fmt::format("{:g}", parameter.weight_decay),
                    parameter.trainable ? "yes" : "no"});
  }
  text += tableText(rows, "<<<<>><") + "\n" + tableText(stateRows(program), "<<>><") + "\n";

  rows = {{"input", "type", "role", "values"}};
  for (uint64_t i = 0; i < program.input_count; ++i) {
    const descent_input &input = program.inputs[i];
    std::string values;
    if (input.bounded)
      values = fmt::format("{} to {}", input.low, input.high - 1);
    if (input.bounded && input.has_ignore_index)
      values += fmt::format(", {} is ignored", input.ignore_index);
    rows.push_back({input.tensor.name, typeText(input.tensor), roleText(input.role), values});
  }
  text += tableText(rows, "<<<<") + "\n";

  const descent_memory &memory = program.memory;
  rows = {{"memory", ""}};
  auto add = [&](const char *what, uint64_t bytes) {
    rows.push_back({what, formatBytes(bytes).text});
  };
  add("parameters", memory.parameters);
  if (memory.working_copies)
    add("  working copies", memory.working_copies);
  add("gradients", memory.gradients);
  add("optimizer state", memory.optimizer);
  add("activations", memory.activations);
  add("workspace", memory.workspace);
  add("planned", memory.arena);
  add("lower bound", memory.lower_bound);
  if (program.device) {
    add("workspace of device kernels", memory.device_workspace);
    add("staged inputs", memory.device_staging);
    add("allocated on the device", cuda::deviceBytes(memory));
  } else {
    add("scratch of a thread", memory.thread_scratch);
  }
  text += tableText(rows, "<>") + "\n";

  rows = {{"kernel", program.device ? "commands" : "tasks", "MFLOP", "MB", "holds"}};
  for (uint64_t i = 0; i < program.kernel_count; ++i) {
    const descent_kernel &kernel = program.kernels[i];
    rows.push_back(
        {kernel.name,
         program.device ? fmt::format("{}", kernel.command_count) : fmt::format("{}", kernel.tasks),
         fmt::format("{:.3f}", kernel.flops * 1e-6), fmt::format("{:.3f}", kernel.bytes * 1e-6),
         kernel.sources ? kernel.sources : ""});
  }
  text += tableText(rows, "<>>><") + "\n";

  std::vector<std::vector<std::string>> precision = {{"precision", ""}};
  rows = {{"recipe", ""}};
  for (uint64_t i = 0; i < program.setting_count; ++i) {
    std::string_view key = program.settings[i].key;
    if (key.starts_with(precisionPrefix))
      precision.push_back(
          {std::string(key.substr(precisionPrefix.size())), program.settings[i].value});
    else
      rows.push_back({std::string(key), program.settings[i].value});
  }
  if (precision.size() > 1)
    text += tableText(precision, "<<") + "\n";
  return text + tableText(rows, "<<");
}

static ordered_json tensorJson(const descent_tensor &tensor) {
  ordered_json shape = ordered_json::array();
  for (int i = 0; i < tensor.rank; ++i)
    shape.push_back(tensor.shape[i]);
  return {{"name", tensor.name},
          {"dtype", dtypeName(tensor.dtype)},
          {"shape", shape},
          {"offset", tensor.offset},
          {"bytes", tensor.bytes}};
}

std::string descent::describeJson(const descent_program &program) {
  ordered_json root = {{"model", program.name},
                       {"compiler", program.compiler},
                       {"target", program.device ? program.device->target : "cpu"},
                       {"cpu", program.cpu ? program.cpu : ""},
                       {"cpu_features", program.cpu_features ? program.cpu_features : ""},
                       {"abi_version", program.abi_version},
                       {"plan_hash", fmt::format("{:016x}", program.plan_hash)},
                       {"batch", batchSize(program)},
                       {"parameter_elements", parameterElements(program)}};
  const descent_memory &memory = program.memory;
  root["memory"] = {{"peak_bytes", memory.arena},
                    {"persistent_bytes", memory.persistent},
                    {"lower_bound_bytes", memory.lower_bound},
                    {"parameters_bytes", memory.parameters},
                    {"gradients_bytes", memory.gradients},
                    {"optimizer_bytes", memory.optimizer},
                    {"activations_bytes", memory.activations},
                    {"workspace_bytes", memory.workspace},
                    {"working_copies_bytes", memory.working_copies},
                    {"thread_scratch_bytes", memory.thread_scratch}};
  if (program.device) {
    root["memory"]["device_workspace_bytes"] = memory.device_workspace;
    root["memory"]["device_staging_bytes"] = memory.device_staging;
    root["memory"]["device_bytes"] = cuda::deviceBytes(memory);
    root["device"] = {{"capability", program.device->capability},
                      {"code", cuda::imagesText(*program.device)}};
  }
  root["parameters"] = ordered_json::array();
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    ordered_json item = tensorJson(parameter.tensor);
    item["initializer"] = initializerText(parameter);
    item["trainable"] = parameter.trainable != 0;
    item["group"] = parameter.group ? parameter.group : "";
    item["learning_rate_scale"] = parameter.learning_rate_scale;
    item["weight_decay"] = parameter.weight_decay;
    root["parameters"].push_back(item);
  }
  root["states"] = ordered_json::array();
  for (uint64_t i = 0; i < program.state_count; ++i) {
    ordered_json item = tensorJson(program.states[i].tensor);
    item["initial"] = program.states[i].initial;
    if (program.states[i].parameter >= 0)
      item["parameter"] = program.parameters[program.states[i].parameter].tensor.name;
    root["states"].push_back(item);
  }
  root["inputs"] = ordered_json::array();
  for (uint64_t i = 0; i < program.input_count; ++i) {
    const descent_input &input = program.inputs[i];
    ordered_json item = tensorJson(input.tensor);
    item["role"] = roleText(input.role);
    if (input.bounded)
      item["bounds"] = {input.low, input.high};
    if (input.has_ignore_index)
      item["ignore_index"] = input.ignore_index;
    root["inputs"].push_back(item);
  }
  root["kernels"] = ordered_json::array();
  for (uint64_t i = 0; i < program.kernel_count; ++i) {
    const descent_kernel &kernel = program.kernels[i];
    root["kernels"].push_back({{"name", kernel.name},
                               {"sources", kernel.sources ? kernel.sources : ""},
                               {"tasks", kernel.tasks},
                               {"scratch_bytes", kernel.scratch_bytes},
                               {"flops", kernel.flops},
                               {"bytes", kernel.bytes}});
  }
  root["precision"] = ordered_json::object();
  root["settings"] = ordered_json::object();
  for (uint64_t i = 0; i < program.setting_count; ++i) {
    std::string_view key = program.settings[i].key;
    if (key.starts_with(precisionPrefix))
      root["precision"][std::string(key.substr(precisionPrefix.size()))] =
          program.settings[i].value;
    root["settings"][program.settings[i].key] = program.settings[i].value;
  }
  // Names may be any bytes; JSON is text.
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string descent::profileText(const descent_program &program, std::span<const KernelTime> times,
                                 double seconds) {
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times[a].nanoseconds > times[b].nanoseconds; });
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "calls", "total ms", "share", "us/call", "GFLOP/s", "GB/s", "holds"}};
  double inKernels = 0;
  for (size_t index : order) {
    const KernelTime &time = times[index];
    if (!time.calls)
      continue;
    const descent_kernel &kernel = program.kernels[index];
    double total = time.nanoseconds * 1e-9, calls = static_cast<double>(time.calls);
    inKernels += total;
    auto rate = [&](double amount) {
      return total > 0 ? fmt::format("{:.2f}", amount * calls / total * 1e-9) : "-";
    };
    rows.push_back({kernel.name, fmt::format("{}", time.calls), fmt::format("{:.2f}", total * 1e3),
                    fmt::format("{:.1f} %", 100 * total / seconds),
                    fmt::format("{:.1f}", total / calls * 1e6), rate(kernel.flops),
                    rate(kernel.bytes), kernel.sources ? kernel.sources : ""});
  }
  double rest = std::max(0.0, seconds - inKernels);
  rows.push_back({"outside kernels", "", fmt::format("{:.2f}", rest * 1e3),
                  fmt::format("{:.1f} %", 100 * rest / seconds), "", "", "",
                  "data, checkpoints, validation's sums"});
  return tableText(rows, "<>>>>>><");
}
