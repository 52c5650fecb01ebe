//===- StateNames.h - States that more than one part knows by name --------===//
//
// Passes declare them, the plan and the reference ask for them, and the runtime finds them in a
// program's tables under the names of runtime/include/descent/abi.h (EmitProgram.cpp checks that
// the two agree).
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_TRAIN_STATENAMES_H
#define DESCENT_DIALECTS_TRAIN_STATENAMES_H

#include "llvm/ADT/StringRef.h"

namespace descent::train {

inline constexpr llvm::StringLiteral updatesState = "updates";        ///< i64, committed updates
inline constexpr llvm::StringLiteral lossScaleState = "loss_scale";   ///< f32
inline constexpr llvm::StringLiteral cleanStepsState = "clean_steps"; ///< i64, since a change
inline constexpr llvm::StringLiteral skippedStepsState = "skipped_steps"; ///< i64
/// f32 [operands, steps]: the largest magnitudes that fp8's scales come from.
inline constexpr llvm::StringLiteral amaxHistoryState = "amax_history";

} // namespace descent::train

#endif // DESCENT_DIALECTS_TRAIN_STATENAMES_H
