//===- ProductCallTest.cpp - Descriptions of products, by the library itself ------------------===//
//
// Descriptors need no GPU: where the real cuBLASLt is installed, it checks the number and the size
// of every attribute that the runtime writes.
//
//===------------------------------------------------------------------------------------------===//

#include "ProductRig.h"

#include <dlfcn.h>

using namespace descent;
using namespace descent::test;

namespace {

/// The table of the installed library; null if there is none.
const Library *installedLibrary() {
  static Library library = {};
  void *handle = nullptr;
  DriverNames names;
  for (const auto &list : {names.library13, names.library12})
    for (const std::string &name : list)
      if (!handle)
        handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return nullptr;
#define DESCENT_RESOLVE(field, symbol, result, parameters)                                         \
  library.field = reinterpret_cast<decltype(library.field)>(dlsym(handle, symbol));                \
  EXPECT_NE(library.field, nullptr) << symbol;
  DESCENT_CUBLASLT(DESCENT_RESOLVE)
#undef DESCENT_RESOLVE
  return &library;
}

TEST(ProductCall, InstalledLibraryTakesEveryAttribute) {
  const Library *library = installedLibrary();
  if (!library)
    GTEST_SKIP() << "no cuBLASLt is installed: its descriptors are not compared";
  Drivers drivers = descent_emulated_drivers;
  drivers.library = library;
  auto describe = [&](const Case &test) {
    ProductAddresses addresses;
    CUdeviceptr next = 0x10000;
    forEachPlace(test.product, [&](const descent_place &, CUdeviceptr ProductAddresses::*field) {
      addresses.*field = next += 0x10000;
    });
    ProductCall call(drivers, nullptr, test.product, addresses);
    // Preferences are written too; without a device there is no handle to ask for algorithms with.
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    EXPECT_TRUE(call.algorithms(1 << 20, 4, status).empty());
    EXPECT_NE(status, CUBLAS_STATUS_SUCCESS);
  };
  for (int32_t result : {DESCENT_F32, DESCENT_BF16})
    for (int epilogue = 0; epilogue <= DESCENT_EPILOGUE_BGRAD_B; ++epilogue)
      for (int64_t batch : {1, 3})
        EXPECT_NO_THROW(describe(
            Case(16, 32, 48, DESCENT_BF16, result, epilogue, batch == 1, batch == 3, batch)))
            << epilogue;
  Case eight(16, 32, 48, DESCENT_F8E4M3, DESCENT_F32, DESCENT_EPILOGUE_BIAS, false, true);
  eight.buffers[Bias].dtype = eight.product.bias.dtype = DESCENT_BF16;
  eight.addScale(ScaleA, 1);
  eight.addScale(ScaleB, 1);
  EXPECT_NO_THROW(describe(eight));
  Case tf32(16, 32, 48, DESCENT_F32, DESCENT_F32);
  tf32.product.compute = DESCENT_COMPUTE_TF32;
  EXPECT_NO_THROW(describe(tf32));
}

} // namespace
