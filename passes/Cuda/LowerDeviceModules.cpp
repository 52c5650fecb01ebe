//===- LowerDeviceModules.cpp - Device code to the LLVM dialect -----------===//
//
// Order matters in two places. Math becomes intrinsics before convert-gpu-to-nvvm sees it, which
// would make calls of CUDA's libdevice of it. Addresses of strided views are computed before
// memrefs become pointers, since pointers without a descriptor have no place for strides.
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_LOWERDEVICEMODULES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct LowerDeviceModulesPass : descent::impl::LowerDeviceModulesBase<LowerDeviceModulesPass> {
  using LowerDeviceModulesBase::LowerDeviceModulesBase;

  LogicalResult initialize(MLIRContext *) override {
    build(narrow, 32);
    build(wide, 64);
    return success();
  }

  void runOnOperation() override {
    OpPassManager &pipeline = getOperation()->hasAttr(index64AttrName) ? wide : narrow;
    if (failed(runPipeline(pipeline, getOperation())))
      signalPassFailure();
  }

private:
  static void build(OpPassManager &pm, unsigned indexBits) {
    pm.addPass(createExpandDeviceMath());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
    pm.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
    pm.addPass(createSCFToControlFlowPass());
    pm.addPass(memref::createExpandStridedMetadataPass());
    pm.addPass(createLowerAffinePass());
    ConvertGpuOpsToNVVMOpsOptions options;
    options.indexBitwidth = indexBits;
    options.useBarePtrCallConv = true;
    pm.addPass(createConvertGpuOpsToNVVMOps(options));
    pm.addPass(createConvertNVVMToLLVMPass());
    pm.addPass(createReconcileUnrealizedCastsPass());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
  }

  OpPassManager narrow{gpu::GPUModuleOp::getOperationName()};
  OpPassManager wide{gpu::GPUModuleOp::getOperationName()};
};

} // namespace

void descent::buildLowerDeviceModules(OpPassManager &pm) {
  pm.nest<gpu::GPUModuleOp>().addPass(createLowerDeviceModules());
}

void descent::registerDevicePipelines() {
  PassPipelineRegistration<>("lower-device-kernels", "device functions to the LLVM dialect",
                             buildLowerDeviceModules);
}
