//===- CpuCodegen.h - Kernel modules to machine code ----------------------===//
//
// kernel functions --lowerKernelFunctions--> LLVM dialect --compileToObject--> object file
// --KernelJit--> callable in this process.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_TARGET_CPUCODEGEN_H
#define DESCENT_COMPILER_TARGET_CPUCODEGEN_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Codegen/CpuTarget.h"
#include "runtime/include/descent/abi.h"
#include <memory>
#include <string>

namespace llvm {
class Module;
namespace orc {
class LLJIT;
}
} // namespace llvm

namespace descent {

/// Runs the pipeline `lower-kernel-functions` on `module`, in place. Errors are emitted.
mlir::LogicalResult lowerKernelFunctions(mlir::ModuleOp module, const CpuTarget &target);

/// The same for each of the modules inside `outer`, in parallel where the context allows threads.
/// (Pass managers of one's own on several threads would load dialects side by side, which MLIR does
/// not allow.)
mlir::LogicalResult lowerNestedKernelFunctions(mlir::ModuleOp outer, const CpuTarget &target);

/// Position-independent ELF object of a module in the LLVM dialect. The context must know the LLVM
/// translations (registerAllDialects). The same module and target always give the same bytes.
/// Errors are emitted at the module.
mlir::FailureOr<llvm::SmallVector<char, 0>> compileToObject(mlir::ModuleOp module,
                                                            const CpuTarget &target);

/// The same for a module in LLVM IR; sets its triple and data layout.
mlir::FailureOr<llvm::SmallVector<char, 0>>
compileToObject(llvm::Module &module, const CpuTarget &target, mlir::Location where);

/// Sets the triple and the data layout of `target`.
mlir::LogicalResult setTarget(llvm::Module &module, const CpuTarget &target, mlir::Location where);

/// The textual LLVM IR that compileToObject would compile.
mlir::FailureOr<std::string> emitLLVMIR(mlir::ModuleOp module, const CpuTarget &target);

/// The kernels of a module, compiled and loaded into this process. Functions that they call (libm)
/// come from the process.
class KernelJit {
public:
  /// `module` holds kernel functions before lowering; it is left as it was. Errors are emitted at
  /// the module.
  static mlir::FailureOr<std::unique_ptr<KernelJit>> create(mlir::ModuleOp module,
                                                            const CpuTarget &target);
  /// Loads an object that compileToObject made. `where` is the location of errors.
  static mlir::FailureOr<std::unique_ptr<KernelJit>> load(llvm::ArrayRef<char> object,
                                                          mlir::Location where);
  ~KernelJit();

  /// Null if there is no symbol of that name. Valid as long as this object.
  void *address(llvm::StringRef name) const;
  descent_kernel_function kernel(llvm::StringRef name) const {
    return reinterpret_cast<descent_kernel_function>(address(name));
  }

private:
  explicit KernelJit(std::unique_ptr<llvm::orc::LLJIT> jit);
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_CPUCODEGEN_H
