//===- Pipelines.h - The order of the passes ------------------------------===//

#ifndef DESCENT_COMPILER_PIPELINES_PIPELINES_H
#define DESCENT_COMPILER_PIPELINES_PIPELINES_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
}

namespace descent {

// Each phase starts where the one before ended and closes with a verify pass. descent-opt knows
// them as `phase-import` and so on.
void buildImportPhase(mlir::OpPassManager &pm);        // nn.module, nn.model -> one static nn.model
void buildPrecisionPhase(mlir::OpPassManager &pm);     // the model in the recipe's types
void buildDifferentiatePhase(mlir::OpPassManager &pm); // nn.model -> train.func
struct FusionOptions {
  bool cuda = false; // products are a library's, whose epilogues are few
};
void buildFusionPhase(mlir::OpPassManager &pm,
                      const FusionOptions &options = {}); // train.func on nn ops -> on exec.launch
void buildSchedulePhase(mlir::OpPassManager &pm);         // train.func -> exec.program

void registerPhases();

} // namespace descent

#endif // DESCENT_COMPILER_PIPELINES_PIPELINES_H
