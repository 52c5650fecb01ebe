//===- EmitDevice.h - Tables of what a device does ------------------------===//

#ifndef DESCENT_COMPILER_TARGET_EMITDEVICE_H
#define DESCENT_COMPILER_TARGET_EMITDEVICE_H

#include "compiler/Target/Tables.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Cuda/CudaTarget.h"

#include <string>

namespace descent {

/// The device code of a program, as it is embedded. Both are empty where the code is emulated.
struct DeviceImages {
  CudaTarget cuda;
  std::string cubin; ///< empty without ptxas
  std::string ptx;
};

/// What lies behind the arena in a device's memory, in bytes.
struct DeviceMemory {
  int64_t workspace = 0; ///< the largest that a kernel or the library of products needs
  int64_t staging = 0;   ///< DESCENT_INPUT_SLOTS slots, from the first input to the end of the last
};
/// `plan` is the module after plan-memory, `kernels` what generateDeviceKernels made.
DeviceMemory deviceMemoryOf(mlir::ModuleOp plan, mlir::ModuleOp kernels, const CudaTarget &cuda);

/// A descent_command for each command of the block of an exec.device_kernel.
llvm::SmallVector<llvm::Constant *> commandRows(Tables &tables, mlir::Block &commands);

/// A pointer to the descent_device.
llvm::Constant *deviceRow(Tables &tables, const DeviceImages &device);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_EMITDEVICE_H
