//===- EmitProgram.h - From the schedule to the ABI's tables --------------===//

#ifndef DESCENT_COMPILER_TARGET_EMITPROGRAM_H
#define DESCENT_COMPILER_TARGET_EMITPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Codegen/CpuTarget.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace descent {

struct DeviceImages;

/// What the tables say besides the schedule itself.
struct ProgramOptions {
  std::string name;                                          ///< the model's
  std::vector<std::pair<std::string, std::string>> settings; ///< the recipe, flattened
  CpuTarget cpu;                                             ///< of the host
  const DeviceImages *device = nullptr;                      ///< null for a CPU program
};

/// Builds the module that exports DESCENT_PROGRAM_SYMBOL: tables of parameters, states, inputs,
/// kernels and settings, and one function for each exec.program. `plan` is the module after
/// plan-memory; `kernels` holds the kernel functions, before or after lowering, with their tasks
/// and scratch, or for a device what generateDeviceKernels made. The kernels are declared, not
/// defined: they are compiled to objects of their own. Errors are emitted.
mlir::FailureOr<std::unique_ptr<llvm::Module>> emitProgram(mlir::ModuleOp plan,
                                                           mlir::ModuleOp kernels,
                                                           const ProgramOptions &options,
                                                           llvm::LLVMContext &context);

/// Arithmetic and traffic of one launch of a kernel: the cost of the ops inside, and each operand
/// and result once.
struct KernelCost {
  double flops = 0.0, bytes = 0.0;
};
KernelCost costOf(mlir::Operation *kernel);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_EMITPROGRAM_H
