//===- Driver.cpp - Opens the libraries of CUDA ---------------------------------------------===//
//
// A library stays open until the process ends: its threads and exit handlers outlive what could
// close it.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/cuda/Driver.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <cstdlib>
#include <dlfcn.h>

namespace descent::cuda {

std::string versionText(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

/// The first library that opens, or null; `why` gets what the loader said of each.
static void *open(const std::vector<std::string> &names, std::string &why) {
  for (const std::string &name : names) {
    if (void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    const char *said = dlerror();
    // "NAME: cannot open shared object file: ...": the name is in it.
    why += fmt::format("\n  {}", said ? said : name + ": cannot be opened");
  }
  return nullptr;
}

/// Fills a field; false if the library has no such symbol.
template <typename Function>
static bool resolve(void *library, const char *symbol, Function *&field) {
  field = reinterpret_cast<Function *>(dlsym(library, symbol));
  return field != nullptr;
}

static std::string driverHint() {
  return fmt::format("install the NVIDIA driver, of {} (525 series) or newer; in a container, pass "
                     "the GPU through (docker run --gpus all). Without a GPU, compile for cpu or "
                     "cuda-emulated",
                     versionText(oldestDriver));
}

static const Driver *openDriver(const DriverNames &names, int &version) {
  std::string why;
  void *library = open(names.driver, why);
  if (!library)
    throw Error(fmt::format("the CUDA driver is not installed: {} does not open{}\n{}",
                            names.driver.front(), why, driverHint()));
  static Driver driver;
  driver = Driver();
  version = 0;
  if (!resolve(library, "cuDriverGetVersion", driver.cuDriverGetVersion) ||
      driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
    throw Error(fmt::format("{} is no CUDA driver: it does not tell its version\n{}",
                            names.driver.front(), driverHint()));
  std::string missing;
#define DESCENT_RESOLVE(field, symbol, result, parameters)                                         \
  if (!resolve(library, symbol, driver.field) && missing.empty())                                  \
    missing = symbol;
  DESCENT_CUDA_DRIVER(DESCENT_RESOLVE)
#undef DESCENT_RESOLVE
#define DESCENT_RESOLVE(field, symbol, result, parameters) resolve(library, symbol, driver.field);
  DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_RESOLVE)
#undef DESCENT_RESOLVE
  if (version < oldestDriver || !missing.empty())
    throw Error(fmt::format(
        "the CUDA driver is too old: it supports {}{}, and {} or newer is needed; install a driver "
        "of the 525 series or newer",
        versionText(version), missing.empty() ? "" : fmt::format(" and has no {}", missing),
        versionText(oldestDriver)));
  return &driver;
}

/// Throws unless the driver initialises and has a device.
static void requireDevice(const Drivers &drivers, int version) {
  CUresult result = drivers.driver->cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS)
    result = drivers.driver->cuDeviceGetCount(&count);
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string hidden =
      visible ? fmt::format(" CUDA_VISIBLE_DEVICES={} may hide some.", visible) : "";
  if (result == CUDA_ERROR_STUB_LIBRARY)
    throw Error(fmt::format("the CUDA driver that was found is the toolkit's stub, which is for "
                            "linking and runs nothing\n{}",
                            driverHint()));
  if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0))
    throw Error(fmt::format("no CUDA device: the driver ({}) finds none.{} See what `nvidia-smi` "
                            "lists. Without a GPU, compile for cpu or cuda-emulated",
                            versionText(version), hidden));
  if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    throw Error("the CUDA driver library and the driver in the kernel are of different versions; "
                "after an update of the driver, restart the machine");
  check(drivers, result, "the CUDA driver's start (cuInit)");
}

static const Library *openLibrary(const DriverNames &names, int version) {
  std::string why;
  void *library = nullptr;
  bool modern = version >= 13000;
  if (modern)
    library = open(names.library13, why);
  if (!library)
    library = open(names.library12, why);
  if (!library && !modern && open(names.library13, why))
    throw Error(
        fmt::format("cuBLASLt was found only for CUDA 13 ({}), which needs a driver of CUDA "
                    "13.0 (580 series) or newer; this one supports {}. Update the driver, "
                    "or install cuBLAS 12 beside it",
                    names.library13.front(), versionText(version)));
  if (!library)
    throw Error(fmt::format(
        "cuBLASLt, which computes matrix products, is not installed{}\n"
        "install it with the CUDA toolkit (package libcublas-{}) or with pip (nvidia-cublas{}), "
        "and put its folder into LD_LIBRARY_PATH",
        why, modern ? "13-0" : "12-4", modern ? "" : "-cu12"));
  static Library table;
  table = Library();
#define DESCENT_RESOLVE(field, symbol, result, parameters)                                         \
  if (!resolve(library, symbol, table.field))                                                      \
    throw Error(fmt::format("cuBLASLt has no {}; install that of CUDA 12.0 or newer", symbol));
  DESCENT_CUBLASLT(DESCENT_RESOLVE)
#undef DESCENT_RESOLVE
  return &table;
}

Drivers openDrivers(bool withLibrary, const DriverNames &names) {
  int version = 0;
  Drivers drivers;
  drivers.driver = openDriver(names, version);
  requireDevice(drivers, version);
  if (withLibrary)
    drivers.library = openLibrary(names, version);
  return drivers;
}

std::string errorText(const Drivers &drivers, CUresult result) {
  const char *name = nullptr, *meaning = nullptr;
  drivers.driver->cuGetErrorName(result, &name);
  drivers.driver->cuGetErrorString(result, &meaning);
  std::string text = name ? fmt::format("{} ({})", meaning ? meaning : "unknown", name)
                          : fmt::format("error {} of CUDA", static_cast<int>(result));
  if (drivers.emulation)
    if (const char *message = drivers.emulation->lastMessage())
      text += fmt::format("\n{}", message);
  return text;
}

void check(const Drivers &drivers, CUresult result, const std::string &what) {
  if (result != CUDA_SUCCESS)
    throw Error(fmt::format("{} failed: {}", what, errorText(drivers, result)));
}

} // namespace descent::cuda
