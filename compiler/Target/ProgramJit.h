//===- ProgramJit.h - Runs outlined programs in this process --------------===//
//
// The end of the Fusion phase, executed: every exec.kernel is generated, compiled and loaded, and
// the launches of a function run one after another on buffers from malloc. It stands in for
// Schedule and the runtime where only the kernels' arithmetic matters: tests, and `descent-run
// --compiled`.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_TARGET_PROGRAMJIT_H
#define DESCENT_COMPILER_TARGET_PROGRAMJIT_H

#include "compiler/Target/CpuCodegen.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ReferenceTensor.h"
#include "llvm/ADT/StringMap.h"

namespace descent {

/// Ways of running that must not change a result.
struct ProgramRunOptions {
  int64_t tasksPerCall = 0; ///< at most so many tasks in one call of a kernel; 0 for all
  bool backwards = false;   ///< later tasks first
  bool inPlace = false;     ///< results take the place of inputs that die there, wherever
                            ///< reusableOperands allows it
};

/// Runs the kernels of a program, one launch at a time.
class KernelExecutor {
public:
  virtual ~KernelExecutor();

  struct Operand {
    char *data;
    int64_t bytes;
  };
  /// Runs the launch's kernel on its operands, inputs first; a result may lie over an input. Fails
  /// after emitting an error at the launch.
  virtual mlir::LogicalResult run(exec::LaunchOp launch, llvm::ArrayRef<Operand> operands,
                                  const ProgramRunOptions &options) = 0;
};

class ProgramJit {
public:
  /// Compiles the kernels of `program`, which verify-kernels accepts and which must outlive this
  /// object, for the CPU. Errors are emitted.
  static mlir::FailureOr<std::unique_ptr<ProgramJit>> create(mlir::ModuleOp program,
                                                             const CpuTarget &target);
  /// The same with kernels that somebody else has compiled.
  ProgramJit(mlir::ModuleOp program, std::unique_ptr<KernelExecutor> executor);

  /// Runs a function of launches and views. Inputs are rounded to the parameters' types; buffers
  /// hold NaN before they are written, and a write past the end of one is an error. Fails after
  /// emitting an error at the op.
  mlir::LogicalResult run(llvm::StringRef function, llvm::ArrayRef<reference::Tensor> inputs,
                          llvm::SmallVectorImpl<reference::Tensor> &results,
                          const ProgramRunOptions &options = {}) const;

private:
  mlir::ModuleOp program;
  std::unique_ptr<KernelExecutor> executor;
  /// (result, input) pairs of each kernel.
  llvm::StringMap<llvm::SmallVector<std::pair<unsigned, unsigned>>> reusable;
};

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_PROGRAMJIT_H
