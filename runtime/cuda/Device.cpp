//===- Device.cpp - A CUDA device with a program's code on it -------------------------------===//
#include "runtime/cuda/Device.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace descent;
using namespace descent::cuda;

//===----------------------------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------------------------===//

/// What makes a failure of this kind go away, as a sentence; may be empty.
static const char *remedy(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return "Other processes may hold the device's memory: nvidia-smi lists them.";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_LAUNCH_FAILED:
    return "A kernel that was started earlier did something that it must not, and the device's "
           "context is lost with it. --no-graph with CUDA_LAUNCH_BLOCKING=1 in the environment "
           "names the kernel; a program compiled with --target cuda-emulated checks every access. "
           "The last checkpoint is whole: --resume goes on from it.";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "Another process has the device to itself; nvidia-smi shows its compute mode.";
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    return "The kernel asks for more registers or shared memory than the device has; compile for "
           "this chip.";
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    return "The driver lacks its compiler of PTX (libnvidia-ptxjitcompiler.so); where ptxas is "
           "found, descent compile embeds finished code beside the PTX.";
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return "The driver is older than the PTX of the program: a newer driver reads it.";
  default:
    return "";
  }
}

void Device::fail(CUresult result, const char *call, const std::string &doing) const {
  // The emulator says itself what is wrong, and where.
  const char *help = drivers.emulation ? "" : remedy(result);
  throw Error(fmt::format("{} failed while {} on device {} ({}): {}{}{}", call, doing, ordinal,
                          name.empty() ? "no name yet" : name, errorText(drivers, result),
                          *help ? ". " : "", help));
}

//===----------------------------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------------------------===//

static std::string chipName(int capability) { return fmt::format("sm_{}", capability); }

std::string cuda::imagesText(const descent_device &device) {
  if (device.emulated)
    return "emulated code";
  std::string text;
  for (uint64_t i = 0; i < device.image_count; ++i)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        device.images[i].kind == DESCENT_IMAGE_CUBIN ? "cubin" : "PTX",
                        chipName(device.images[i].capability));
  return text.empty() ? "no code" : text;
}

/// Finished code fits chips of its major version from its minor on, PTX every later chip.
static bool fits(const descent_image &image, int capability) {
  bool sameMajor = image.capability / 10 == capability / 10;
  return image.capability <= capability && (image.kind != DESCENT_IMAGE_CUBIN || sameMajor);
}

static void forEachCommand(const descent_command *commands, uint64_t count, auto visit) {
  for (uint64_t i = 0; i < count; ++i) {
    visit(commands[i]);
    if (commands[i].kind == DESCENT_COMMAND_PRODUCT)
      forEachCommand(commands[i].product->otherwise, commands[i].product->otherwise_count, visit);
  }
}

bool cuda::usesLibrary(const descent_program &program) {
  bool uses = false;
  for (uint64_t i = 0; i < program.kernel_count; ++i)
    forEachCommand(
        program.kernels[i].commands, program.kernels[i].command_count,
        [&](const descent_command &command) { uses |= command.kind == DESCENT_COMMAND_PRODUCT; });
  return uses;
}

//===----------------------------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------------------------===//

Device::Device(const descent_program &program, int ordinal) : ordinal(ordinal) {
  drivers = program.device->drivers ? *static_cast<const Drivers *>(program.device->drivers)
                                    : openDrivers(usesLibrary(program));
  try {
    check(driver().cuInit(0), "cuInit", "starting the driver");
    pick(program);
    check(driver().cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain",
          "starting");
    makeCurrent();
    load(program);
  } catch (...) {
    release();
    throw;
  }
}

void Device::release() {
  if (module)
    driver().cuModuleUnload(module);
  if (context)
    driver().cuDevicePrimaryCtxRelease(handle);
  module = nullptr;
  context = nullptr;
}

void Device::makeCurrent() const {
  check(driver().cuCtxSetCurrent(context), "cuCtxSetCurrent", "starting");
}

int Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, handle), "cuDeviceGetAttribute",
        "asking for its properties");
  return value;
}

static std::string nameOf(const Driver &driver, CUdevice device) {
  char text[256] = "";
  return driver.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS ? text : "?";
}

void Device::pick(const descent_program &program) {
  int count = 0;
  check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount", "counting devices");
  auto capabilityOf = [&](CUdevice device) {
    int major = 0, minor = 0;
    driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    return 10 * major + minor;
  };
  if (ordinal < 0 || ordinal >= count) {
    std::string there;
    for (int i = 0; i < count; ++i) {
      CUdevice device = 0;
      if (driver().cuDeviceGet(&device, i) == CUDA_SUCCESS)
        there += fmt::format("\n  {}: {}, {}", i, nameOf(driver(), device),
                             chipName(capabilityOf(device)));
    }
    const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw Error(fmt::format("--device {}: there is no such device{}. There {}:{}", ordinal,
                            visible ? fmt::format(" with CUDA_VISIBLE_DEVICES={}", visible) : "",
                            count == 1 ? "is one" : fmt::format("are {}", count), there));
  }
  check(driver().cuDeviceGet(&handle, ordinal), "cuDeviceGet", "choosing the device");
  name = nameOf(driver(), handle);
  capability = capabilityOf(handle);
  processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);

  const descent_device &device = *program.device;
  bool fitting = device.emulated && device.capability <= capability;
  for (uint64_t i = 0; i < device.image_count; ++i)
    fitting |= fits(device.images[i], capability);
  if (!fitting)
    throw Error(fmt::format("model '{}' was compiled for {} and holds {}; device {}, {}, is {}. "
                            "Compile it with --target cuda:{}",
                            program.name, chipName(device.capability), imagesText(device), ordinal,
                            name, chipName(capability), chipName(capability)));
}

void Device::load(const descent_program &program) {
  const descent_device &device = *program.device;
  if (device.emulated) {
    check(driver().cuModuleLoadDataEx(&module, device.emulated, 0, nullptr, nullptr),
          "cuModuleLoadDataEx", "loading emulated code");
    return;
  }
  // Finished code before PTX, and of each the newest that fits.
  std::vector<const descent_image *> images;
  for (uint64_t i = 0; i < device.image_count; ++i)
    if (fits(device.images[i], capability))
      images.push_back(&device.images[i]);
  std::stable_sort(
      images.begin(), images.end(), [](const descent_image *a, const descent_image *b) {
        return a->kind != b->kind ? a->kind == DESCENT_IMAGE_CUBIN : a->capability > b->capability;
      });
  loadImage(program, *images.front());
}

void Device::loadImage(const descent_program &program, const descent_image &image) {
  std::vector<char> log(1 << 14, 0);
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  CUresult result = driver().cuModuleLoadDataEx(&module, image.data, 2, names, values);
  if (result == CUDA_SUCCESS)
    return;
  std::string doing = fmt::format("loading the {} of model '{}' for {}",
                                  image.kind == DESCENT_IMAGE_CUBIN ? "finished code" : "PTX",
                                  program.name, chipName(image.capability));
  if (log[0])
    doing += fmt::format(" (the driver's log: {})", log.data());
  fail(result, "cuModuleLoadDataEx", doing);
}

CUfunction Device::function(const char *functionName, uint32_t dynamicShared) const {
  // Without an option, static and dynamic memory of a block have these bytes together.
  constexpr int usual = 48 << 10;
  CUfunction function = nullptr;
  auto require = [&](CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
      fail(result, call, fmt::format("preparing kernel {}", functionName));
  };
  require(driver().cuModuleGetFunction(&function, module, functionName), "cuModuleGetFunction");
  // Code is loaded when it is first used, which must not be in the capture of a graph. Old drivers
  // have no call for that alone; asking for a property needs the code as well.
  if (driver().cuFuncLoad)
    require(driver().cuFuncLoad(function), "cuFuncLoad");
  int fixed = 0;
  require(driver().cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
          "cuFuncGetAttribute");
  int wanted = static_cast<int>(dynamicShared);
  if (fixed + wanted <= usual || wanted == 0)
    return function;
  int most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - fixed;
  if (wanted > most)
    throw Error(fmt::format("kernel {} needs {} bytes of dynamic shared memory a block; device {} "
                            "({}) has {}. Compile for {}",
                            functionName, wanted, ordinal, name, most, chipName(capability)));
  require(driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      wanted),
          "cuFuncSetAttribute");
  return function;
}
