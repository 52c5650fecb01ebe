//===- EmitDevice.h - Tables of what a device does ------------------------===//

#ifndef DESCENT_COMPILER_TARGET_EMITDEVICE_H
#define DESCENT_COMPILER_TARGET_EMITDEVICE_H

#include "compiler/Target/Tables.h"
#include "mlir/IR/Block.h"
#include "passes/Cuda/CudaTarget.h"

#include <string>

namespace descent {

/// The device code of a program, as it is embedded. Both are empty where the code is emulated.
struct DeviceImages {
  CudaTarget cuda;
  std::string cubin; ///< empty without ptxas
  std::string ptx;
};

/// A descent_command for each command of the block of an exec.device_kernel.
llvm::SmallVector<llvm::Constant *> commandRows(Tables &tables, mlir::Block &commands);

/// A pointer to the descent_device.
llvm::Constant *deviceRow(Tables &tables, const DeviceImages &device);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_EMITDEVICE_H
