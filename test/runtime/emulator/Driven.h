//===- Driven.h - Kernels by hand, and a program that drives the emulated driver ------------===//
//
// The kernels are what compiler/Target/Emulate makes of device code (see DeviceTest.cpp). Driven is
// a small program's start: a device, a module, two streams.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_TEST_RUNTIME_EMULATOR_DRIVEN_H
#define DESCENT_TEST_RUNTIME_EMULATOR_DRIVEN_H

#include "runtime/emulator/Driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace descent::emulator::driven {

using namespace cuda;

inline const Site loadSite{"%v = load", "kernel", "k.ll", "", 3, 0, 0};
inline const Site storeSite{"store %v", "kernel", "k.ll", "", 4, 0, 0};

template <typename T> T parameter(void *const *parameters, int index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

inline float &load(uint64_t base, uint64_t i) {
  return *static_cast<float *>(
      descent_emulate_access(base + 4 * i, 4, DESCENT_EMULATE_READ | 2 << 8, &loadSite));
}
inline float &store(uint64_t base, uint64_t i) {
  return *static_cast<float *>(
      descent_emulate_access(base + 4 * i, 4, DESCENT_EMULATE_WRITE | 2 << 8, &storeSite));
}
inline uint64_t globalThread() {
  return descent_emulate_register(DESCENT_REGISTER_CTAID) *
             descent_emulate_register(DESCENT_REGISTER_NTID) +
         descent_emulate_register(DESCENT_REGISTER_TID);
}

/// to[i] = from[i] + value.
inline void add(void *const *parameters) {
  uint64_t i = globalThread();
  float sum = load(parameter<uint64_t>(parameters, 0), i) + parameter<float>(parameters, 2);
  store(parameter<uint64_t>(parameters, 1), i) = sum;
}

/// Writes and reads dynamic shared memory.
inline void shared(void *const *parameters) {
  uint64_t base = DESCENT_EMULATED_SHARED + 16;
  store(base, 0) = 3;
  store(parameter<uint64_t>(parameters, 0), 0) = load(base, 0);
}

inline uint64_t sharedAddress = DESCENT_EMULATED_SHARED + 16, tableAddress = 0;
inline const float table[2] = {5, 6};
inline const descent_emulated_variable variables[] = {
    {"buffer", nullptr, 0, 16, &sharedAddress, 1, 0},
    {"table", table, sizeof table, 4, &tableAddress, 0, 1}};
inline const descent_emulated_parameter addParameters[] = {
    {"from", "ptr addrspace(1)", 8, 0}, {"to", "ptr addrspace(1)", 8, 0}, {"value", "float", 4, 0}};
inline const uint32_t usesBuffer[] = {0};
inline const descent_emulated_kernel kernels[] = {
    {"add", add, addParameters, nullptr, 3, 0, 0, {0, 0, 0}},
    {"shared", shared, addParameters + 1, usesBuffer, 1, 1, 0, {0, 0, 0}}};
inline const descent_emulated_module module{DESCENT_EMULATOR_VERSION, 2, 2, kernels, variables};

class Driven : public testing::Test {
protected:
  const cuda::Driver &cu = descent_emulated_driver;
  CUcontext context = nullptr;
  CUmodule loaded = nullptr;
  CUfunction add = nullptr, shared = nullptr;
  CUstream first = nullptr, second = nullptr;
  std::string said; ///< what the emulator wrote since begin()

  /// A new process with these settings.
  void begin(DriverSettings settings) {
    resetDriver(settings);
    ASSERT_EQ(cu.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuModuleLoadDataEx(&loaded, &module, 0, nullptr, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuModuleGetFunction(&add, loaded, "add"), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuModuleGetFunction(&shared, loaded, "shared"), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuStreamCreateWithPriority(&first, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1), CUDA_SUCCESS);
  }
  void begin(DriverSettings::Kind order = DriverSettings::Late, uint64_t seed = 0) {
    DriverSettings settings;
    settings.order = order;
    settings.seed = seed;
    begin(settings);
  }
  /// The same without the check between streams, where a test looks at what chance does.
  void beginUnchecked(DriverSettings::Kind order, uint64_t seed = 0) {
    DriverSettings settings;
    settings.order = order;
    settings.seed = seed;
    settings.ordering = false;
    begin(settings);
  }

  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cu.cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  float *pin(size_t floats) {
    void *memory = nullptr;
    EXPECT_EQ(cu.cuMemHostAlloc(&memory, floats * 4, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    return static_cast<float *>(memory);
  }
  CUevent event() {
    CUevent made = nullptr;
    EXPECT_EQ(cu.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return made;
  }
  CUresult launchAdd(CUdeviceptr from, CUdeviceptr to, float value, CUstream stream,
                     unsigned count = 64) {
    void *parameters[] = {&from, &to, &value, nullptr};
    return cu.cuLaunchKernel(add, count / 32, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult launchShared(CUdeviceptr to, CUstream stream, unsigned bytes) {
    void *parameters[] = {&to, nullptr};
    return cu.cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, bytes, stream, parameters, nullptr);
  }
  /// Waits and reads a value.
  float read(CUdeviceptr address, CUstream stream) {
    float value = -1;
    EXPECT_EQ(cu.cuMemcpyDtoHAsync(&value, address, 4, stream), CUDA_SUCCESS) << lastMessage();
    return value;
  }

  void expectMessage(std::initializer_list<const char *> parts) {
    std::string message = lastMessage();
    for (const char *part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  }
};

} // namespace descent::emulator::driven

#endif // DESCENT_TEST_RUNTIME_EMULATOR_DRIVEN_H
