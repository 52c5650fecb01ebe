//===- NNDecompose.cpp - Named computations in primitives -----------------===//
//
// Rows stay rows: reductions run over the last axis and keep it with size 1, so that one kernel can
// hold a whole softmax, norm or loss together with its gradient. Forward and gradient use the same
// builders (NNGraph.h); after CSE the gradient reuses the forward's statistics instead of computing
// them again.
//
// Everything here is f32 inside, whatever the operands are: the result is rounded once to its own
// type.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {
enum class Reduction { Sum, Mean, Max };

Value reduce(Graph &graph, Reduction kind, Value x, ArrayRef<int64_t> axes, bool keep) {
  switch (kind) {
  case Reduction::Sum:
    return graph.sum(x, axes, keep);
  case Reduction::Mean:
    return graph.mean(x, axes, keep);
  case Reduction::Max:
    return graph.max(x, axes, keep);
  }
  llvm_unreachable("covered switch");
}
} // namespace

/// The primitive reductions are those over one group of adjacent axes that is first or last: they
/// are rows or columns of a matrix. Several groups are reduced one after the other, last group
/// first, so that the biggest saving comes while rows are contiguous; a group in the middle is
/// moved to the end. The parts of a mean are means: equal groups make the mean of means the mean.
static FailureOr<SmallVector<Value>> decomposeReduction(Operation *op, OpBuilder &builder,
                                                        Reduction kind, Value x,
                                                        ArrayRef<int64_t> axesAttr, bool keep) {
  Graph graph{builder, op->getLoc()};
  int64_t rank = Graph::typeOf(x).getRank();
  SmallVector<int64_t> axes = normaliseAxes(axesAttr, rank);
  auto adjacent = [](ArrayRef<int64_t> group) {
    return group.back() - group.front() + 1 == static_cast<int64_t>(group.size());
  };
  if (axes.empty() || (adjacent(axes) && (axes.front() == 0 || axes.back() == rank - 1))) {
    if (!axes.empty())
      return SmallVector<Value>{op->getResult(0)};
    return SmallVector<Value>{x};
  }

  Type element = Graph::elementOf(x);
  Value value = graph.toF32(x);
  // Reduced axes stay with size 1 until the end, so that positions stay valid.
  for (ArrayRef<int64_t> rest = axes; !rest.empty();) {
    size_t length = 1;
    while (length < rest.size() && rest[rest.size() - length - 1] + 1 == rest[rest.size() - length])
      ++length;
    ArrayRef<int64_t> group = rest.take_back(length);
    rest = rest.drop_back(length);

    SmallVector<int64_t> shape = Graph::shapeOf(value), kept = shape;
    for (int64_t axis : group)
      kept[axis] = 1;
    bool first =
        llvm::all_of(ArrayRef(shape).take_front(group.front()), [](int64_t n) { return n == 1; });
    bool last = llvm::all_of(ArrayRef(shape).drop_front(group.back() + 1),
                             [](int64_t n) { return n == 1; });
    if (last || first) {
      // Axes of size 1 around the group join it.
      SmallVector<int64_t> wider(group);
      for (int64_t axis = group.back() + 1; last && axis < rank; ++axis)
        wider.push_back(axis);
      for (int64_t axis = group.front() - 1; !last && axis >= 0; --axis)
        wider.insert(wider.begin(), axis);
      value = reduce(graph, kind, value, wider, true);
      continue;
    }
    SmallVector<int64_t> permutation;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!llvm::is_contained(group, axis))
        permutation.push_back(axis);
    auto outer = static_cast<int64_t>(permutation.size());
    permutation.append(group.begin(), group.end());
    value = graph.transpose(value, permutation);
    value = reduce(graph, kind, value, llvm::to_vector(llvm::seq<int64_t>(outer, rank)), false);
    value = graph.reshape(value, kept);
  }
  value = graph.reshape(value, Graph::shapeOf(op->getResult(0)));
  return SmallVector<Value>{graph.cast(value, element)};
}

FailureOr<SmallVector<Value>> ReduceSumOp::decompose(OpBuilder &builder) {
  return decomposeReduction(*this, builder, Reduction::Sum, getX(), getAxes(), getKeep());
}
FailureOr<SmallVector<Value>> ReduceMeanOp::decompose(OpBuilder &builder) {
  return decomposeReduction(*this, builder, Reduction::Mean, getX(), getAxes(), getKeep());
}
FailureOr<SmallVector<Value>> ReduceMaxOp::decompose(OpBuilder &builder) {
  return decomposeReduction(*this, builder, Reduction::Max, getX(), getAxes(), getKeep());
}

//===----------------------------------------------------------------------===//
// Softmax and layer_norm
//===----------------------------------------------------------------------===//

/// Runs `body` with `axis` moved to the end, in f32.
template <typename Body>
static Value alongLastAxis(Graph &graph, Value x, int64_t axis, Body body) {
  int64_t rank = Graph::typeOf(x).getRank();
  axis = normaliseAxis(axis, rank);
  Type element = Graph::elementOf(x);
  if (axis == rank - 1)
    return graph.cast(body(graph.toF32(x)), element);
  // Swapping two axes is its own inverse.
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[axis], permutation[rank - 1]);
  Value y = body(graph.toF32(graph.transpose(x, permutation)));
  return graph.transpose(graph.cast(y, element), permutation);
}

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  return SmallVector<Value>{alongLastAxis(graph, getX(), getAxis(), [&](Value x) {
    SoftmaxParts parts = buildSoftmaxParts(graph, x);
    return graph.mul(parts.exponentials, graph.div(1.0, parts.sum));
  })};
}

FailureOr<SmallVector<Value>> LogSoftmaxOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  return SmallVector<Value>{alongLastAxis(graph, getX(), getAxis(), [&](Value x) {
    SoftmaxParts parts = buildSoftmaxParts(graph, x);
    return graph.sub(parts.shifted, graph.log(parts.sum));
  })};
}

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  LayerNormParts parts =
      buildLayerNormParts(graph, graph.toF32(getX()), getEpsilon().convertToDouble());
  Value y = graph.add(graph.mul(parts.normalised, graph.toF32(getGain())), graph.toF32(getBias()));
  return SmallVector<Value>{graph.cast(y, Graph::elementOf(getX()))};
}

FailureOr<SmallVector<Value>> DropoutOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  Value mask = buildDropoutMask(graph, *this);
  if (!mask)
    return SmallVector<Value>{getX()};
  return SmallVector<Value>{graph.whereElseZero(mask, graph.mul(getX(), dropoutScale(*this)))};
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

// With log p = shifted - log(sum), target t, class weights w, smoothing s over C classes, and row
// weight r, a counted row adds
//   r ((1 - s) w[t] (-log p[t]) + s / C sum over c of w[c] (-log p[c]))   to the sum, and   r w[t]
//   to the weight.
FailureOr<SmallVector<Value>> CrossEntropyOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  CrossEntropyParts parts = buildCrossEntropyParts(graph, *this);
  double smoothing = getLabelSmoothing().convertToDouble();
  auto classes = static_cast<double>(Graph::shapeOf(getLogits()).back());

  Value logSum = graph.log(parts.softmax.sum);
  // log(sum) is added to the one selected value, not to all of them.
  Value picked = graph.rowSum(graph.whereElseZero(parts.isTarget, parts.softmax.shifted));
  Value loss = graph.sub(logSum, picked);
  if (parts.targetWeight) // a class of weight 0 adds nothing even where its loss is infinite
    loss = graph.whereElseZero(graph.compare(ComparePredicate::ne, parts.targetWeight, 0.0),
                               graph.mul(loss, parts.targetWeight));
  if (smoothing != 0.0) {
    Value all = graph.sub(logSum, parts.softmax.shifted);
    if (parts.classWeight)
      all = graph.whereElseZero(graph.compare(ComparePredicate::ne, parts.classWeight, 0.0),
                                graph.mul(all, parts.classWeight));
    Value smooth = graph.mul(graph.rowSum(all), smoothing / classes);
    // At smoothing 1 the target's own loss has no part in the sum, infinite or not.
    loss = smoothing == 1.0 ? smooth : graph.add(graph.mul(loss, 1.0 - smoothing), smooth);
  }
  Value weight = parts.targetWeight;
  if (parts.rowWeight) {
    loss = graph.mul(loss, parts.rowWeight);
    weight = weight ? graph.mul(weight, parts.rowWeight) : parts.rowWeight;
  }
  if (!weight)
    weight = graph.constant(1.0, builder.getF32Type());
  loss = graph.whereElseZero(parts.counted, loss);
  weight = graph.whereElseZero(parts.counted, weight);
  return SmallVector<Value>{graph.sumAll(loss), graph.sumAll(weight)};
}

FailureOr<SmallVector<Value>> MseOp::decompose(OpBuilder &builder) {
  Graph graph{builder, getLoc()};
  Value difference = graph.sub(graph.toF32(getPredictions()), graph.toF32(getTargets()));
  Value squares = graph.mul(difference, difference);
  auto type = Graph::typeOf(squares);
  if (type.getRank() > 1)
    squares = graph.rowSum(squares);
  if (!getRowWeights())
    return SmallVector<Value>{
        graph.sumAll(squares),
        graph.constant(static_cast<double>(type.getNumElements()), builder.getF32Type())};

  Value weights = alignRowWeights(graph, getRowWeights(), type.getRank());
  Value weighs = graph.compare(ComparePredicate::ne, weights, 0.0);
  Value sum = graph.sumAll(graph.whereElseZero(weighs, graph.mul(squares, weights)));
  auto elements = static_cast<double>(type.getNumElements() / type.getDimSize(0));
  return SmallVector<Value>{sum, graph.mul(graph.sumAll(getRowWeights()), elements)};
}
