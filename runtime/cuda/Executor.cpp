//===- Executor.cpp - Functions of a program on the streams of a device ---------------------===//
#include "runtime/cuda/Executor.h"
#include "runtime/core/Program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

using namespace descent;
using namespace descent::cuda;

//===----------------------------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------------------------===//

/// The nearest to `wanted` that the device has: priorities are 0 and below, the lowest first.
static int priority(const Device &device, int wanted) {
  int least = 0, greatest = 0;
  device.check(device.driver().cuCtxGetStreamPriorityRange(&least, &greatest),
               "cuCtxGetStreamPriorityRange", "making streams");
  return std::max(wanted, greatest);
}

Stream::Stream(const Device &device, int wanted) : device(device) {
  device.check(device.driver().cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING,
                                                          priority(device, wanted)),
               "cuStreamCreateWithPriority", "making streams");
}

Stream::~Stream() { device.driver().cuStreamDestroy(handle); }

Event::Event(const Device &device, bool timed) : device(&device) {
  device.check(
      device.driver().cuEventCreate(&handle, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
      "cuEventCreate", "making events");
}

Event::Event(Event &&other) noexcept
    : device(other.device), handle(std::exchange(other.handle, nullptr)), recorded(other.recorded) {
}

Event::~Event() {
  if (handle)
    device->driver().cuEventDestroy(handle);
}

void Event::record(CUstream stream) {
  device->check(device->driver().cuEventRecord(handle, stream), "cuEventRecord", "training");
  recorded = true;
}

bool Event::finished() const {
  if (!recorded)
    return true;
  CUresult result = device->driver().cuEventQuery(handle);
  if (result != CUDA_ERROR_NOT_READY)
    device->check(result, "cuEventQuery", "training");
  return result == CUDA_SUCCESS;
}

void Event::wait() const {
  if (!finished())
    device->check(device->driver().cuEventSynchronize(handle), "cuEventSynchronize", "training");
}

void Event::orderBefore(CUstream stream) const {
  if (recorded)
    device->check(device->driver().cuStreamWaitEvent(stream, handle, 0), "cuStreamWaitEvent",
                  "training");
}

double Event::millisecondsSince(const Event &start) const {
  float milliseconds = 0;
  device->check(device->driver().cuEventElapsedTime(&milliseconds, start.handle, handle),
                "cuEventElapsedTime", "timing steps");
  return milliseconds;
}

//===----------------------------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------------------------===//

Executor::Executor(const Device &device, const descent_program &program, const DeviceBlock &block,
                   Products *products, const Options &options)
    : compute(device, 0), communication(device, -1), device(device), program(program), block(block),
      products(products), options(options), begin(device, false), end(device, false),
      kernelTimes(options.profile ? program.kernel_count : 0) {
  functions.reserve(program.function_count);
  for (uint64_t i = 0; i < program.function_count; ++i)
    prepare(program.functions[i]);
}

Executor::~Executor() {
  for (Prepared &prepared : functions) {
    if (prepared.executable)
      device.driver().cuGraphExecDestroy(prepared.executable);
    if (prepared.graph)
      device.driver().cuGraphDestroy(prepared.graph);
  }
}

void Executor::prepare(const descent_function &function) {
  Prepared &prepared = functions.emplace_back();
  prepared.function = &function;
  prepared.launches.resize(function.site_count);
  for (uint64_t i = 0; i < function.event_count; ++i)
    prepared.events.emplace_back(device, /*timed=*/false);
  for (uint64_t i = 0; i < function.site_count; ++i) {
    const descent_site &site = function.sites[i];
    Launch &launch = prepared.launches[i];
    launch.site = &site;
    std::vector<CUdeviceptr> operands(site.kernel->operand_count);
    for (size_t j = 0; j < operands.size(); ++j)
      operands[j] = block.arena(site.offsets[j]);
    prepareCommands(launch, site.kernel->commands, site.kernel->command_count, operands);
    if (options.profile) {
      prepared.before.emplace_back(device, /*timed=*/true);
      prepared.after.emplace_back(device, /*timed=*/true);
    }
  }
  if (device.drivers.emulation)
    findUndefined(prepared);
}

/// What messages of the emulator call an operand.
static std::string operandName(const descent_site &site, const descent_place &place) {
  if (place.operand == DESCENT_WORKSPACE)
    return fmt::format("the workspace from byte {} on", place.offset);
  uint64_t inputs = site.kernel->input_count, index = static_cast<uint64_t>(place.operand);
  std::string type = typeText(site.kernel->operands[index]);
  return index < inputs ? fmt::format("input {} ({}) of {}", index, type, site.source)
                        : fmt::format("output {} ({}), {}", index - inputs, type,
                                      site.outputs[index - inputs]);
}

void Executor::prepareCommands(Launch &launch, const descent_command *commands, uint64_t count,
                               const std::vector<CUdeviceptr> &operands) {
  auto addressOf = [&](const descent_place &place) {
    CUdeviceptr start = place.operand == DESCENT_WORKSPACE
                            ? block.workspace()
                            : operands[static_cast<size_t>(place.operand)];
    return start + place.offset;
  };
  for (uint64_t i = 0; i < count; ++i) {
    const descent_command &source = commands[i];
    if (source.kind == DESCENT_COMMAND_PRODUCT && !products->isAvailable(*source.product)) {
      prepareCommands(launch, source.product->otherwise, source.product->otherwise_count, operands);
      continue;
    }
    Command &command = launch.commands.emplace_back();
    command.source = &source;
    switch (source.kind) {
    case DESCENT_COMMAND_PRODUCT:
      command.product = products->bind(*source.product, operands.data(), block.workspace());
      break;
    case DESCENT_COMMAND_FILL:
      command.fill = addressOf(source.operands[0]);
      launch.usesWorkspace |= source.operands[0].operand == DESCENT_WORKSPACE;
      break;
    default:
      command.function = device.function(source.function, source.dynamic_shared);
      for (uint64_t j = 0; j < source.operand_count; ++j) {
        const descent_place &place = source.operands[j];
        launch.usesWorkspace |= place.operand == DESCENT_WORKSPACE;
        command.addresses.push_back(addressOf(place));
        if (!device.drivers.emulation)
          continue;
        command.rangeNames.push_back(operandName(*launch.site, place));
        command.ranges.push_back({addressOf(place), place.bytes, nullptr});
      }
      for (CUdeviceptr &address : command.addresses)
        command.arguments.push_back(&address);
      command.arguments.push_back(nullptr);
      for (size_t j = 0; j < command.ranges.size(); ++j)
        command.ranges[j].name = command.rangeNames[j].c_str();
      break;
    }
  }
}

/// Transient values of the function before hold nothing for this one: all that lies behind the
/// persistent part and is no input.
void Executor::findUndefined(Prepared &prepared) {
  std::vector<std::pair<uint64_t, uint64_t>> inputs;
  for (uint64_t i = 0; i < program.input_count; ++i)
    inputs.emplace_back(program.inputs[i].tensor.offset,
                        program.inputs[i].tensor.offset + program.inputs[i].tensor.bytes);
  std::sort(inputs.begin(), inputs.end());
  uint64_t next = program.memory.persistent;
  auto add = [&](uint64_t from, uint64_t to) {
    if (from < to)
      prepared.undefined.push_back({block.arena(from), to - from, nullptr});
  };
  for (auto [first, last] : inputs) {
    add(next, first);
    next = std::max(next, last);
  }
  add(next, program.memory.arena);
}

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

void Executor::run(const Launch &launch, const Command &command, CUstream stream) {
  const descent_command &source = *command.source;
  switch (source.kind) {
  case DESCENT_COMMAND_PRODUCT:
    products->enqueue(command.product, stream);
    return;
  case DESCENT_COMMAND_FILL:
    device.check(device.driver().cuMemsetD8Async(command.fill,
                                                 static_cast<unsigned char>(source.value),
                                                 source.operands[0].bytes, stream),
                 "cuMemsetD8Async", launch.site->kernel->name);
    return;
  default:
    break;
  }
  if (device.drivers.emulation)
    device.drivers.emulation->limitNextLaunch(command.ranges.data(), command.ranges.size());
  CUresult result = device.driver().cuLaunchKernel(
      command.function, source.grid[0], source.grid[1], source.grid[2], source.block[0],
      source.block[1], source.block[2], source.dynamic_shared, stream,
      const_cast<void **>(command.arguments.data()), nullptr);
  if (result != CUDA_SUCCESS)
    device.fail(
        result, "cuLaunchKernel",
        fmt::format("launching {} ({} x {} x {} blocks of {} x {} x {} threads, {} bytes of "
                    "dynamic shared memory) for {}",
                    source.function, source.grid[0], source.grid[1], source.grid[2],
                    source.block[0], source.block[1], source.block[2], source.dynamic_shared,
                    launch.site->source));
}

void Executor::run(const Launch &launch, CUstream stream) {
  if (device.drivers.emulation && launch.usesWorkspace)
    device.check(device.drivers.emulation->forget(block.workspace(),
                                                  program.memory.device_workspace, stream),
                 "forget", launch.site->kernel->name);
  for (const Command &command : launch.commands)
    run(launch, command, stream);
}

void Executor::enqueueAll(Prepared &prepared, LaunchObserver *observer) {
  for (const NamedRange &range : prepared.undefined)
    device.check(device.drivers.emulation->forget(range.address, range.bytes, compute), "forget",
                 prepared.function->name);
  begin.record(compute);
  begin.orderBefore(communication);
  for (size_t i = 0; i < prepared.launches.size(); ++i) {
    const Launch &launch = prepared.launches[i];
    const descent_site &site = *launch.site;
    // Whoever looks at memory between two launches sees them in their order.
    CUstream stream = site.stream == DESCENT_STREAM_COMMUNICATION && !observer
                          ? static_cast<CUstream>(communication)
                          : static_cast<CUstream>(compute);
    for (uint64_t j = 0; j < site.wait_count && !observer; ++j)
      prepared.events[static_cast<size_t>(site.waits[j])].orderBefore(stream);
    if (observer)
      observer->before(site, site.offsets);
    if (options.profile)
      prepared.before[i].record(stream);
    run(launch, stream);
    if (options.profile)
      prepared.after[i].record(stream);
    if (observer)
      observer->after(site, site.offsets);
    if (site.record >= 0 && !observer)
      prepared.events[static_cast<size_t>(site.record)].record(stream);
  }
  end.record(communication);
  end.orderBefore(compute);
  prepared.timed = options.profile;
}

void Executor::capture(Prepared &prepared) {
  const Driver &driver = device.driver();
  auto check = [&](CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
      device.fail(result, call,
                  fmt::format("making a graph of the {} launches of '{}'", prepared.launches.size(),
                              prepared.function->name));
  };
  check(driver.cuStreamBeginCapture(compute, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  try {
    enqueueAll(prepared, nullptr);
  } catch (...) {
    // Ends the capture, which is what the stream needs to be destroyed.
    CUgraph broken = nullptr;
    if (driver.cuStreamEndCapture(compute, &broken) == CUDA_SUCCESS && broken)
      driver.cuGraphDestroy(broken);
    throw;
  }
  check(driver.cuStreamEndCapture(compute, &prepared.graph), "cuStreamEndCapture");
  check(driver.cuGraphInstantiate(&prepared.executable, prepared.graph,
                                  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
        "cuGraphInstantiateWithFlags");
  check(driver.cuGraphUpload(prepared.executable, compute), "cuGraphUpload");
}

void Executor::enqueue(const descent_function &function, LaunchObserver *observer) {
  Prepared &prepared = functions[static_cast<size_t>(&function - program.functions)];
  if (!options.graph || options.profile || observer)
    return enqueueAll(prepared, observer);
  if (!prepared.executable)
    capture(prepared);
  CUresult result = device.driver().cuGraphLaunch(prepared.executable, compute);
  if (result != CUDA_SUCCESS)
    device.fail(result, "cuGraphLaunch", fmt::format("launching the graph of '{}'", function.name));
}

void Executor::collectTimes() {
  for (Prepared &prepared : functions) {
    if (!prepared.timed)
      continue;
    prepared.timed = false;
    for (size_t i = 0; i < prepared.launches.size(); ++i) {
      KernelTime &time =
          kernelTimes[static_cast<size_t>(prepared.launches[i].site->kernel - program.kernels)];
      ++time.calls;
      time.nanoseconds +=
          static_cast<uint64_t>(prepared.after[i].millisecondsSince(prepared.before[i]) * 1e6);
    }
  }
}
