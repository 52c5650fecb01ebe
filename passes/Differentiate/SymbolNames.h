//===- SymbolNames.h - Names that training adds to the model's ------------===//
//
// Parameters keep the names that the model gives them, and what training adds (moments, counters,
// the loss scale, working copies, slabs) has names made of words of its own. The two may meet; a
// person then has to rename a parameter, and is told which.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_DIFFERENTIATE_SYMBOLNAMES_H
#define DESCENT_PASSES_DIFFERENTIATE_SYMBOLNAMES_H

#include "mlir/IR/BuiltinOps.h"

namespace descent {

/// Fails, after an error at the symbol that has the name already, if `what` ("the loss scale")
/// can't be declared as `name`.
mlir::LogicalResult checkNameIsFree(mlir::ModuleOp module, llvm::StringRef name,
                                    llvm::StringRef what);

} // namespace descent

#endif // DESCENT_PASSES_DIFFERENTIATE_SYMBOLNAMES_H
