//===- DriverModules.cpp - Modules, functions and launches of the emulated driver -----------===//

#include "runtime/core/Error.h"
#include "runtime/emulator/DriverCalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace descent::emulator {

using namespace cuda;

static thread_local std::vector<Limit> limits;

std::vector<Limit> takeLimits() { return std::exchange(limits, {}); }

/// Compute capability's limit of shared memory for a block that asked for it.
uint64_t optInShared() {
  int capability = state().settings.capability;
  return capability >= 90 ? sharedLimit : capability == 80 ? 166912 : 101376;
}

FunctionObject &functionOf(CUfunction function) {
  for (const auto &module : state().modules)
    for (const auto &[name, object] : module->functions)
      if (object.get() == reinterpret_cast<FunctionObject *>(function)) {
        if (!module->live)
          refuse(CUDA_ERROR_INVALID_HANDLE,
                 fmt::format("function '{}': its module was unloaded", name));
        return *object;
      }
  refuse(CUDA_ERROR_INVALID_HANDLE,
         fmt::format("{} is no function", static_cast<const void *>(function)));
}

static ModuleObject &moduleOf(CUmodule handle) {
  for (const auto &module : state().modules)
    if (reinterpret_cast<CUmodule>(module.get()) == handle && module->live)
      return *module;
  refuse(CUDA_ERROR_INVALID_HANDLE, fmt::format("{} is no module, or one that was unloaded",
                                                static_cast<const void *>(handle)));
}

/// What a launch may ask for: 48 KiB without being told, static shared memory counted.
static uint64_t dynamicShared(const FunctionObject &function) {
  return std::max(function.dynamicLimit, staticSharedLimit - function.fixedShared);
}

static size_t parameterOffset(const descent_emulated_kernel &kernel, size_t index) {
  size_t offset = 0;
  for (size_t i = 0;; ++i) {
    size_t alignment = std::min<size_t>(kernel.parameters[i].bytes, 8);
    offset = (offset + alignment - 1) / alignment * alignment;
    if (i == index)
      return offset;
    offset += kernel.parameters[i].bytes;
  }
}

static CUresult resultOf(Check check) {
  switch (check) {
  case Check::OutOfBounds:
  case Check::UseAfterFree:
  case Check::HostPointer:
  case Check::ReadOnly:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case Check::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case Check::Trap:
    return CUDA_ERROR_ASSERT;
  case Check::Operand:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  default: // what hardware would not notice, or hang at
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

namespace calls {

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *,
                            void **) {
  refuseInCapture("cuModuleLoadDataEx");
  State &s = state();
  uint32_t version;
  std::memcpy(&version, image, sizeof version);
  // PTX begins with text and a cubin with "\x7f" "ELF".
  if (version != DESCENT_EMULATOR_VERSION)
    refuse(CUDA_ERROR_INVALID_IMAGE,
           "cuModuleLoadDataEx: the image is not an emulated module of this version; the emulator "
           "runs code that was compiled for cuda-emulated, not PTX or cubins");
  EmulatedDevice &device = current();
  auto object = std::make_unique<ModuleObject>();
  object->number = static_cast<int>(s.modules.size()) + 1;
  object->device = &device;
  object->code = static_cast<const descent_emulated_module *>(image);
  device.engine.load(*object->code);
  for (uint32_t i = 0; i < object->code->variable_count; ++i)
    object->addresses.push_back(*object->code->variables[i].address);
  *module = reinterpret_cast<CUmodule>(object.get());
  s.modules.push_back(std::move(object));
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule handle) {
  refuseInCapture("cuModuleUnload");
  ModuleObject &module = moduleOf(handle);
  for (const auto &stream : state().streams) // as on hardware, where its memory goes
    if (stream->device == module.device)
      drain(*stream);
  for (uint32_t i = 0; i < module.code->variable_count; ++i)
    if (!module.code->variables[i].shared)
      module.device->engine.memory.release(module.addresses[i]);
  module.live = false;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  ModuleObject &module = moduleOf(handle);
  auto &object = module.functions[name];
  if (!object) {
    auto made = std::make_unique<FunctionObject>();
    made->module = &module;
    try {
      made->kernel = &Device::find(*module.code, name);
    } catch (const Error &error) {
      module.functions.erase(name);
      refuse(CUDA_ERROR_NOT_FOUND, fmt::format("cuModuleGetFunction: {}", error.what()));
    }
    made->fixedShared = Device::fixedShared(*module.code, *made->kernel);
    object = std::move(made);
  }
  *function = reinterpret_cast<CUfunction>(object.get());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name) {
  ModuleObject &module = moduleOf(handle);
  for (uint32_t i = 0; i < module.code->variable_count; ++i) {
    const descent_emulated_variable &variable = module.code->variables[i];
    if (variable.shared || std::strcmp(variable.name, name) != 0)
      continue;
    if (address)
      *address = module.addresses[i];
    if (bytes)
      *bytes = variable.bytes;
    return CUDA_SUCCESS;
  }
  refuse(CUDA_ERROR_NOT_FOUND,
         fmt::format("cuModuleGetGlobal: the module has no variable '{}'", name));
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  FunctionObject &function = functionOf(handle);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = function.kernel->max_threads ? static_cast<int>(function.kernel->max_threads) : 1024;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = static_cast<int>(function.fixedShared);
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: // retargeted code has none; what always fits
    *value = 32;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = static_cast<int>(dynamicShared(function));
    return CUDA_SUCCESS;
  }
  refuse(CUDA_ERROR_INVALID_VALUE,
         fmt::format("cuFuncGetAttribute: the emulator does not know attribute {}",
                     static_cast<int>(attribute)));
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  FunctionObject &function = functionOf(handle);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("cuFuncSetAttribute: attribute {} cannot be set",
                                                 static_cast<int>(attribute)));
  if (value < 0 || value + function.fixedShared > optInShared())
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuFuncSetAttribute: {} bytes of dynamic shared memory for '{}', which has "
                       "{} of static; a block of this device has {} in all",
                       value, function.kernel->name, function.fixedShared, optInShared()));
  function.dynamicLimit = static_cast<uint64_t>(value);
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
  functionOf(handle);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes) {
  const descent_emulated_kernel &kernel = *functionOf(handle).kernel;
  if (index >= kernel.parameter_count) // how a caller finds their number
    throw Refusal{CUDA_ERROR_INVALID_VALUE,
                  fmt::format("cuFuncGetParamInfo: '{}' has {} parameters", kernel.name,
                              kernel.parameter_count),
                  true};
  *offset = parameterOffset(kernel, index);
  if (bytes)
    *bytes = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                     size_t dynamic) {
  FunctionObject &function = functionOf(handle);
  if (threads < 1 || threads > 1024)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuOccupancyMaxActiveBlocksPerMultiprocessor: {} threads", threads));
  uint64_t shared = function.fixedShared + dynamic + 1024;
  uint64_t byShared = (optInShared() + 1024) / shared,
           byThreads = 2048 / ((threads + 31) / 32 * 32);
  *blocks = static_cast<int>(std::min<uint64_t>({byShared, byThreads, 32}));
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------------------------===//

/// The values of the parameters, of `parameters` or of `extra`.
static std::vector<std::vector<char>> values(const descent_emulated_kernel &kernel,
                                             void **parameters, void **extra) {
  std::vector<std::vector<char>> result;
  if (parameters && extra)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuLaunchKernel of '{}': parameters are given twice, as an array and as a "
                       "buffer (`extra`)",
                       kernel.name));
  if (extra) {
    const char *buffer = nullptr;
    size_t size = 0;
    for (void **at = extra; reinterpret_cast<uintptr_t>(*at) != CU_LAUNCH_PARAM_END_AS_INT; at += 2)
      if (reinterpret_cast<uintptr_t>(*at) == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT)
        buffer = static_cast<const char *>(at[1]);
      else
        size = *static_cast<size_t *>(at[1]);
    size_t end = 0;
    for (uint32_t i = 0; i < kernel.parameter_count; ++i)
      end = parameterOffset(kernel, i) + kernel.parameters[i].bytes;
    if (size != end || !buffer)
      refuse(CUDA_ERROR_INVALID_VALUE,
             fmt::format("cuLaunchKernel of '{}': the buffer of parameters has {} bytes; its {} "
                         "parameters take {}",
                         kernel.name, size, kernel.parameter_count, end));
    for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
      const char *from = buffer + parameterOffset(kernel, i);
      result.emplace_back(from, from + kernel.parameters[i].bytes);
    }
    return result;
  }
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
    if (!parameters || !parameters[i])
      refuse(CUDA_ERROR_INVALID_VALUE,
             fmt::format("cuLaunchKernel of '{}': {} values are given; it has {} parameters, and "
                         "parameter {} is a {} of {} bytes",
                         kernel.name, i, kernel.parameter_count, i, kernel.parameters[i].type,
                         kernel.parameters[i].bytes));
    const char *from = static_cast<const char *>(parameters[i]);
    result.emplace_back(from, from + kernel.parameters[i].bytes);
  }
  if (parameters && parameters[kernel.parameter_count])
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuLaunchKernel of '{}': more values are given than its {} parameters; the "
                       "array must end in a null pointer behind the last",
                       kernel.name, kernel.parameter_count));
  return result;
}

/// Pointers among the parameters that are none of the device, or of freed memory; the others go to
/// `uses`.
static void checkPointers(StreamObject &stream, const LaunchRequest &request,
                          std::vector<CUdeviceptr> &uses) {
  const DeviceMemory &memory = stream.device->engine.memory;
  for (uint32_t i = 0; i < request.kernel->parameter_count; ++i) {
    const descent_emulated_parameter &parameter = request.kernel->parameters[i];
    if (!std::string_view(parameter.type).starts_with("ptr") || parameter.bytes != 8)
      continue;
    CUdeviceptr value;
    std::memcpy(&value, request.parameters[i].data(), 8);
    if (!value)
      continue;
    auto refuseValue = [&](const std::string &why) {
      refuse(CUDA_ERROR_INVALID_VALUE,
             fmt::format("cuLaunchKernel of '{}': argument {} ('{}') is 0x{:x}, {}",
                         request.kernel->name, i, parameter.name, value, why));
    };
    if (!isDeviceAddress(value))
      refuseValue("a host pointer; copy the data to memory of the device and pass that address");
    const Region *region = memory.find(value);
    if (!region)
      refuseValue("an address of the device where nothing is allocated");
    if (!region->live)
      refuseValue(region->name + ", which was freed");
    uses.push_back(value);
  }
}

CUresult cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        CUstream streamHandle, void **parameters, void **extra) {
  std::vector<Limit> limits = takeLimits();
  FunctionObject &function = functionOf(handle);
  StreamObject &stream = streamOf(streamHandle);
  if (function.module->device != stream.device)
    refuse(CUDA_ERROR_INVALID_HANDLE,
           fmt::format("cuLaunchKernel of '{}': its module is loaded on device {}, the stream is "
                       "of device {}",
                       function.kernel->name, function.module->device->ordinal,
                       stream.device->ordinal));
  auto request = std::make_shared<LaunchRequest>();
  request->module = function.module->code;
  request->kernel = function.kernel;
  request->grid = {gridX, gridY, gridZ};
  request->block = {blockX, blockY, blockZ};
  request->dynamicShared = sharedBytes;
  request->limits = std::move(limits);
  request->parameters = values(*function.kernel, parameters, extra);
  if (sharedBytes > dynamicShared(function))
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuLaunchKernel of '{}': {} bytes of dynamic shared memory, but it may have "
                       "{}; more than 48 KiB are asked for with cuFuncSetAttribute("
                       "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), up to {}",
                       function.kernel->name, sharedBytes, dynamicShared(function),
                       optInShared() - function.fixedShared));
  try {
    Device::checkLaunch(*request);
  } catch (const Error &error) {
    refuse(CUDA_ERROR_INVALID_VALUE, fmt::format("cuLaunchKernel: {}", error.what()));
  }
  auto task = std::make_shared<Task>();
  task->name = fmt::format("kernel '{}'", function.kernel->name);
  checkPointers(stream, *request, task->uses);
  ModuleObject *module = function.module;
  task->run = [request, module](Execution &execution) {
    // The same code may be loaded on another device, where its variables have other addresses.
    // Those of shared memory are the code's own, and constants.
    for (uint32_t i = 0; i < module->code->variable_count; ++i)
      if (!module->code->variables[i].shared)
        *module->code->variables[i].address = module->addresses[i];
    ++state().launches;
    Device &engine = execution.device.engine;
    std::optional<Fault> fault = engine.launch(*request);
    std::vector<DeviceMemory::Touched> touched = engine.memory.takeTouched();
    if (fault)
      throw DeviceFault{resultOf(fault->check), fault->message};
    if (!state().settings.ordering)
      return;
    for (const DeviceMemory::Touched &part : touched) {
      if (part.read)
        execution.touchPart(*part.region, part.part, false);
      if (part.written)
        execution.touchPart(*part.region, part.part, true);
    }
  };
  submit(stream, std::move(task));
  return CUDA_SUCCESS;
}

} // namespace calls

//===----------------------------------------------------------------------------------------===//
// What only the emulator can be told
//===----------------------------------------------------------------------------------------===//

static void limitNextLaunch(const NamedRange *ranges, uint64_t count) {
  limits.clear();
  for (uint64_t i = 0; i < count; ++i)
    limits.push_back({ranges[i].address, ranges[i].bytes, ranges[i].name ? ranges[i].name : ""});
}

static CUresult forget(CUdeviceptr address, uint64_t bytes, CUstream handle) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  try {
    StreamObject &stream = streamOf(handle);
    if (!bytes)
      return CUDA_SUCCESS;
    auto task = std::make_shared<Task>();
    task->name = fmt::format("end of the life of {} bytes", bytes);
    task->uses = {address};
    task->run = [address, bytes](Execution &execution) {
      Region &region = execution.find(address, bytes, "what forgets memory", true);
      execution.touch(region, address - region.address, bytes, true);
      region.markUnwritten(address - region.address, bytes);
    };
    submit(stream, std::move(task));
    return stream.device->error;
  } catch (const Refusal &refusal) {
    state().report(refusal.message);
    return refusal.result;
  }
}

static void nameAllocation(CUdeviceptr address, const char *name) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  for (const auto &device : state().devices)
    if (Region *region = device->engine.memory.find(address))
      region->name = name;
}

static const char *lastText() {
  static thread_local std::string text;
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  text = state().message;
  return text.empty() ? nullptr : text.c_str();
}

} // namespace descent::emulator

extern "C" const descent::cuda::Emulation descent_emulated_emulation = {
    descent::emulator::limitNextLaunch, descent::emulator::forget,
    descent::emulator::nameAllocation, descent::emulator::lastText};
