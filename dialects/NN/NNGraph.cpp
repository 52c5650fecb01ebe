//===- NNGraph.cpp - The vocabulary of gradients and decompositions -------===//

#include "dialects/NN/NNGraph.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

static Attribute scalarAttribute(Builder builder, double value, Type element) {
  if (isa<FloatType>(element))
    return builder.getFloatAttr(element, value);
  return builder.getIntegerAttr(element, static_cast<int64_t>(value));
}

Value Graph::splat(double value, RankedTensorType type) {
  auto elements =
      DenseElementsAttr::get(type, scalarAttribute(builder, value, type.getElementType()));
  return ConstantOp::create(builder, loc, elements);
}

Value Graph::constant(double value, Type element) {
  return splat(value, RankedTensorType::get({}, element));
}

Value Graph::cast(Value x, Type element) {
  if (elementOf(x) == element)
    return x;
  return CastOp::create(builder, loc, x, TypeAttr::get(element));
}

Value Graph::reshape(Value x, ArrayRef<int64_t> shape) {
  if (typeOf(x).getShape() == shape)
    return x;
  return ReshapeOp::create(builder, loc, x, shape);
}

Value Graph::transpose(Value x, ArrayRef<int64_t> permutation) {
  return TransposeOp::create(builder, loc, x, permutation);
}

Value Graph::broadcast(Value x, ArrayRef<int64_t> shape) {
  if (typeOf(x).getShape() == shape)
    return x;
  return BroadcastOp::create(builder, loc, x, shape);
}

Value Graph::iota(ArrayRef<int64_t> shape, int64_t axis, Type element) {
  return IotaOp::create(builder, loc, builder.getDenseI64ArrayAttr(shape),
                        builder.getI64IntegerAttr(axis), TypeAttr::get(element));
}

// A reduction over no axes is the value itself.
Value Graph::sum(Value x, ArrayRef<int64_t> axes, bool keep) {
  return axes.empty() ? x : Value(ReduceSumOp::create(builder, loc, x, axes, keep));
}
Value Graph::mean(Value x, ArrayRef<int64_t> axes, bool keep) {
  return axes.empty() ? x : Value(ReduceMeanOp::create(builder, loc, x, axes, keep));
}
Value Graph::max(Value x, ArrayRef<int64_t> axes, bool keep) {
  return axes.empty() ? x : Value(ReduceMaxOp::create(builder, loc, x, axes, keep));
}
Value Graph::sumAll(Value x) {
  return sum(x, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank())));
}

Value Graph::sumTo(Value x, RankedTensorType type) {
  auto from = typeOf(x);
  if (from.getShape() == type.getShape())
    return x;
  int64_t extra = from.getRank() - type.getRank();
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < from.getRank(); ++axis)
    if (axis < extra || (type.getDimSize(axis - extra) == 1 && from.getDimSize(axis) != 1))
      axes.push_back(axis);
  return reshape(sum(x, axes), type.getShape());
}

SmallVector<int64_t> nn::normaliseAxes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes)
    result.push_back(normaliseAxis(axis, rank));
  llvm::sort(result);
  return result;
}

Value nn::alignRowWeights(Graph &graph, Value weights, int64_t rank) {
  SmallVector<int64_t> shape(rank, 1);
  shape[0] = Graph::typeOf(weights).getDimSize(0);
  return graph.reshape(weights, shape);
}

SoftmaxParts nn::buildSoftmaxParts(Graph &graph, Value x) {
  SoftmaxParts parts;
  parts.shifted = graph.sub(x, graph.rowMax(x));
  parts.exponentials = graph.exp(parts.shifted);
  parts.sum = graph.rowSum(parts.exponentials);
  return parts;
}

LayerNormParts nn::buildLayerNormParts(Graph &graph, Value x, double epsilon) {
  Value centred = graph.sub(x, graph.rowMean(x));
  Value variance = graph.rowMean(graph.mul(centred, centred));
  LayerNormParts parts;
  parts.reciprocalDeviation =
      RsqrtOp::create(graph.builder, graph.loc, graph.add(variance, epsilon));
  parts.normalised = graph.mul(centred, parts.reciprocalDeviation);
  return parts;
}

CrossEntropyParts nn::buildCrossEntropyParts(Graph &graph, CrossEntropyOp op) {
  CrossEntropyParts parts;
  Value logits = graph.toF32(op.getLogits());
  parts.softmax = buildSoftmaxParts(graph, logits);

  int64_t rank = Graph::typeOf(logits).getRank();
  int64_t classes = Graph::typeOf(logits).getDimSize(rank - 1);
  SmallVector<int64_t> rowShape = Graph::shapeOf(op.getTargets());
  rowShape.push_back(1);
  Value targets = graph.reshape(op.getTargets(), rowShape);

  // Comparing every class with the target costs one compare an element in a kernel that reads all
  // of them anyway, and spares a gather.
  Value classIndex = graph.iota({classes}, 0, Graph::elementOf(targets));
  parts.isTarget = graph.compare(ComparePredicate::eq, classIndex, targets);

  auto ignored = static_cast<double>(static_cast<int64_t>(op.getIgnoreIndex()));
  parts.counted = graph.compare(ComparePredicate::ne, targets, ignored);
  if (op.getRowWeights()) {
    parts.rowWeight = alignRowWeights(graph, op.getRowWeights(), rank);
    // A padding row may hold anything, NaN included: it is left out by selection, not by its zero
    // weight.
    Value weighs = graph.compare(ComparePredicate::ne, parts.rowWeight, 0.0);
    parts.counted = graph.where(parts.counted, weighs, parts.counted); // and
  }
  if (op.getClassWeights()) {
    parts.classWeight = graph.toF32(op.getClassWeights());
    parts.targetWeight = graph.rowSum(graph.whereElseZero(parts.isTarget, parts.classWeight));
  }
  return parts;
}

double nn::dropoutScale(DropoutOp op) {
  double rate = op.getRate().convertToDouble();
  return rate >= 1.0 ? 0.0 : 1.0 / (1.0 - rate);
}

Value nn::buildDropoutMask(Graph &graph, DropoutOp op) {
  double rate = op.getRate().convertToDouble();
  if (!op.getRng() || rate == 0.0)
    return {};
  Value random = RandomOp::create(graph.builder, graph.loc, op.getRng(), Graph::shapeOf(op.getX()),
                                  op.getId().value_or(0));
  return graph.compare(ComparePredicate::ge, random, rate);
}
