//===- Register.cpp - What Descent's tools know ---------------------------===//
//
// The one place that includes MLIR's InitAll headers, which take seconds to compile. A new dialect
// or pipeline is added here.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Pipelines/Pipelines.h"
#include "dialects/Check/Check.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/Dialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Passes.h"

namespace descent {

void registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  registry.insert<nn::NNDialect, train::TrainDialect, exec::ExecDialect, check::CheckDialect>();
}

void registerAllPasses() {
  mlir::registerAllPasses();
  registerDescentPasses();
  registerKernelPipelines();
  registerDevicePipelines();
  registerPhases();
}

} // namespace descent
