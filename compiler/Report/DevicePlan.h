//===- DevicePlan.h - What a program will do on a CUDA device -------------===//
//
// The part of `descent plan` that a CUDA target adds: what the device's functions take of a
// multiprocessor, and how long a step should take. Nothing here is measured. docs/plan.md says what
// each number means.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_REPORT_DEVICEPLAN_H
#define DESCENT_COMPILER_REPORT_DEVICEPLAN_H

#include "compiler/Target/CudaCodegen.h"
#include "passes/Cuda/Occupancy.h"

#include "mlir/IR/BuiltinOps.h"
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace descent {

struct DevicePlan {
  CudaTarget cuda;
  std::string noResources; ///< why registers and spills are not known; empty: they are

  /// One launch of a device function among a kernel's commands.
  struct Function {
    std::string name;
    std::array<int64_t, 3> grid{}, block{};
    int64_t dynamicShared = 0;
    std::vector<std::string> operands; ///< "bf16[64, 128]"
    bool isFallback = false; ///< runs only where the library has no algorithm for a product
    std::optional<DeviceResources> resources;
    std::optional<Occupancy> occupancy;
    double waves = 0.0; ///< blocks over those that the whole chip holds at once

    int64_t threads() const { return block[0] * block[1] * block[2]; }
    int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  };
  /// A product that the library computes.
  struct Product {
    int64_t m = 0, n = 0, k = 0, batch = 1;
    bool transposeA = false, transposeB = false, accumulate = false;
    bool isAligned = true; ///< every row starts at a multiple of 16 bytes
    std::string a, b, d;   ///< element types
    std::string compute, epilogue;
    double flops = 0.0, bytes = 0.0;
    double roofline = 0.0, expected = 0.0; ///< seconds
  };
  struct Kernel {
    std::string name, kind, sources;
    std::string timeClass; ///< of the table of times
    std::string rate;      ///< type whose rate bounds it: "bf16"
    int64_t launches = 0;  ///< in one step
    int64_t commands = 0;  ///< of one launch
    int64_t fills = 0;
    double flops = 0.0, bytes = 0.0;       ///< of one launch; bytes with those of the workspace
    double roofline = 0.0, expected = 0.0; ///< seconds of one launch
    bool isMemoryBound = true;
    std::vector<Function> functions;
    std::vector<Product> products;
  };
  std::vector<Kernel> kernels; ///< those of @step, in order of their first launch

  /// What the expected time of a class of kernels assumes.
  struct Efficiency {
    double rate = 0.0;      ///< share of the chip's arithmetic rate
    double bandwidth = 0.0; ///< share of its memory bandwidth
  };
  struct ClassTime {
    int64_t launches = 0, commands = 0;
    double flops = 0.0, bytes = 0.0, roofline = 0.0, expected = 0.0;
    Efficiency assumed;
  };
  std::vector<std::pair<std::string, ClassTime>> classes; ///< longest expected time first

  struct Step {
    int64_t items = 0; ///< tokens, or samples
    bool areTokens = false;
    int64_t commands = 0;
    double gaps = 0.0;                     ///< seconds between the commands of the graph
    double roofline = 0.0, expected = 0.0; ///< seconds, gaps included
    double modelFlops = 0.0;               ///< of products, convolutions and attention
    double peakFlops = 0.0;                ///< rate of the fastest type that they use
    std::string peakType;
    /// Seconds that the library's products are expected to take and all other bytes at full
    /// bandwidth: what a step without any other loss would take.
    double floor = 0.0;
  } step;
};

/// `schedule` is the module after plan-memory, `kernels` what generateDeviceKernels made. `cubin`
/// is nothing without ptxas.
DevicePlan makeDevicePlan(mlir::ModuleOp schedule, mlir::ModuleOp kernels, const CudaTarget &cuda,
                          const Cubin *cubin);

/// Functions that spill, with their resources, by name.
std::map<std::string, DeviceResources> spillingFunctions(const Cubin &cubin);

std::string printDevicePlan(const DevicePlan &plan);
/// Adds `device` and `step` to the plan's JSON and replaces its `kernels`.
void addDeviceJson(nlohmann::ordered_json &json, const DevicePlan &plan);

/// Takes the rates of another product with the same chip, chosen by a part of its name, as "H200".
/// Fails with the known ones.
llvm::Error chooseProduct(CudaTarget &cuda, llvm::StringRef name);

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Seconds from the end of a command to the start of the next in a graph.
inline constexpr double commandGap = 1.5e-6;

/// The arithmetic rate of a type in flop/s: "f32", "tf32", "bf16", "f16", "f8".
double rateOf(const CudaTarget &cuda, llvm::StringRef type);

/// The class of a kernel and what its expected time assumes.
DevicePlan::Efficiency assumedEfficiency(const CudaTarget &cuda, llvm::StringRef timeClass,
                                         llvm::StringRef rate, bool isAligned);

/// Fills in times, classes and step from flops, bytes and commands.
void predictTimes(DevicePlan &plan);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_DEVICEPLAN_H
