//===- Compile.h - From a model and a recipe to a training program --------===//

#ifndef DESCENT_COMPILER_PIPELINES_COMPILE_H
#define DESCENT_COMPILER_PIPELINES_COMPILE_H

#include "compiler/Recipe/Recipe.h"
#include "compiler/Target/CudaCodegen.h"
#include "compiler/Target/Link.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Codegen/CpuTarget.h"
#include "passes/Cuda/CudaTarget.h"

#include <functional>
#include <memory>
#include <optional>

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace descent {

struct DeviceImages;

/// The forms of a program, in order. Each can be printed and the textual ones read back by
/// descent-opt. Gpu to Sass are those of device code.
enum class Level { NN, Train, Exec, Gpu, Nvvm, Ptx, Cubin, Sass, Llvm, Object, Executable };

struct CompileOptions {
  std::string modelPath;
  Recipe recipe;
  CpuTarget cpu;                  ///< of the host
  std::optional<CudaTarget> cuda; ///< the device, if the program runs on one
  /// The program needs the emulator beside the runtime.
  bool isEmulated() const { return cuda && cuda->emulated; }
  std::string printAfter; ///< a pass, or "all"; printed on stderr
  bool timePasses = false;
  bool verifyEach = true;
  /// Called on the module after each pass that leaves tensors (everything before plan-memory), with
  /// the pass's name. Failure stops the compilation.
  std::function<mlir::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)> afterEachPass;
};

/// One compilation, level by level. All errors go to the context's diagnostic handlers.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, CompileOptions options);
  ~Compilation();

  /// Reads the model and runs the phases up to `level` (at most Exec). The module at the level
  /// reached.
  mlir::FailureOr<mlir::ModuleOp> lowerTo(Level level);

  /// The module on tensors right before the Schedule phase: launches of kernels in train.func. Kept
  /// for reports; null before lowerTo(Exec).
  mlir::ModuleOp getLaunches() const;

  /// Generates kernels. Needs lowerTo(Exec). The kernel functions, or for a device its functions
  /// and commands, are in getKernels().
  mlir::LogicalResult generate();
  mlir::ModuleOp getKernels() const;

  /// The device's functions in the LLVM dialect. Needs generate().
  mlir::FailureOr<mlir::ModuleOp> lowerDevice();
  /// PTX of the device's functions, and their machine code, which is nothing without ptxas. Need
  /// generate().
  mlir::FailureOr<std::string> emitDevicePtx();
  mlir::FailureOr<std::optional<Cubin>> emitDeviceCubin();

  /// LLVM IR of the whole program, as text. Needs generate().
  mlir::FailureOr<std::string> emitLLVM();
  /// Objects of kernels and program, compiled in parallel. Needs generate().
  mlir::FailureOr<std::vector<ObjectBytes>> emitObjects();

  const CompileOptions &getOptions() const { return options; }

private:
  mlir::LogicalResult runPhase(llvm::function_ref<void(mlir::OpPassManager &)> build);
  void instrument(mlir::PassManager &pm) const;
  mlir::FailureOr<DeviceCode> translateDevice();
  mlir::FailureOr<ObjectBytes> emitTables(const DeviceImages *device);

  mlir::MLIRContext &context;
  CompileOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module, launches, kernels, loweredDevice;
  std::optional<std::string> ptx; // once it was asked for
  std::optional<std::optional<Cubin>> cubin;
};

} // namespace descent

#endif // DESCENT_COMPILER_PIPELINES_COMPILE_H
