//===- FakeDriver.cpp - Libraries that look like CUDA's, for the loader's tests -------------===//
//
// Built several times: FAKE_VERSION is the driver's, FAKE_INIT what cuInit returns, FAKE_DEVICES
// how many there are. FAKE_LACKING leaves out all functions but the version's; FAKE_LIBRARY makes a
// cuBLASLt instead. What is not named here returns success and does nothing.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/cuda/Driver.h"

namespace {
int initialise() { return FAKE_INIT; }
int version(int *into) {
  *into = FAKE_VERSION;
  return 0;
}
int devices(int *into) {
  *into = FAKE_DEVICES;
  return 0;
}
} // namespace

// Labels give the exported names, which are strings in the table.
#define DESCENT_FAKE(field, symbol, result, parameters)                                            \
  extern "C" __attribute__((visibility("default"))) int fake_##field(void *argument) asm(symbol);  \
  extern "C" int fake_##field([[maybe_unused]] void *argument) {                                   \
    [[maybe_unused]] constexpr std::string_view name = #field;                                     \
    if constexpr (name == "cuInit")                                                                \
      return initialise();                                                                         \
    if constexpr (name == "cuDriverGetVersion")                                                    \
      return version(static_cast<int *>(argument));                                                \
    if constexpr (name == "cuDeviceGetCount")                                                      \
      return devices(static_cast<int *>(argument));                                                \
    return 0;                                                                                      \
  }

#if defined(FAKE_LIBRARY)
DESCENT_CUBLASLT(DESCENT_FAKE)
#elif defined(FAKE_LACKING)
DESCENT_FAKE(cuDriverGetVersion, "cuDriverGetVersion", CUresult, ())
#else
DESCENT_CUDA_DRIVER(DESCENT_FAKE)
#endif
