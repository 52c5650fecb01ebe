//===- Emulator.cpp - Modules and launches --------------------------------===//

#include "runtime/emulator/Emulator.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace descent::emulator {

static constexpr struct {
  const char *name;
  bool optional;
} checks[checkCount] = {
    {"out-of-bounds", false}, {"use-after-free", false}, {"host-pointer", false},
    {"misaligned", true},     {"read-only", false},      {"uninitialised", true},
    {"race", true},           {"divergence", false},     {"shuffle", true},
    {"deadlock", false},      {"trap", false},           {"operand", false},
};

const char *checkName(Check check) { return checks[uint32_t(check)].name; }
bool isOptional(Check check) { return checks[uint32_t(check)].optional; }

void Device::load(const descent_emulated_module &module) {
  if (module.version != DESCENT_EMULATOR_VERSION)
    throw Error(fmt::format("emulator: the module is of version {}, this emulator of version {}; "
                            "compile it again",
                            module.version, DESCENT_EMULATOR_VERSION));
  for (uint32_t i = 0; i < module.variable_count; ++i) {
    const descent_emulated_variable &variable = module.variables[i];
    if (variable.shared)
      continue;
    uint64_t address = memory.allocate(variable.bytes, fmt::format("variable @{}", variable.name),
                                       variable.alignment);
    if (variable.image)
      memory.copyIn(address, variable.image, variable.bytes);
    memory.find(address)->readOnly = variable.constant;
    *variable.address = address;
  }
}

const descent_emulated_kernel &Device::find(const descent_emulated_module &module,
                                            std::string_view name) {
  std::string known;
  for (uint32_t i = 0; i < module.kernel_count; ++i) {
    if (module.kernels[i].name == name)
      return module.kernels[i];
    known += fmt::format("{}{}", i ? ", " : "", module.kernels[i].name);
  }
  throw Error(fmt::format("there is no kernel '{}'; the module has {}", name,
                          known.empty() ? "none" : known));
}

uint64_t Device::fixedShared(const descent_emulated_module &module,
                             const descent_emulated_kernel &kernel, bool *dynamic) {
  uint64_t fixed = 0;
  for (uint32_t i = 0; i < kernel.shared_count; ++i) {
    const descent_emulated_variable &variable = module.variables[kernel.shared[i]];
    if (dynamic)
      *dynamic |= variable.bytes == 0;
    fixed =
        (fixed + variable.alignment - 1) / variable.alignment * variable.alignment + variable.bytes;
  }
  return fixed;
}

uint32_t Device::checkLaunch(const LaunchRequest &request) {
  const descent_emulated_kernel &kernel = *request.kernel;
  auto refuse = [&](const std::string &reason) {
    throw Error(fmt::format("kernel '{}' cannot be launched: {}", kernel.name, reason));
  };
  const Dim &grid = request.grid, &block = request.block;
  if (grid.count() == 0 || block.count() == 0)
    refuse("no dimension of the grid or of a block may be 0");
  if (block.count() > 1024 || block.z > 64)
    refuse(fmt::format("a block of {} x {} x {} threads; at most 1024, and 64 in z", block.x,
                       block.y, block.z));
  if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffff)
    refuse("a grid has at most 2^31 - 1 blocks in x and 65535 in y and z");
  if (kernel.max_threads && block.count() > kernel.max_threads)
    refuse(fmt::format("{} threads, but it was compiled for at most {} (nvvm.maxntid)",
                       block.count(), kernel.max_threads));
  const uint32_t *exact = kernel.exact_threads;
  if (exact[0] && (block.x != exact[0] || block.y != exact[1] || block.z != exact[2]))
    refuse(fmt::format("it was compiled for blocks of exactly {} x {} x {} threads (nvvm.reqntid)",
                       exact[0], exact[1], exact[2]));
  bool dynamic = false;
  uint64_t fixed = fixedShared(*request.module, kernel, &dynamic);
  if (fixed > staticSharedLimit)
    refuse(
        fmt::format("it declares {} bytes of static shared memory; more than {} do not assemble, "
                    "dynamic shared memory may be larger",
                    fixed, staticSharedLimit));
  if (fixed + request.dynamicShared > sharedLimit)
    refuse(fmt::format("{} bytes of static and {} of dynamic shared memory; a block has at most {}",
                       fixed, request.dynamicShared, sharedLimit));
  if (dynamic && !request.dynamicShared)
    refuse("it uses dynamic shared memory, but the launch asks for 0 bytes of it");
  if (request.parameters.size() != kernel.parameter_count)
    refuse(fmt::format("it has {} parameters, {} values are given", kernel.parameter_count,
                       request.parameters.size()));
  for (uint32_t i = 0; i < kernel.parameter_count; ++i)
    if (request.parameters[i].size() != kernel.parameters[i].bytes)
      refuse(fmt::format("parameter {} ({}) has {} bytes, the value given has {}", i,
                         kernel.parameters[i].type, kernel.parameters[i].bytes,
                         request.parameters[i].size()));
  return static_cast<uint32_t>(fixed) + request.dynamicShared;
}

std::optional<Fault> Device::launch(const LaunchRequest &request) {
  if (failed)
    throw Error("an earlier launch failed, and a device is of no use after that");
  uint32_t shared = checkLaunch(request);
  // Aggregates live in memory of the device, where a kernel may read them through any pointer.
  std::vector<uint64_t> copies;
  copies.reserve(request.parameters.size());
  std::vector<void *> values;
  for (uint32_t i = 0; i < request.kernel->parameter_count; ++i) {
    const auto &parameter = request.kernel->parameters[i];
    const std::vector<char> &value = request.parameters[i];
    if (!parameter.by_value) {
      values.push_back(const_cast<char *>(value.data()));
      continue;
    }
    copies.push_back(memory.allocate(value.size(), fmt::format("parameter {}", i)));
    memory.copyIn(copies.back(), value.data(), value.size());
    memory.find(copies.back())->readOnly = true;
    values.push_back(&copies.back());
  }
  Grid grid{request.module,        request.kernel, request.grid, request.block,
            request.dynamicShared, shared,         values.data()};
  uint64_t blocks = request.grid.count();
  std::vector<uint64_t> order;
  if (options.order.kind == Order::Shuffled) {
    order.resize(blocks);
    std::iota(order.begin(), order.end(), UINT64_C(0));
    uint64_t state = options.order.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (uint64_t i = blocks; i > 1; --i) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      std::swap(order[i - 1], order[(state >> 33) % i]);
    }
  }
  runner.beginLaunch(request.limits);
  std::optional<Fault> fault;
  for (uint64_t i = 0; i < blocks && !fault; ++i) {
    uint64_t number = options.order.kind == Order::Reverse    ? blocks - 1 - i
                      : options.order.kind == Order::Shuffled ? order[i]
                                                              : i;
    Dim position{static_cast<uint32_t>(number % request.grid.x),
                 static_cast<uint32_t>(number / request.grid.x % request.grid.y),
                 static_cast<uint32_t>(number / request.grid.x / request.grid.y)};
    fault = runner.run(grid, position, options);
  }
  for (uint64_t copy : copies)
    memory.release(copy);
  memory.trimShadows(UINT64_C(256) << 20);
  failed = fault.has_value();
  return fault;
}

} // namespace descent::emulator
