//===- DeviceKernel.h - What generators of device code build with ---------===//
//
// A generator turns one exec.kernel into a gpu.module with functions and an exec.device_kernel with
// the commands that launch them. This class makes both and keeps the rules that are common to all:
// names, types of buffers, which pointers may be called noalias, where the workspace lies.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEKERNEL_H
#define DESCENT_PASSES_CUDA_DEVICEKERNEL_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace descent {

/// On a gpu.module: an operand has 2^31 elements or more, so indices have 64 bits. Else 32.
inline constexpr llvm::StringLiteral index64AttrName = "descent.index64";

/// Sizes of a grid or block: x, y, z.
struct DeviceSize {
  int64_t x = 1, y = 1, z = 1;
};

/// The buffer of a tensor: static, identity layout, of the tensor's element type; i1 becomes i8
/// (one byte an element, 0 or 1). Its address is a multiple of 64, that of workspace of 256.
mlir::MemRefType deviceBufferType(mlir::Type tensor);

class DeviceKernel {
public:
  /// Appends gpu.module @<kernel>.gpu and exec.device_kernel @<kernel> to `target`.
  DeviceKernel(exec::KernelOp kernel, mlir::ModuleOp target);

  exec::DeviceKernelOp op() const { return device; }
  mlir::gpu::GPUModuleOp module() const { return functions; }

  /// The kernel's operands, inputs first.
  mlir::Value operand(unsigned index) { return buffers[index]; }
  mlir::Value input(unsigned index) { return operand(index); }
  mlir::Value output(unsigned index) { return operand(inputCount + index); }
  mlir::ValueRange operands() { return buffers; }

  /// A part of the kernel, for a generator that takes it for a kernel of its own: it has `inputs`
  /// and `outputs` for operands and appends to the same module, and to where commands() stands now.
  /// Names of its functions begin with <kernel>_<name>.
  DeviceKernel part(llvm::StringRef name, llvm::ArrayRef<mlir::Value> inputs,
                    llvm::ArrayRef<mlir::Value> outputs) const;

  /// A new part of the workspace.
  mlir::Value workspace(mlir::MemRefType type);

  /// A device function <kernel>[_suffix] that takes `buffers`, with an empty entry block, which the
  /// caller fills and ends with gpu.return. It runs in blocks of `block` threads only; at least
  /// `blocksPerMultiprocessor` of them are to fit a multiprocessor (0: no wish), which bounds its
  /// registers. Arguments are noalias, and readonly where they are inputs, unless the planner may
  /// place a result over an input there.
  mlir::gpu::GPUFuncOp function(llvm::StringRef suffix, mlir::ValueRange buffers, DeviceSize block,
                                int64_t blocksPerMultiprocessor = 0);

  /// The command that launches `function` on `buffers` in blocks of its size. `shared` is dynamic
  /// shared memory in bytes.
  void launch(mlir::gpu::GPUFuncOp function, DeviceSize grid, mlir::ValueRange buffers,
              int64_t shared = 0);
  /// The command that sets every byte.
  void fill(mlir::Value buffer, int8_t value);

  /// Where commands are appended; for those that have no function here.
  mlir::ImplicitLocOpBuilder &commands() { return builder; }

  /// The module's dynamic shared memory: an external array of 0 bytes in address space 3, aligned
  /// to 1024, which all functions of the module share. llvm.mlir.addressof gives its address.
  mlir::LLVM::GlobalOp dynamicShared();

private:
  exec::DeviceKernelOp device;
  mlir::gpu::GPUModuleOp functions;
  mlir::ImplicitLocOpBuilder builder;
  std::string prefix; ///< of the functions' names
  llvm::SmallVector<mlir::Value> buffers;
  unsigned inputCount;
  llvm::SmallDenseSet<unsigned> mayOverlap; ///< operands that may share their bytes with another
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEKERNEL_H
