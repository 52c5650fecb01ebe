//===- FusionPipeline.h - The Fusion phase --------------------------------===//

#ifndef DESCENT_PASSES_FUSION_FUSIONPIPELINE_H
#define DESCENT_PASSES_FUSION_FUSIONPIPELINE_H

namespace mlir {
class OpPassManager;
}

namespace descent {

/// Appends the Fusion phase behind lower-updates: programs of nn ops become kernels and launches.
void buildFusionPipeline(mlir::OpPassManager &pm);

/// Registers the above as the pipeline `fusion`.
void registerFusionPipeline();

} // namespace descent

#endif // DESCENT_PASSES_FUSION_FUSIONPIPELINE_H
