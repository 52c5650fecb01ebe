//===- Device.h - A CUDA device with a program's code on it ---------------------------------===//
//
// Opens the drivers that the program names, or the system's, takes the primary context of one
// device and loads the image of the program that fits it. Everything that can be refused is refused
// here or right behind (memory, products), before a run leaves a trace on disk.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CUDA_DEVICE_H
#define DESCENT_RUNTIME_CUDA_DEVICE_H

#include "runtime/cuda/Driver.h"

#include "descent/abi.h"

#include <cstdint>
#include <string>

namespace descent::cuda {

class Device {
public:
  /// Opens device `ordinal` for a program that has one. Throws Error.
  Device(const descent_program &program, int ordinal);
  ~Device() { release(); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver() const { return *drivers.driver; }

  /// A function of the image that can be launched with that much dynamic shared memory. Throws
  /// Error.
  CUfunction function(const char *name, uint32_t dynamicShared) const;

  /// Throws Error unless the result is CUDA_SUCCESS: "cuMemAlloc failed while `doing`: TEXT (NAME)"
  /// and what helps.
  void check(CUresult result, const char *call, const char *doing) const {
    if (result != CUDA_SUCCESS)
      fail(result, call, doing);
  }
  [[noreturn]] void fail(CUresult result, const char *call, const std::string &doing) const;

  /// Makes the context current in the calling thread, as each that calls the driver has to.
  void makeCurrent() const;

  Drivers drivers;
  int ordinal = 0;
  CUdevice handle = 0;
  std::string name;   ///< "NVIDIA H200"
  int capability = 0; ///< 90
  int processors = 0; ///< multiprocessors

private:
  void release();
  void pick(const descent_program &program);
  void load(const descent_program &program);
  void loadImage(const descent_program &program, const descent_image &image);
  int attribute(CUdevice_attribute which) const;

  CUcontext context = nullptr;
  CUmodule module = nullptr;
};

/// Whether any kernel of the program is computed by the vendor's library of matrix products.
bool usesLibrary(const descent_program &program);

/// "cubin sm_90, PTX sm_90"; "emulated code".
std::string imagesText(const descent_device &device);

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_DEVICE_H
