//===- Interfaces.h - What an op tells the passes -------------------------===//

#ifndef DESCENT_DIALECTS_NN_INTERFACES_H
#define DESCENT_DIALECTS_NN_INTERFACES_H

#include "dialects/NN/ReferenceTensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace descent {

/// Mixed-precision class of an op; see PrecisionOp.
enum class PrecisionClass { Narrow, Wide, WidestOperand, FollowsInput };

/// How an op may share a kernel with others; see FusibleOp.
enum class FusionClass {
  Elementwise, ///< one output element from one element of each (broadcast) operand
  Reduction,   ///< reduces one group of adjacent axes
  Contraction, ///< implements ContractionOp or has a product's kernel; takes an elementwise
               ///< epilogue
  View,        ///< same bytes, other shape: no kernel at all
  Copy,        ///< moves elements without arithmetic
  Opaque       ///< always a kernel of its own
};

/// C[b, m, n] = sum over k of A[b, m, k] B[b, k, n], row-major. With transposeA, A is stored [b, k,
/// m]; with transposeB, B is stored [b, n, k].
struct Contraction {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transposeA = false, transposeB = false;
};

/// Integers an IndexingOp accepts: [low, high), and `ignored` where it has a value for "no target".
struct IndexRange {
  int64_t low = 0, high = 0;
  std::optional<int64_t> ignored;
};

double defaultFlops(mlir::Operation *op);
double defaultBytes(mlir::Operation *op);
/// Rounds the last tensors of `results`, one for each result of the op, to the results' element
/// types. Hands `evaluated` on.
llvm::LogicalResult roundResults(mlir::Operation *op, llvm::LogicalResult evaluated,
                                 llvm::SmallVectorImpl<reference::Tensor> &results);
llvm::FailureOr<llvm::SmallVector<mlir::Value>>
lowerElementwiseToLinalg(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange operands);

} // namespace descent

#include "dialects/NN/Interfaces.h.inc"

#endif // DESCENT_DIALECTS_NN_INTERFACES_H
