//===- FunctionGradient.h - The vector-Jacobian product of a function -----===//

#ifndef DESCENT_COMPILER_REFERENCE_FUNCTIONGRADIENT_H
#define DESCENT_COMPILER_REFERENCE_FUNCTIONGRADIENT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace descent {

/// Adds, after `function` (one block of nn ops), the function @NAME.gradient: its arguments are
/// those of `function`, then one gradient per float result; its results are the gradients of the
/// float arguments, in order, zeros where none arrives. Built by DifferentiableOp alone, as
/// `differentiate` does for models. Fails after naming every op on the way that has no gradient.
mlir::FailureOr<mlir::func::FuncOp> buildFunctionGradient(mlir::func::FuncOp function);

} // namespace descent

#endif // DESCENT_COMPILER_REFERENCE_FUNCTIONGRADIENT_H
