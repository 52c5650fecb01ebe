//===- LoaderTest.cpp - What is said when a library of CUDA is not as it should be ----------===//
//
// The libraries are fakes (fake/FakeDriver.cpp).
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/cuda/Driver.h"

#include <gtest/gtest.h>

using namespace descent;
using namespace descent::cuda;

namespace {

std::string fake(const char *name) {
  return std::string(DESCENT_TEST_LIBRARIES "/fake-cuda-") + name + ".so";
}

std::string refusal(const char *driver, bool withLibrary, std::vector<std::string> library13 = {},
                    std::vector<std::string> library12 = {}) {
  try {
    openDrivers(withLibrary, {{fake(driver)}, library13, library12});
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

void expectParts(const std::string &message, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
}

} // namespace

TEST(CudaLoader, OpensWhatIsThere) {
  Drivers drivers =
      openDrivers(true, {{fake("absent"), fake("13")}, {fake("library")}, {fake("absent")}});
  EXPECT_EQ(drivers.driver->cuInit(0), CUDA_SUCCESS);
  EXPECT_NE(drivers.library, nullptr);
  EXPECT_EQ(drivers.emulation, nullptr);
  EXPECT_EQ(drivers.driver->cuFuncLoad, nullptr); // optional, and not in this one
  EXPECT_EQ(openDrivers(false, {{fake("12")}, {}, {}}).library, nullptr);
  EXPECT_NE(openDrivers(true, {{fake("12")}, {fake("absent")}, {fake("library")}}).library,
            nullptr);
}

TEST(CudaLoader, SaysWhatIsMissing) {
  expectParts(refusal("absent", false), {"the CUDA driver is not installed", "fake-cuda-absent.so",
                                         "install the NVIDIA driver, of CUDA 12.0"});
  expectParts(refusal("old", false), {"too old", "CUDA 11.4", "CUDA 12.0 or newer"});
  expectParts(refusal("lacking", false), {"CUDA 12.2 and has no cuInit"});
  expectParts(refusal("no-device", false), {"no CUDA device", "CUDA 12.2", "nvidia-smi"});
  expectParts(refusal("no-device-error", false), {"no CUDA device"});
  expectParts(refusal("stub", false), {"the toolkit's stub"});
  expectParts(refusal("13", true, {fake("absent")}, {fake("absent")}),
              {"cuBLASLt, which computes matrix products, is not installed", "libcublas-13-0",
               "LD_LIBRARY_PATH"});
}

// A cuBLASLt of CUDA 13 on a driver of CUDA 12 would fail later and without a reason.
TEST(CudaLoader, TheLibraryFitsTheDriver) {
  expectParts(
      refusal("12", true, {fake("library")}, {fake("absent")}),
      {"found only for CUDA 13", "580 series", "this one supports CUDA 12.2", "install cuBLAS 12"});
}

TEST(CudaLoader, ErrorsHaveTexts) {
  Drivers drivers = openDrivers(false, {{fake("13")}, {}, {}});
  EXPECT_EQ(errorText(drivers, CUresult(12345)), "error 12345 of CUDA");
  try {
    check(drivers, CUDA_ERROR_OUT_OF_MEMORY, "an allocation of 5 bytes");
    FAIL();
  } catch (const Error &error) {
    expectParts(error.what(), {"an allocation of 5 bytes failed: "});
  }
}
