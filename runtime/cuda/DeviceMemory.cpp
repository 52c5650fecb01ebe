//===- DeviceMemory.cpp - The one block of device memory, and pinned memory of the host -----===//
#include "runtime/cuda/DeviceMemory.h"
#include "runtime/core/Arena.h"
#include "runtime/core/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

using namespace descent;
using namespace descent::cuda;

/// Workspace and staging begin at multiples of 256, as cuBLASLt and copies like it.
static uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

uint64_t cuda::deviceBytes(const descent_memory &memory) {
  return aligned(memory.arena) + aligned(memory.device_workspace) + memory.device_staging;
}

static std::string sizeText(uint64_t bytes) { return formatBytes(bytes).text; }

[[noreturn]] static void refuse(const Device &device, const descent_program &program, size_t free,
                                size_t total) {
  const descent_memory &memory = program.memory;
  std::string message = fmt::format(
      "not enough memory on device {} ({}): model '{}' needs {} in one block, {} of {} are free "
      "and "
      "{} are in use by other processes or the driver.\n"
      "The block: arena {} (parameters {}, gradients {}, optimizer state {}, activations {}, "
      "workspace {}), workspace of device kernels {}, staged inputs {}.\n{}",
      device.ordinal, device.name, program.name, sizeText(deviceBytes(memory)), sizeText(free),
      sizeText(total), sizeText(total - free), sizeText(memory.arena), sizeText(memory.parameters),
      sizeText(memory.gradients), sizeText(memory.optimizer), sizeText(memory.activations),
      sizeText(memory.workspace), sizeText(memory.device_workspace),
      sizeText(memory.device_staging), peakText(program));
  // The lever is named for what is biggest: a smaller batch frees activations, not parameters.
  if (memory.activations + memory.workspace >= memory.parameters)
    message += "A smaller batch.size (or data.sequence) in the recipe lowers activations, "
               "precision.compute = \"bf16\" halves most of them";
  else
    message += "A smaller model lowers parameters, gradients and optimizer state; optimizer.kind = "
               "\"sgd\" has the least state";
  throw Error(message +
              "; --device chooses another device, and nvidia-smi lists who uses this one.");
}

void DeviceBlock::checkFree(const Device &device, const descent_program &program) {
  size_t free = 0, total = 0;
  device.check(device.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo",
               "asking for free memory");
  if (free < deviceBytes(program.memory))
    refuse(device, program, free, total);
}

DeviceBlock::DeviceBlock(const Device &device, const descent_program &program)
    : device(device), workspaceStart(aligned(program.memory.arena)),
      stagingStart(workspaceStart + aligned(program.memory.device_workspace)),
      slotBytes(program.memory.device_staging / DESCENT_INPUT_SLOTS) {
  uint64_t bytes = std::max<uint64_t>(deviceBytes(program.memory), 1);
  CUresult result = device.driver().cuMemAlloc(&base, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    device.driver().cuMemGetInfo(&free, &total);
    refuse(device, program, free, total);
  }
  if (result != CUDA_SUCCESS)
    device.fail(result, "cuMemAlloc", fmt::format("allocating {} for the plan", sizeText(bytes)));
  if (device.drivers.emulation)
    device.drivers.emulation->nameAllocation(base, "arena, workspace and staged inputs");
}

DeviceBlock::~DeviceBlock() { device.driver().cuMemFree(base); }

PinnedMemory::PinnedMemory(const Device &device, uint64_t bytes, const char *purpose)
    : device(device) {
  void *address = nullptr;
  bytes = std::max<uint64_t>(bytes, 1);
  CUresult result = device.driver().cuMemHostAlloc(&address, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result != CUDA_SUCCESS)
    device.fail(result, "cuMemHostAlloc",
                fmt::format("pinning {} of the host's memory for {}", sizeText(bytes), purpose));
  memory = {static_cast<uint8_t *>(address), bytes};
  std::memset(address, 0, bytes);
}

PinnedMemory::~PinnedMemory() { device.driver().cuMemFreeHost(memory.data()); }
