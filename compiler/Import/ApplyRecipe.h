//===- ApplyRecipe.h - From the recipe to attributes of the module --------===//

#ifndef DESCENT_COMPILER_IMPORT_APPLYRECIPE_H
#define DESCENT_COMPILER_IMPORT_APPLYRECIPE_H

#include "compiler/Recipe/Recipe.h"
#include "mlir/IR/BuiltinOps.h"

namespace descent {

/// Puts batch size, optimizer, schedule, clip, groups and precision on the module (`train.*`
/// attributes), where passes find them and printed IR shows them.
void applyRecipe(mlir::ModuleOp module, const Recipe &recipe);

/// Refuses overrides of precision that match no op, at their place in the recipe. Like
/// freezeParameters it needs the names that inline-modules makes.
mlir::LogicalResult checkOverrides(mlir::ModuleOp module, const Recipe &recipe);

/// Marks the parameters that the recipe's groups freeze, and refuses group patterns that match no
/// parameter. Needs the names that inline-modules makes, so it runs after the Import phase.
mlir::LogicalResult freezeParameters(mlir::ModuleOp module, const Recipe &recipe);

} // namespace descent

#endif // DESCENT_COMPILER_IMPORT_APPLYRECIPE_H
