//===- NNGraph.h - Building nn ops from C++ -------------------------------===//
//
// Gradients and decompositions read like the formulas they implement when they are written with
// this. Elementwise members broadcast like NumPy; constants are rank 0, so that they fold into
// whatever kernel uses them.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_NNGRAPH_H
#define DESCENT_DIALECTS_NN_NNGRAPH_H

#include "dialects/NN/NN.h"

namespace descent::nn {

struct Graph {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static mlir::Type elementOf(mlir::Value value) { return typeOf(value).getElementType(); }
  static llvm::SmallVector<int64_t> shapeOf(mlir::Value value) {
    return llvm::to_vector(typeOf(value).getShape());
  }

  /// A rank-0 constant of `element`'s type.
  mlir::Value constant(double value, mlir::Type element);
  /// The constant in the element type of `like`.
  mlir::Value constantLike(double value, mlir::Value like) {
    return constant(value, elementOf(like));
  }
  /// A constant of a whole type.
  mlir::Value splat(double value, mlir::RankedTensorType type);

  mlir::Value add(mlir::Value a, mlir::Value b) { return AddOp::create(builder, loc, a, b); }
  mlir::Value add(mlir::Value a, double b) { return add(a, constantLike(b, a)); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return SubOp::create(builder, loc, a, b); }
  mlir::Value sub(double a, mlir::Value b) { return sub(constantLike(a, b), b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return MulOp::create(builder, loc, a, b); }
  mlir::Value mul(mlir::Value a, double b) { return mul(a, constantLike(b, a)); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return DivOp::create(builder, loc, a, b); }
  mlir::Value div(double a, mlir::Value b) { return div(constantLike(a, b), b); }
  mlir::Value neg(mlir::Value x) { return NegOp::create(builder, loc, x); }
  mlir::Value exp(mlir::Value x) { return ExpOp::create(builder, loc, x); }
  mlir::Value log(mlir::Value x) { return LogOp::create(builder, loc, x); }
  mlir::Value compare(ComparePredicate predicate, mlir::Value a, mlir::Value b) {
    return CompareOp::create(builder, loc, predicate, a, b);
  }
  mlir::Value compare(ComparePredicate predicate, mlir::Value a, double b) {
    return compare(predicate, a, constantLike(b, a));
  }
  mlir::Value where(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return WhereOp::create(builder, loc, condition, a, b);
  }
  mlir::Value whereElseZero(mlir::Value condition, mlir::Value a) {
    return where(condition, a, constantLike(0.0, a));
  }
  /// `value` where dy is not zero, else 0: an infinite derivative times an absent gradient is no
  /// gradient.
  mlir::Value guard(mlir::Value dy, mlir::Value value) {
    return where(compare(ComparePredicate::eq, dy, 0.0), constantLike(0.0, value), value);
  }

  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value toF32(mlir::Value x) { return cast(x, builder.getF32Type()); }

  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t axis, mlir::Type element);

  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keep = false);
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keep = false);
  mlir::Value max(mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keep = false);
  /// Over the last axis, which stays with size 1: one row kernel can hold a chain of these.
  mlir::Value rowSum(mlir::Value x) { return sum(x, {typeOf(x).getRank() - 1}, true); }
  mlir::Value rowMean(mlir::Value x) { return mean(x, {typeOf(x).getRank() - 1}, true); }
  mlir::Value rowMax(mlir::Value x) { return max(x, {typeOf(x).getRank() - 1}, true); }
  /// Every element; a scalar.
  mlir::Value sumAll(mlir::Value x);

  /// The transpose of broadcasting: sums over the axes that `type` lacks or has with size 1.
  mlir::Value sumTo(mlir::Value x, mlir::RankedTensorType type);
};

/// max, exp(x - max) and its sum over the last axis, shared by softmax, log_softmax and
/// cross_entropy.
struct SoftmaxParts {
  mlir::Value shifted; ///< x - max, never positive
  mlir::Value exponentials, sum;
};
SoftmaxParts buildSoftmaxParts(Graph &graph, mlir::Value x);

/// mean, centred values and 1 / deviation over the last axis; the variance is taken of the centred
/// values (two passes), never as a difference of squares.
struct LayerNormParts {
  mlir::Value normalised, reciprocalDeviation;
};
LayerNormParts buildLayerNormParts(Graph &graph, mlir::Value x, double epsilon);

/// What the rows of a cross entropy have in common between loss and gradient. Everything per row is
/// [R..., 1] in f32.
struct CrossEntropyParts {
  SoftmaxParts softmax;
  mlir::Value isTarget;    ///< [R..., C] i1, one true in each counted row
  mlir::Value counted;     ///< [R..., 1] i1: not ignored, and of nonzero row weight
  mlir::Value rowWeight;   ///< [R..., 1], null where all are 1
  mlir::Value classWeight; ///< [C] in f32, null where all are 1
  mlir::Value
      targetWeight; ///< [R..., 1] the class weight of the row's target, null where all are 1
};
CrossEntropyParts buildCrossEntropyParts(Graph &graph, CrossEntropyOp op);

/// [B] as [B, 1, ..., 1] of the given rank.
mlir::Value alignRowWeights(Graph &graph, mlir::Value weights, int64_t rank);

/// Where dropout keeps; null where it keeps everything.
mlir::Value buildDropoutMask(Graph &graph, DropoutOp op);
/// 1 / (1 - rate).
double dropoutScale(DropoutOp op);

/// The axis attribute as a position, counting from the end where negative.
inline int64_t normaliseAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
/// Sorted positions.
llvm::SmallVector<int64_t> normaliseAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

} // namespace descent::nn

#endif // DESCENT_DIALECTS_NN_NNGRAPH_H
