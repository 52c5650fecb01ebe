//===- Emulator.h - A CUDA device on the CPU --------------------------------------------------===//
//
// A device has memory of its own, modules whose code was retargeted to the host (see
// descent/emulator.h), and launches of their kernels, one block after another, every thread a
// fiber. It detects what hardware hides; Fault.h lists the checks.
//
// A launch is synchronous and belongs to the thread of the host that calls it. What a stream will
// have to keep of a launch is its LaunchRequest, which owns the values of the parameters.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_EMULATOR_H
#define DESCENT_RUNTIME_EMULATOR_EMULATOR_H

#include "runtime/emulator/Block.h"

#include <map>
#include <string_view>

namespace descent::emulator {

/// Largest shared memory of a block: what the runtime may opt in to on compute capability 9.0, and
/// what a program may declare statically on any.
inline constexpr uint64_t sharedLimit = 232448, staticSharedLimit = 49152;

struct LaunchRequest {
  const descent_emulated_module *module = nullptr;
  const descent_emulated_kernel *kernel = nullptr;
  Dim grid, block;
  uint32_t dynamicShared = 0;
  std::vector<std::vector<char>> parameters; ///< a value each, of the bytes that the kernel says
  std::vector<Limit> limits; ///< what it may touch of the allocations that these lie in
};

class Device {
public:
  Device() : runner(memory) {}
  /// Of several devices of a process, each with addresses of its own.
  explicit Device(uint32_t number) : memory(number), runner(memory) {}
  Device(const Device &) = delete;

  DeviceMemory memory;
  Options options;

  /// Gives the module's variables their addresses and first values. The module must outlive the
  /// device. Throws Error.
  void load(const descent_emulated_module &module);

  /// Throws Error if the module has no such kernel; the message lists those it has.
  static const descent_emulated_kernel &find(const descent_emulated_module &module,
                                             std::string_view name);

  /// Throws Error if a driver would refuse the launch. The bytes of shared memory of a block.
  static uint32_t checkLaunch(const LaunchRequest &request);
  /// Static shared memory of a kernel, and whether it uses dynamic.
  static uint64_t fixedShared(const descent_emulated_module &module,
                              const descent_emulated_kernel &kernel, bool *dynamic = nullptr);

  /// Runs all blocks in the order of `options`. A fault ends the launch and makes the device refuse
  /// further ones, as on hardware. Throws Error if the launch is not possible at all (too many
  /// threads, too much shared memory, parameters of the wrong size).
  std::optional<Fault> launch(const LaunchRequest &request);

private:
  Block runner;
  bool failed = false;
};

/// An entry of descent/emulator.h, or a function that LLVM's code generator or CUDA's libdevice
/// names: what the linker of retargeted code needs to know.
struct Symbol {
  const char *name;
  void *address;
};
std::vector<Symbol> symbols();

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_EMULATOR_H
