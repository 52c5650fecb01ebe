//===- EmulatedExecutor.h - Kernels of a program on the emulated GPU ------===//

#ifndef DESCENT_TOOLS_DESCENTRUN_EMULATEDEXECUTOR_H
#define DESCENT_TOOLS_DESCENTRUN_EMULATEDEXECUTOR_H

#include "compiler/Target/ProgramJit.h"
#include "passes/Cuda/CudaTarget.h"

namespace descent {

/// Generates device code for the kernels of `program` and runs it with all of the emulator's
/// checks; what they find is an error at the launch. `ProgramRunOptions::backwards` shuffles
/// threads and blocks. Errors are emitted.
mlir::FailureOr<std::unique_ptr<KernelExecutor>> createEmulatedExecutor(mlir::ModuleOp program,
                                                                        const CudaTarget &cuda);

} // namespace descent

#endif // DESCENT_TOOLS_DESCENTRUN_EMULATEDEXECUTOR_H
