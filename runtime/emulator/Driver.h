//===- Driver.h - CUDA's driver, answered on the CPU ----------------------------------------===//
//
// The emulated driver fills the tables of runtime/cuda/Driver.h. Its calls only enqueue: work runs
// when the host waits or asks for it, in an order that Settings choose among those that streams and
// events allow, so that a missing event shows. Whatever the order, a check of happens-before
// reports two pieces of work that touch the same device memory and are not ordered.
//
// Everything that is wrong is written to stderr and kept for lastMessage(); the call returns the
// error that CUDA's driver would return.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_DRIVER_H
#define DESCENT_RUNTIME_EMULATOR_DRIVER_H

#include "runtime/cuda/Driver.h"
#include "runtime/emulator/Emulator.h"

#include <functional>
#include <map>

extern "C" {
/// What a program for cuda-emulated names as its drivers.
extern const descent::cuda::Drivers descent_emulated_drivers;
/// Its parts. The library is Products.cpp's.
extern const descent::cuda::Driver descent_emulated_driver;
extern const descent::cuda::Library descent_emulated_library;
extern const descent::cuda::Emulation descent_emulated_emulation;

/// How often a driver function was called since the start or the last reset: "cuMemAlloc".
uint64_t descent_emulator_calls(const char *function);
void descent_emulator_reset_calls(void);
}

namespace descent::emulator {

class Execution;

/// Read from the environment at the first call, in the variables that stand behind each.
struct DriverSettings {
  enum Kind {
    Eager,   ///< work runs as soon as it is enqueued
    Late,    ///< no sooner than the host waits for it, the newest first where nothing orders it
    Shuffled ///< at any time and in any order, both random
  } order = Late; ///< DESCENT_EMULATOR_ORDER=eager|late|shuffled[:SEED]
  uint64_t seed = 0;
  int devices = 1;                      ///< DESCENT_EMULATOR_DEVICES
  uint64_t memory = UINT64_C(16) << 30; ///< DESCENT_EMULATOR_MEMORY, bytes, or 512M, 4G
  int capability = 80;                  ///< DESCENT_EMULATOR_CAPABILITY=90
  bool leaks = false;                   ///< DESCENT_EMULATOR_LEAKS=1: tells of them at exit
  std::string statistics; ///< DESCENT_EMULATOR_STATISTICS=FILE: calls, as JSON, written at exit
  Options checks;         ///< DESCENT_EMULATOR_DISABLE=race,uninitialised; order of threads and
                          ///< blocks follow the order above
  bool ordering = true;   ///< DESCENT_EMULATOR_DISABLE=ordering: the check between streams
};

/// Forgets all devices, streams and memory, as a new process with these settings. For tests.
void resetDriver(const DriverSettings &settings);

/// What the last failed call or launch did wrong; empty if nothing did.
std::string lastMessage();

/// Work of a library that runs on the emulated device, when its turn has come.
class Work {
public:
  /// The host's address of device memory that is read, or written, or both. Ends the work if the
  /// range is not inside one live allocation, or reads what was never written. `what` names it in
  /// messages: "operand A".
  const char *read(cuda::CUdeviceptr address, uint64_t bytes, const char *what);
  char *write(cuda::CUdeviceptr address, uint64_t bytes, const char *what);
  char *update(cuda::CUdeviceptr address, uint64_t bytes, const char *what);

  explicit Work(Execution &execution) : execution(execution) {}

private:
  Execution &execution;
};

/// Puts work behind what is on the stream, or into the graph that is being captured from it.
/// `name` is for messages: "cublasLtMatmul 64x32x16". `uses` are addresses in the allocations that
/// it will touch, so that freeing one of these before it ran is an error. `run` may run many times,
/// as the graph is launched; it owns what it needs.
cuda::CUresult enqueue(cuda::CUstream stream, std::string name, std::vector<cuda::CUdeviceptr> uses,
                       std::function<void(Work &)> run);

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_DRIVER_H
