//===- Pipelines.cpp - The order of the passes ----------------------------===//
//
// The one file that orders passes. A comment at each place names what would go wrong elsewhere.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Pipelines.h"

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace descent {

void buildImportPhase(OpPassManager &pm) {
  // Before bind-batch: inside a module the batch of an argument is known only from its
  // instantiation.
  pm.addPass(createInlineModules());
  // Before anything that asks for a size: from here on every shape is static.
  pm.addPass(createBindBatch());
  // After bind-batch, since the weights have one element a row of the batch.
  pm.addPass(createAttachRowWeights());
  // Before differentiate: the ranges stand on the model's inputs, which the functions made from it
  // take over.
  pm.addPass(createBoundInputs());
  pm.addPass(createVerifyModel());
}

void buildPrecisionPhase(OpPassManager &pm) {
  // Before differentiate: the backward pass then runs in the types of the forward pass by itself.
  // After it, every gradient op would need rules of its own.
  pm.addPass(createInsertPrecisionCasts());
}

void buildDifferentiatePhase(OpPassManager &pm) {
  // Before differentiate: the gradient of log(softmax(x)) written out divides by a probability that
  // may be zero; the stable form has none.
  pm.addPass(createStabiliseLogs());
  pm.addPass(createDifferentiate());
  // After differentiate, which makes most of the casts that fold: the gradient of a cast is a cast.
  pm.addPass(createFoldCasts());
  // After fold-casts, so that what is left of a cast of a parameter is a cast right at its read.
  pm.addPass(createKeepWorkingCopies());
  // train.gradient is a message from differentiate to this pass; what stands between the two does
  // not know it.
  pm.addPass(createInsertOptimizer());
  // After insert-optimizer, which declares the states, and keep-working-copies, whose copies it may
  // replace.
  pm.addPass(createNarrowStorage());
  // After insert-optimizer, whose commit keeps the histories; before insert-loss-scaling replaces
  // train.seed, by which gradients are known.
  pm.addPass(createQuantizeProducts());
  // After all that looks at gradients is in place: it stands between them and the backward pass.
  pm.addPass(createInsertLossScaling());
  pm.addPass(createVerifyTrain());
}

void buildFusionPhase(OpPassManager &pm, const FusionOptions &options) {
  // Before decompose-ops and form-kernels: what it builds are nn ops to fuse like all others.
  pm.addPass(createLowerUpdates());
  // After differentiate: gradients of whole ops (softmax, layer_norm, cross_entropy) are better
  // than those of their parts. Before anything asks what may share a kernel.
  pm.addPass(createDecomposeOps());
  pm.addPass(createCanonicalizerPass());
  // Forward and gradient build the same statistics (softmax, norms) from the same input; merged
  // before kernels form, they are computed once and the two sides can share a kernel. After, they
  // would sit in different kernels and stay double.
  pm.addPass(createCSEPass());
  // form-kernels refuses reductions that are neither over rows nor over columns.
  pm.addPass(createSplitReductions());
  // Views made twice would hide that two kernels read one tensor.
  pm.addPass(createCSEPass());
  pm.addPass(createFormKernels());
  // After form-kernels: it needs to see that an epilogue's values are used by whole kernels or not
  // at all.
  FoldEpiloguesOptions epilogues;
  epilogues.target = options.cuda ? "cuda" : "cpu";
  pm.addPass(createFoldEpilogues(epilogues));
  // Recognises additions only once they are epilogues.
  pm.addPass(createFoldAccumulations());
  // Behind all that changes what a product computes: only a plain one takes a sum, and one with a
  // sum takes nothing more.
  if (options.cuda)
    pm.addPass(createFoldBiasGradients());
  pm.addPass(createOutlineKernels());
  pm.addPass(createVerifyKernels());
}

void buildSchedulePhase(OpPassManager &pm) {
  // Before order-operations: copies are launches that need a place in the order.
  pm.addPass(createInsertCopies());
  pm.addPass(createOrderOperations());
  // Lifetimes are those of the final order.
  pm.addPass(createPlanMemory());
  // After plan-memory: bytes that were given to another value order streams as well.
  pm.addPass(createAssignStreams());
  pm.addPass(createVerifyPlan());
}

void registerPhases() {
  PassPipelineRegistration<>("phase-import", "nn.module and nn.model to one static nn.model",
                             buildImportPhase);
  PassPipelineRegistration<>("phase-precision", "nn.model to one in the types of the recipe",
                             buildPrecisionPhase);
  PassPipelineRegistration<>("phase-differentiate", "nn.model to the training step",
                             buildDifferentiatePhase);
  PassPipelineRegistration<>("phase-fusion", "the training step to launches of kernels",
                             [](OpPassManager &pm) { buildFusionPhase(pm); });
  PassPipelineRegistration<>("phase-fusion-cuda",
                             "the training step to launches of kernels, for devices of CUDA",
                             [](OpPassManager &pm) { buildFusionPhase(pm, {.cuda = true}); });
  PassPipelineRegistration<>("phase-schedule", "launches to an exact schedule on one arena",
                             buildSchedulePhase);
}

} // namespace descent
