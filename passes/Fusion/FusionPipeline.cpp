//===- FusionPipeline.cpp - The Fusion phase ------------------------------===//

#include "passes/Fusion/FusionPipeline.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

void descent::buildFusionPipeline(OpPassManager &pm) {
  // Named computations become primitives before anything asks what may share a kernel.
  pm.addPass(createDecomposeOps());
  // Forward and gradient build the same statistics (softmax, norms) from the same input; merged before kernels form, they are computed once
  // and the two sides can share a kernel. After, they would sit in different kernels and stay double.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // form-kernels refuses reductions that are neither over rows nor over columns.
  pm.addPass(createSplitReductions());
  // Views made twice would hide that two kernels read one tensor.
  pm.addPass(createCSEPass());
  pm.addPass(createFormKernels());
  pm.addPass(createFoldEpilogues());
  // Recognises additions only once they are epilogues.
  pm.addPass(createFoldAccumulations());
  pm.addPass(createOutlineKernels());
  pm.addPass(createVerifyKernels());
}

void descent::registerFusionPipeline() {
  PassPipelineRegistration<>("fusion", "Group the ops of tensor programs into kernels (the Fusion phase)",
                             buildFusionPipeline);
}
