//===- NNInfer.h - Shared by the shape inference of the ops ---------------===//
//
// Inference is where an op's rules on shapes and element types are kept: the parser, the verifier
// and bind-batch all run it, so that a rule is written once and its message is the same everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_NNINFER_H
#define DESCENT_DIALECTS_NN_NNINFER_H

#include "dialects/NN/NN.h"

namespace descent::nn {

using Dims = llvm::SmallVector<int64_t, 4>;
using MaybeLocation = std::optional<mlir::Location>;

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Reports why an op is refused (where there is a location to report at) and fails.
template <typename Op, typename... Parts>
llvm::LogicalResult refuse(MaybeLocation location, Parts &&...parts) {
  return mlir::emitOptionalError(location, "'", Op::getOperationName(), "' op ",
                                 std::forward<Parts>(parts)...);
}

inline bool isDynamic(int64_t size) { return mlir::ShapedType::isDynamic(size); }

/// Turns a negative axis into its place from the front; fails outside [-rank, rank).
inline llvm::FailureOr<int64_t> normaliseAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return llvm::failure();
  return axis < 0 ? axis + rank : axis;
}

/// "[2, 3, ?]", as the assembly has it.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// `?` is the batch and leads: a result with it elsewhere is refused, naming the axis.
template <typename Op>
llvm::LogicalResult finish(MaybeLocation location, llvm::ArrayRef<int64_t> shape,
                           mlir::Type element, llvm::SmallVectorImpl<mlir::Type> &results) {
  for (auto [axis, size] : llvm::enumerate(shape))
    if (axis > 0 && isDynamic(size))
      return refuse<Op>(location, "would have the batch '?' on axis ", axis, " of its result ",
                        formatShape(shape), "; the batch may only be the leading axis");
  results.push_back(mlir::RankedTensorType::get(shape, element));
  return llvm::success();
}

} // namespace descent::nn

#endif // DESCENT_DIALECTS_NN_NNINFER_H
