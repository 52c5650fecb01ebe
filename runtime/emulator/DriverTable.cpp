//===- DriverTable.cpp - The table of the emulated driver -----------------------------------===//
//
// Every function of the table counts its calls, takes the lock, sees to it that there is a context
// where one is needed and that the device has not failed, and turns a refusal into CUDA's error
// code and a message.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/emulator/DriverCalls.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>

namespace descent::emulator {

using namespace cuda;

namespace {

enum Index : size_t {
#define DESCENT_INDEX(field, symbol, result, parameters) Index_##field,
  DESCENT_CUDA_DRIVER(DESCENT_INDEX) DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_INDEX)
#undef DESCENT_INDEX
      functionCount
};

constexpr const char *functionNames[] = {
#define DESCENT_NAME(field, symbol, result, parameters) #field,
    DESCENT_CUDA_DRIVER(DESCENT_NAME) DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_NAME)
#undef DESCENT_NAME
};

std::atomic<uint64_t> callCounts[functionCount];

/// What a call needs before it does anything.
enum Need { Nothing, Initialised, Context };
constexpr Need needOf(size_t index) {
  switch (index) {
  case Index_cuInit:
  case Index_cuDriverGetVersion:
  case Index_cuGetErrorName:
  case Index_cuGetErrorString:
    return Nothing;
  case Index_cuDeviceGetCount:
  case Index_cuDeviceGet:
  case Index_cuDeviceGetName:
  case Index_cuDeviceGetUuid:
  case Index_cuDeviceTotalMem:
  case Index_cuDeviceGetAttribute:
  case Index_cuDevicePrimaryCtxSetFlags:
  case Index_cuDevicePrimaryCtxRetain:
  case Index_cuDevicePrimaryCtxRelease:
  case Index_cuCtxSetCurrent:
  case Index_cuCtxGetCurrent:
    return Initialised;
  default:
    return Context;
  }
}

/// Calls that work on a device that has failed: what a program needs to end.
constexpr bool isCleanUp(size_t index) {
  switch (index) {
  case Index_cuMemFree:
  case Index_cuMemFreeHost:
  case Index_cuMemHostUnregister:
  case Index_cuStreamDestroy:
  case Index_cuEventDestroy:
  case Index_cuGraphExecDestroy:
  case Index_cuGraphDestroy:
  case Index_cuModuleUnload:
    return true;
  default:
    return false;
  }
}

template <size_t index, auto function> struct Entry;
template <size_t index, typename... Parameters, CUresult (*function)(Parameters...)>
struct Entry<index, function> {
  static CUresult call(Parameters... parameters) noexcept {
    callCounts[index].fetch_add(1, std::memory_order_relaxed);
    try {
      State &s = state();
      std::lock_guard<std::recursive_mutex> guard(s.lock);
      try {
        if (needOf(index) != Nothing && !s.initialised)
          refuse(CUDA_ERROR_NOT_INITIALIZED, fmt::format("{} before cuInit", functionNames[index]));
        EmulatedDevice *device = needOf(index) == Context ? &current() : nullptr;
        if (device && device->error != CUDA_SUCCESS && !isCleanUp(index))
          return device->error;
        CUresult result = function(parameters...);
        // An error of the work itself is told by whichever call comes next, or by this one.
        return device && result == CUDA_SUCCESS && !isCleanUp(index) ? device->error : result;
      } catch (const Refusal &refusal) {
        if (refusal.quiet)
          s.message = refusal.message;
        else
          s.report(refusal.message);
        return refusal.result;
      } catch (const Error &error) {
        s.report(fmt::format("{}: {}", functionNames[index], error.what()));
        return CUDA_ERROR_UNKNOWN;
      }
    } catch (const Error &error) { // settings that make no sense
      std::fprintf(stderr, "emulator: %s\n", error.what());
      return CUDA_ERROR_UNKNOWN;
    }
  }
};

struct ErrorText {
  CUresult code;
  const char *name, *meaning;
};
#define DESCENT_ERROR(code, meaning)                                                               \
  { code, #code, meaning }
constexpr ErrorText errorTexts[] = {
    DESCENT_ERROR(CUDA_SUCCESS, "no error"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    DESCENT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    DESCENT_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    DESCENT_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    DESCENT_ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    DESCENT_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "device is busy or unavailable"),
    DESCENT_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    DESCENT_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image for the device"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    DESCENT_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    DESCENT_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX version is not supported"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    DESCENT_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    DESCENT_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    DESCENT_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    DESCENT_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    DESCENT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    DESCENT_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    DESCENT_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                  "part or all of the requested memory range is already mapped"),
    DESCENT_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                  "pointer does not correspond to a registered memory region"),
    DESCENT_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    DESCENT_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    DESCENT_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE,
                  "operation not supported on global or shared address space"),
    DESCENT_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    DESCENT_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    DESCENT_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    DESCENT_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    DESCENT_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                  "system has unsupported display driver and CUDA driver combination"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  "operation not permitted when stream is capturing"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                  "operation failed due to a previous error during capture"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
                  "operation would result in a merge of separate capture sequences"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                  "capture was not ended in the same stream as it began"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                  "dependency created on uncaptured work in another stream"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                  "operation would make the legacy stream depend on a capturing blocking stream"),
    DESCENT_ERROR(CUDA_ERROR_CAPTURED_EVENT,
                  "operation not permitted on an event last recorded in a capturing stream"),
    DESCENT_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                  "attempt to terminate a thread-local capture sequence from another thread"),
    DESCENT_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef DESCENT_ERROR

const ErrorText *textOf(CUresult error) {
  for (const ErrorText &text : errorTexts)
    if (text.code == error)
      return &text;
  return nullptr;
}

} // namespace

const char *errorName(CUresult error) {
  const ErrorText *text = textOf(error);
  return text ? text->name : nullptr;
}

const char *errorMeaning(CUresult error) {
  const ErrorText *text = textOf(error);
  return text ? text->meaning : nullptr;
}

void writeStatistics(const std::string &file) {
  const State &s = state();
  std::string calls;
  for (size_t i = 0; i < functionCount; ++i)
    calls +=
        fmt::format("{}\n    \"{}\": {}", i ? "," : "", functionNames[i], callCounts[i].load());
  uint64_t peak = 0;
  for (const auto &device : s.devices)
    peak = std::max(peak, device->peak);
  std::string text = fmt::format("{{\n  \"calls\": {{{}\n  }},\n  \"kernels_run\": {},\n  "
                                 "\"pageable_copies\": {},\n  \"peak_device_memory\": {}\n}}\n",
                                 calls, s.launches, s.pageableCopies, peak);
  std::FILE *out = std::fopen(file.c_str(), "w");
  if (!out || std::fwrite(text.data(), 1, text.size(), out) != text.size())
    std::fprintf(stderr, "emulator: cannot write the statistics to %s\n", file.c_str());
  if (out)
    std::fclose(out);
}

} // namespace descent::emulator

extern "C" {

uint64_t descent_emulator_calls(const char *function) {
  using namespace descent::emulator;
  for (size_t i = 0; i < functionCount; ++i)
    if (std::string_view(functionNames[i]) == function)
      return callCounts[i];
  return 0;
}

void descent_emulator_reset_calls(void) {
  for (auto &count : descent::emulator::callCounts)
    count = 0;
}

#define DESCENT_ENTRY(field, symbol, result, parameters)                                           \
  descent::emulator::Entry<descent::emulator::Index_##field,                                       \
                           &descent::emulator::calls::field>::call,
const descent::cuda::Driver descent_emulated_driver = {
    DESCENT_CUDA_DRIVER(DESCENT_ENTRY) DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_ENTRY)};
#undef DESCENT_ENTRY

const descent::cuda::Drivers descent_emulated_drivers = {
    &descent_emulated_driver, &descent_emulated_library, &descent_emulated_emulation};
}
