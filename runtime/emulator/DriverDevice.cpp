//===- DriverDevice.cpp - Devices, contexts and memory of the emulated driver ---------------===//

#include "runtime/core/Error.h"
#include "runtime/emulator/DriverCalls.h"

#include <fmt/format.h>

#include <cstring>
#include <sys/mman.h>

namespace descent::emulator {

using namespace cuda;

// A context is its device: there is only the primary one.
static thread_local CUcontext context = nullptr;

CUcontext currentContext() { return context; }
void setContext(CUcontext chosen) { context = chosen; }
void forgetContext() { context = nullptr; }

EmulatedDevice &current() {
  if (!context)
    refuse(CUDA_ERROR_INVALID_CONTEXT,
           "the calling thread has no current context; each thread calls cuCtxSetCurrent");
  auto &device = *reinterpret_cast<EmulatedDevice *>(context);
  if (!device.retained)
    refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED,
           fmt::format("the context of device {} was released", device.ordinal));
  return device;
}

/// Pending work that touches the range. For memory of the host where `host`.
static const Operation *pendingUse(const EmulatedDevice *device, uint64_t address, uint64_t bytes,
                                   bool host) {
  for (const auto &[number, operation] : state().queue.waiting()) {
    const Task &task = *operation->task;
    if (task.device->error != CUDA_SUCCESS) // it will not run
      continue;
    if (host) {
      auto begin = reinterpret_cast<uintptr_t>(task.host.address);
      if (task.host.bytes && begin < address + bytes && address < begin + task.host.bytes)
        return operation.get();
      continue;
    }
    if (task.device != device)
      continue;
    for (CUdeviceptr use : task.uses)
      if (use >= address && use < address + bytes)
        return operation.get();
  }
  return nullptr;
}

static void refusePending(const char *call, const std::string &what, const Operation *operation) {
  if (operation)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{} of {} while {} on {}, which was enqueued and has not run, uses it; wait "
                       "for the stream first (cuStreamSynchronize)",
                       call, what, operation->task->name,
                       state().timelineText(operation->stamp.timeline)));
}

namespace calls {

CUresult cuInit(unsigned flags) {
  if (flags)
    refuse(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
  if (state().devices.empty())
    throw Refusal{CUDA_ERROR_NO_DEVICE, "DESCENT_EMULATOR_DEVICES=0: there is no device", true};
  state().initialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  *text = errorName(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = errorMeaning(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
  *count = static_cast<int>(state().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = deviceOf(ordinal).ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  std::string text = fmt::format("emulated device {}", deviceOf(device).ordinal);
  if (length <= 0)
    refuse(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetName: no room for a name");
  size_t count = std::min(text.size(), static_cast<size_t>(length) - 1);
  std::memcpy(name, text.data(), count);
  name[count] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  std::memset(uuid, 0, sizeof *uuid);
  std::memcpy(uuid->bytes, "emulated", 8);
  uuid->bytes[15] = static_cast<char>(deviceOf(device).ordinal);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  deviceOf(device);
  *bytes = state().settings.memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  deviceOf(device);
  int capability = state().settings.capability;
  bool small = capability == 86 || capability == 89;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = 1024;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = static_cast<int>(staticSharedLimit);
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    *value = 32;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    *value = 1000000;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 4;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
  case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    *value = device;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    *value = 1000000;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = 64;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    *value = 4 << 20;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    *value = small ? 1536 : 2048;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = capability / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = capability % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    *value = 65536;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = static_cast<int>(optInShared());
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    *value = static_cast<int>(optInShared()) + 1024;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    *value = 1024;
    return CUDA_SUCCESS;
  }
  refuse(CUDA_ERROR_INVALID_VALUE,
         fmt::format("cuDeviceGetAttribute: the emulator does not know attribute {}",
                     static_cast<int>(attribute)));
}

//===----------------------------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------------------------===//

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  deviceOf(device).flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  EmulatedDevice &chosen = deviceOf(device);
  ++chosen.retained;
  *context = reinterpret_cast<CUcontext>(&chosen);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  EmulatedDevice &chosen = deviceOf(device);
  if (!chosen.retained)
    refuse(
        CUDA_ERROR_INVALID_CONTEXT,
        fmt::format("cuDevicePrimaryCtxRelease: the context of device {} is not retained", device));
  for (const auto &[number, operation] : state().queue.waiting())
    if (operation->task->device == &chosen && chosen.retained == 1 && chosen.error == CUDA_SUCCESS)
      refusePending("cuDevicePrimaryCtxRelease", fmt::format("device {}", device), operation.get());
  --chosen.retained;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext chosen) {
  for (const auto &device : state().devices)
    if (!chosen || reinterpret_cast<CUcontext>(device.get()) == chosen) {
      setContext(chosen);
      return CUDA_SUCCESS;
    }
  refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxSetCurrent: that is no context");
}

CUresult cuCtxGetCurrent(CUcontext *into) {
  *into = currentContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  refuseInCapture("cuCtxSynchronize");
  EmulatedDevice &device = current();
  for (const auto &stream : state().streams)
    if (stream->device == &device)
      drain(*stream);
  return device.error;
}

//===----------------------------------------------------------------------------------------===//
// Memory of the device
//===----------------------------------------------------------------------------------------===//

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  uint64_t used = current().engine.memory.bytesInUse();
  *total = state().settings.memory;
  *free = *total - std::min<uint64_t>(used, *total);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  refuseInCapture("cuMemAlloc");
  EmulatedDevice &device = current();
  if (!bytes)
    refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc of 0 bytes");
  uint64_t used = device.engine.memory.bytesInUse(), all = state().settings.memory;
  if (used > all || bytes > all - used)
    throw Refusal{
        CUDA_ERROR_OUT_OF_MEMORY,
        fmt::format("cuMemAlloc of {} bytes; device {} has {} bytes, of which {} are free "
                    "(DESCENT_EMULATOR_MEMORY sets how many it has)",
                    bytes, device.ordinal, all, all - std::min(used, all)),
        true};
  *address =
      device.engine.memory.allocate(bytes, fmt::format("allocation {}", ++device.allocations));
  device.allocated[*address] = bytes;
  device.peak = std::max(device.peak, used + bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  refuseInCapture("cuMemFree");
  EmulatedDevice &device = current();
  if (!address)
    return CUDA_SUCCESS;
  auto found = device.allocated.find(address);
  if (found == device.allocated.end()) {
    const Region *region = device.engine.memory.find(address);
    if (region && region->address == address && !region->live)
      refuse(CUDA_ERROR_INVALID_VALUE,
             fmt::format("cuMemFree: double free of {} ({} bytes at 0x{:x}); set the pointer to 0 "
                         "where it is freed",
                         region->name, region->bytes, address));
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("cuMemFree: argument 0x{:x} is {}", address,
                       isDeviceAddress(address) ? "not the start of an allocation; it is " +
                                                      device.engine.memory.describe(address)
                                                : "no address of the device"));
  }
  Region *region = device.engine.memory.find(address);
  refusePending("cuMemFree", region->name, pendingUse(&device, address, found->second, false));
  device.engine.memory.release(address);
  device.shadows.erase(address);
  device.allocated.erase(found);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------------------------===//
// Pinned memory of the host
//===----------------------------------------------------------------------------------------===//

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  refuseInCapture("cuMemHostAlloc");
  if (!bytes)
    refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostAlloc of 0 bytes");
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Refusal{CUDA_ERROR_OUT_OF_MEMORY,
                  fmt::format("cuMemHostAlloc of {} bytes: {}", bytes, std::strerror(errno)), true};
  // Pinned memory is not cleared by CUDA either.
  std::memset(memory, 0xff, bytes);
  state().pinned[reinterpret_cast<uintptr_t>(memory)] = {bytes, false};
  *address = memory;
  return CUDA_SUCCESS;
}

static PinnedMemory findPinned(const char *call, void *address, bool registered) {
  auto found = state().pinned.find(reinterpret_cast<uintptr_t>(address));
  if (found == state().pinned.end())
    refuse(registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE,
           fmt::format("{}: {} is not the start of {} host memory (or was given back before)", call,
                       address, registered ? "registered" : "pinned"));
  if (found->second.registered != registered)
    refuse(CUDA_ERROR_INVALID_VALUE,
           fmt::format("{} of memory that {}", call,
                       registered ? "came from cuMemHostAlloc; give it back with cuMemFreeHost"
                                  : "was registered; give it back with cuMemHostUnregister"));
  refusePending(call, fmt::format("{} bytes of host memory", found->second.bytes),
                pendingUse(nullptr, found->first, found->second.bytes, true));
  PinnedMemory memory = found->second;
  state().pinned.erase(found);
  return memory;
}

CUresult cuMemFreeHost(void *address) {
  refuseInCapture("cuMemFreeHost");
  munmap(address, findPinned("cuMemFreeHost", address, false).bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *address, size_t bytes, unsigned) {
  refuseInCapture("cuMemHostRegister");
  auto begin = reinterpret_cast<uintptr_t>(address);
  if (!begin || !bytes)
    refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostRegister of no memory");
  for (auto [other, memory] : state().pinned)
    if (begin < other + memory.bytes && other < begin + bytes)
      refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
             fmt::format("cuMemHostRegister: of {} bytes at {}, some are pinned already", bytes,
                         address));
  state().pinned[begin] = {bytes, true};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *address) {
  refuseInCapture("cuMemHostUnregister");
  findPinned("cuMemHostUnregister", address, true);
  return CUDA_SUCCESS;
}

} // namespace calls
} // namespace descent::emulator
