//===- Compile.h - From a model and a recipe to a training program --------===//

#ifndef DESCENT_COMPILER_PIPELINES_COMPILE_H
#define DESCENT_COMPILER_PIPELINES_COMPILE_H

#include "compiler/Recipe/Recipe.h"
#include "compiler/Target/Link.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Codegen/CpuTarget.h"

#include <functional>
#include <memory>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace descent {

/// The forms of a program, in order. Each can be printed and the textual ones read back by
/// descent-opt.
enum class Level { NN, Train, Exec, Llvm, Object, Executable };

struct CompileOptions {
  std::string modelPath;
  Recipe recipe;
  CpuTarget cpu;
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

  /// Generates kernels and the program's tables. Needs lowerTo(Exec). The kernel functions are in
  /// getKernels().
  mlir::LogicalResult generate();
  mlir::ModuleOp getKernels() const;

  /// LLVM IR of the whole program, as text. Needs generate().
  mlir::FailureOr<std::string> emitLLVM();
  /// Objects of kernels and program, compiled in parallel. Needs generate().
  mlir::FailureOr<std::vector<ObjectBytes>> emitObjects();

  const CompileOptions &getOptions() const { return options; }

private:
  mlir::LogicalResult runPhase(void (*build)(mlir::OpPassManager &));

  mlir::MLIRContext &context;
  CompileOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module, launches, kernels;
};

} // namespace descent

#endif // DESCENT_COMPILER_PIPELINES_COMPILE_H
