//===- ReverseMode.h - Gradients through a straight line of ops -----------===//

#ifndef DESCENT_PASSES_DIFFERENTIATE_REVERSEMODE_H
#define DESCENT_PASSES_DIFFERENTIATE_REVERSEMODE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace descent {

/// Reverse-mode differentiation of the ops of one block, by DifferentiableOp alone. Gradients of
/// one value are added as they come, which is the reverse order of use: fixed, whatever later
/// passes do.
///
///   ReverseMode reverse(block, sources);   // values that gradients are wanted for
///   reverse.seed(loss, one);
///   if (failed(reverse.run(builder))) ...
///   reverse.gradientOf(source);
class ReverseMode {
public:
  /// Marks what depends on `sources`: only that is differentiated. The terminator is left out.
  ReverseMode(mlir::Block &block, mlir::ValueRange sources);

  /// Adds to the gradient of a value; `builder` makes the addition if there was one already.
  void contribute(mlir::OpBuilder &builder, mlir::Value value, mlir::Value gradient);

  /// Builds all gradients at the builder's insertion point. Fails after naming every op on the way
  /// that has no gradient.
  mlir::LogicalResult run(mlir::OpBuilder &builder);

  /// Null where no gradient arrived.
  mlir::Value gradientOf(mlir::Value value) const { return gradients.lookup(value); }

  // What happened, for statistics: ops that got a gradient, ops that none flows through, values
  // with several contributions.
  unsigned differentiated = 0, skipped = 0, accumulated = 0;

private:
  mlir::LogicalResult visit(mlir::OpBuilder &builder, mlir::Operation *op, bool &isComplete);

  llvm::SmallVector<mlir::Operation *> forward;
  llvm::DenseSet<mlir::Value> needed;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients; // looked up, never iterated
};

} // namespace descent

#endif // DESCENT_PASSES_DIFFERENTIATE_REVERSEMODE_H
