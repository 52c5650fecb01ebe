//===- CudaCodegen.h - Device modules to PTX and cubin --------------------===//

#ifndef DESCENT_COMPILER_TARGET_CUDACODEGEN_H
#define DESCENT_COMPILER_TARGET_CUDACODEGEN_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Cuda/CudaTarget.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>
#include <string>

namespace mlir {
class PassManager;
} // namespace mlir

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace descent {

/// Device code of a whole program, as LLVM IR for nvptx64.
struct DeviceCode {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Lowers the gpu.modules of `kernels` (what generateDeviceKernels made) in place to the LLVM
/// dialect. `instrument` may add printing and timing to the passes.
mlir::LogicalResult
lowerDeviceKernels(mlir::ModuleOp kernels,
                   llvm::function_ref<void(mlir::PassManager &)> instrument = nullptr);

/// The lowered modules translated, linked into one and optimised.
mlir::FailureOr<DeviceCode> translateDeviceKernels(mlir::ModuleOp kernels, const CudaTarget &cuda);

/// PTX of translated code. Consumes nothing; the module is changed by the code generator.
mlir::FailureOr<std::string> emitPtx(llvm::Module &module, const CudaTarget &cuda,
                                     mlir::Location where);

/// What ptxas says about a function.
struct DeviceResources {
  int registers = 0;       ///< a thread
  int64_t shared = 0;      ///< static shared memory, bytes
  int64_t stack = 0;       ///< bytes a thread
  int64_t spillStores = 0; ///< bytes a thread
  int64_t spillLoads = 0;
};

struct Cubin {
  std::string bytes;
  llvm::StringMap<DeviceResources> functions; ///< by name
};

/// Where a tool is: $PTXAS for ptxas, PATH, $CUDA_HOME/bin, /usr/local/cuda/bin. Empty if nowhere.
std::string findCudaTool(llvm::StringRef name);

/// Assembles PTX for the chip. Nothing if there is no ptxas; an error if it refuses the code.
mlir::FailureOr<std::optional<Cubin>> assemble(llvm::StringRef ptx, const CudaTarget &cuda,
                                               mlir::Location where);

/// The cubin as text, by nvdisasm. An error if there is no nvdisasm.
mlir::FailureOr<std::string> disassemble(llvm::StringRef cubin, mlir::Location where);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_CUDACODEGEN_H
