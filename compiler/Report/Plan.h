//===- Plan.h - What a program will do, before it runs --------------------===//

#ifndef DESCENT_COMPILER_REPORT_PLAN_H
#define DESCENT_COMPILER_REPORT_PLAN_H

#include "compiler/Report/DevicePlan.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace descent {

/// The facts behind `descent plan`. All sizes in bytes.
struct Plan {
  struct Memory {
    int64_t peak = 0, lowerBound = 0, parameters = 0, gradients = 0, optimizer = 0, activations = 0,
            workspace = 0, threadScratch = 0;
    /// Of a device: the arena without what lies behind it; peak is all of it.
    int64_t arena = 0, deviceWorkspace = 0, deviceStaging = 0;
  } memory;
  struct Buffer {
    std::string source, category, type;
    int64_t bytes = 0, first = 0, last = 0; ///< launches
  };
  std::vector<Buffer>
      largestAtPeak; ///< at most ten, largest first; persistent ones have first 0 and last the end
  int64_t peakLaunch = 0; ///< of @step
  struct Parameter {
    std::string name, group, shape;
    std::string copy; ///< element type of the working copy that products read; empty: none
    double rateScale = 1.0, weightDecay = 0.0;
    bool trainable = true;
    int64_t elements = 0;
  };
  std::vector<Parameter> parameters;
  struct Kernel {
    std::string name, kind, sources;
    int64_t launches = 0, tasks = 0, scratch = 0; ///< launches in one @step
    double flops = 0.0, bytes = 0.0;              ///< of one launch
  };
  std::vector<Kernel> kernels; ///< those of @step, in order of their first launch
  struct Tensor {
    std::string source;   ///< the op that makes it: "nn.matmul h.0.attn (model.mlir:14)"
    std::string operands; ///< element type that the op's float operands are converted to, if any
    std::string type, rule;
  };
  std::vector<Tensor> tensors; ///< of the forward pass, in program order; see readTypes
  /// What is kept from step to step, by kind and element type.
  struct Kept {
    std::string what, type, note; ///< note: what it is for, and what would change it
    int64_t bytes = 0;
  };
  std::vector<Kept> kept;
  std::optional<DevicePlan> device; ///< of a CUDA target; has its own table of kernels
};

/// `schedule` is the module after plan-memory, `kernels` the generated functions.
Plan makePlan(mlir::ModuleOp schedule, mlir::ModuleOp kernels);

/// The same for a CUDA target: `kernels` is what generateDeviceKernels made, `cubin` is null
/// without ptxas.
Plan makePlan(mlir::ModuleOp schedule, mlir::ModuleOp kernels, const CudaTarget &cuda,
              const Cubin *cubin);

/// The type of each tensor of the model and the rule that gave it. `module` is what the Import
/// phase leaves; fails after an error.
mlir::FailureOr<std::vector<Plan::Tensor>> readTypes(mlir::ModuleOp module);

std::string printPlan(const Plan &plan);
std::string printPlanJson(const Plan &plan);

/// "1.5 MiB".
std::string formatBytes(int64_t bytes);

} // namespace descent

#endif // DESCENT_COMPILER_REPORT_PLAN_H
