//===- DeviceMemory.h - The one block of device memory, and pinned memory of the host -------===//
#ifndef DESCENT_RUNTIME_CUDA_DEVICEMEMORY_H
#define DESCENT_RUNTIME_CUDA_DEVICEMEMORY_H

#include "runtime/cuda/Device.h"

#include "descent/abi.h"

#include <cstdint>
#include <span>
#include <string>

namespace descent::cuda {

/// Bytes that a program takes of a device: the arena, the workspace of its kernels, staged inputs,
/// each from a multiple of 256 on.
uint64_t deviceBytes(const descent_memory &memory);

/// All memory of a program on a device, in one allocation: arena | workspace | staging.
class DeviceBlock {
public:
  /// Throws Error with what was asked for, what there is, and what the plan holds at its peak.
  DeviceBlock(const Device &device, const descent_program &program);
  ~DeviceBlock();
  DeviceBlock(const DeviceBlock &) = delete;

  /// The same error, without an allocation, if the device has less free than the program takes:
  /// what comes before the block may be slow.
  static void checkFree(const Device &device, const descent_program &program);

  CUdeviceptr arena(uint64_t offset = 0) const { return base + offset; }
  CUdeviceptr workspace() const { return base + workspaceStart; }
  CUdeviceptr staging(int slot) const { return base + stagingStart + slot * slotBytes; }
  uint64_t stagedBytes() const { return slotBytes; }

private:
  const Device &device;
  CUdeviceptr base = 0;
  uint64_t workspaceStart, stagingStart, slotBytes;
};

/// Pinned memory of the host, zeroed: what copies may go on with while the host does other things.
class PinnedMemory {
public:
  PinnedMemory(const Device &device, uint64_t bytes, const char *purpose);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;

  uint8_t *data() const { return memory.data(); }
  std::span<uint8_t> bytes() const { return memory; }
  bool holds(const void *address) const {
    return address >= memory.data() && address < memory.data() + memory.size();
  }

private:
  const Device &device;
  std::span<uint8_t> memory;
};

/// What a program holds at the launch of its step where that is most, for people: the moment, and
/// the biggest tensors.
std::string peakText(const descent_program &program);

} // namespace descent::cuda

#endif // DESCENT_RUNTIME_CUDA_DEVICEMEMORY_H
