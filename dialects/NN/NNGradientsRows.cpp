//===- NNGradientsRows.cpp - Gradients of reductions, rows and products ---===//
//
// The gradients of softmax, layer_norm and cross_entropy are written in the primitives their
// forward decomposes to, through the same builders, so that CSE lets them share statistics. Ties of
// a maximum over a reduction share dy evenly: over the window they sum to dy.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

using P = ComparePredicate;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// x's shape with size 1 on the reduced axes.
static SmallVector<int64_t> keptShape(Value x, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape = Graph::shapeOf(x);
  for (int64_t axis : normaliseAxes(axes, static_cast<int64_t>(shape.size())))
    shape[axis] = 1;
  return shape;
}

LogicalResult ReduceSumOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0] || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  Value dy = graph.reshape(resultGradients[0], keptShape(getX(), getAxes()));
  operandGradients.back() = graph.broadcast(dy, Graph::typeOf(getX()).getShape());
  return success();
}

LogicalResult ReduceMeanOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                          ArrayRef<bool> needed,
                                          SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0] || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  auto from = Graph::typeOf(getX()), to = Graph::typeOf(getY());
  double share =
      static_cast<double>(to.getNumElements()) / static_cast<double>(from.getNumElements());
  Value dy = graph.reshape(graph.mul(resultGradients[0], share), keptShape(getX(), getAxes()));
  operandGradients.back() = graph.broadcast(dy, from.getShape());
  return success();
}

LogicalResult ReduceMaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0] || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  SmallVector<int64_t> kept = keptShape(getX(), getAxes());
  Value isMax = graph.compare(P::eq, getX(), graph.reshape(getY(), kept));
  // Counted in f32: a narrow type stops counting at 256.
  Value ties = graph.sum(graph.toF32(isMax),
                         normaliseAxes(getAxes(), Graph::typeOf(getX()).getRank()), true);
  Value dy = graph.reshape(resultGradients[0], kept);
  Value share = graph.cast(graph.div(graph.toF32(dy), ties), Graph::elementOf(getX()));
  operandGradients.back() = graph.whereElseZero(isMax, share);
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Applies `formula` to y and dy in f32 with `axis` last, and brings the result back to the order
/// and type of `x`.
template <typename Formula>
static Value alongLastAxis(Graph &graph, Value y, Value dy, int64_t axis, Value x,
                           Formula formula) {
  int64_t rank = Graph::typeOf(x).getRank();
  axis = normaliseAxis(axis, rank);
  Type element = Graph::elementOf(x);
  if (axis == rank - 1)
    return graph.cast(formula(graph.toF32(y), graph.toF32(dy)), element);
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[axis], permutation[rank - 1]);
  Value dx = formula(graph.toF32(graph.transpose(y, permutation)),
                     graph.toF32(graph.transpose(dy, permutation)));
  return graph.transpose(graph.cast(dx, element), permutation);
}

LogicalResult SoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                       ArrayRef<bool> needed,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0] || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  operandGradients.back() =
      alongLastAxis(graph, getY(), resultGradients[0], getAxis(), getX(), [&](Value y, Value dy) {
        return graph.mul(y, graph.sub(dy, graph.rowSum(graph.mul(dy, y))));
      });
  return success();
}

LogicalResult LogSoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                          ArrayRef<bool> needed,
                                          SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0] || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  operandGradients.back() =
      alongLastAxis(graph, getY(), resultGradients[0], getAxis(), getX(), [&](Value y, Value dy) {
        return graph.sub(dy, graph.mul(graph.exp(y), graph.rowSum(dy)));
      });
  return success();
}

LogicalResult LayerNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(3, Value());
  if (!resultGradients[0])
    return success();
  MutableArrayRef<Value> gradients = MutableArrayRef(operandGradients).take_back(3);
  Graph graph{builder, getLoc()};
  Value dy = graph.toF32(resultGradients[0]);
  LayerNormParts parts;
  if (needed[0] || needed[1])
    parts = buildLayerNormParts(graph, graph.toF32(getX()), getEpsilon().convertToDouble());
  auto toOperand = [&](Value gradient, Value operand) {
    return graph.cast(graph.sumTo(gradient, Graph::typeOf(operand)), Graph::elementOf(operand));
  };
  if (needed[0]) {
    // With n = normalised: dx = r (dn - mean(dn) - n mean(dn n)).
    Value dn = graph.mul(dy, graph.toF32(getGain()));
    Value along = graph.mul(parts.normalised, graph.rowMean(graph.mul(dn, parts.normalised)));
    Value dx =
        graph.mul(parts.reciprocalDeviation, graph.sub(graph.sub(dn, graph.rowMean(dn)), along));
    gradients[0] = toOperand(dx, getX());
  }
  if (needed[1])
    gradients[1] = toOperand(graph.mul(dy, parts.normalised), getGain());
  if (needed[2])
    gradients[2] = toOperand(dy, getBias());
  return success();
}

LogicalResult DropoutOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                       ArrayRef<bool> needed,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(getNumOperands(), Value());
  Value dy = resultGradients[0];
  if (!dy || !needed[0])
    return success();
  Graph graph{builder, getLoc()};
  // The mask is drawn again from the same counters: nothing is stored.
  if (Value mask = buildDropoutMask(graph, *this))
    dy = graph.whereElseZero(mask, graph.mul(dy, dropoutScale(*this)));
  operandGradients[operandGradients.size() - getNumOperands()] = dy;
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

// A counted row with row weight r, class weights w, smoothing s over C classes and target t has
//   d logit[j] = r dsum (((1 - s) w[t] + s / C sum of w) p[j] - (1 - s) w[t] [j = t] - s / C w[j]).
LogicalResult CrossEntropyOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                            ArrayRef<bool> needed,
                                            SmallVectorImpl<Value> &operandGradients) {
  size_t first = operandGradients.size();
  operandGradients.append(getNumOperands(), Value());
  for (unsigned index = 2; index < getNumOperands(); ++index)
    if (needed[index] && (resultGradients[0] || resultGradients[1]))
      return emitOpError() << "has no gradient for its "
                           << (getClassWeights() && index == 2 ? "class_weights" : "row_weights")
                           << "; freeze the parameter they come from";
  // The weight counts targets: it does not depend on the logits.
  Value dsum = resultGradients[0];
  if (!dsum || !needed[0])
    return success();

  Graph graph{builder, getLoc()};
  CrossEntropyParts parts = buildCrossEntropyParts(graph, *this);
  double smoothing = getLabelSmoothing().convertToDouble();
  double share = smoothing / static_cast<double>(Graph::shapeOf(getLogits()).back());

  // The coefficients are per row or scalar, so that one multiplication and one selection remain for
  // each element.
  Type f32 = builder.getF32Type();
  Value target = parts.targetWeight ? graph.mul(parts.targetWeight, 1.0 - smoothing)
                                    : graph.constant(1.0 - smoothing, f32);
  Value scale;
  if (!parts.targetWeight)
    scale = graph.div(1.0, parts.softmax.sum);
  else
    scale = graph.div(smoothing == 0.0
                          ? target
                          : graph.add(target, graph.mul(graph.sumAll(parts.classWeight), share)),
                      parts.softmax.sum);
  Value slope = graph.sub(graph.mul(parts.softmax.exponentials, scale),
                          graph.whereElseZero(parts.isTarget, target));
  if (smoothing != 0.0)
    slope = parts.classWeight ? graph.sub(slope, graph.mul(parts.classWeight, share))
                              : graph.add(slope, -share);
  Value outer = parts.rowWeight ? graph.mul(parts.rowWeight, dsum) : dsum;
  Value dlogits = graph.whereElseZero(parts.counted, graph.mul(slope, outer));
  operandGradients[first] = graph.cast(dlogits, Graph::elementOf(getLogits()));
  return success();
}

LogicalResult MseOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                   ArrayRef<bool> needed,
                                   SmallVectorImpl<Value> &operandGradients) {
  size_t first = operandGradients.size();
  operandGradients.append(getNumOperands(), Value());
  if (getRowWeights() && needed[2] && (resultGradients[0] || resultGradients[1]))
    return emitOpError("has no gradient for its row_weights; freeze the parameter they come from");
  Value dsum = resultGradients[0];
  if (!dsum || !(needed[0] || needed[1]))
    return success();
  Graph graph{builder, getLoc()};
  Value difference = graph.sub(graph.toF32(getPredictions()), graph.toF32(getTargets()));
  Value outer = graph.mul(dsum, 2.0), gradient;
  if (getRowWeights()) {
    Value weights = alignRowWeights(graph, getRowWeights(), Graph::typeOf(difference).getRank());
    Value weighs = graph.compare(P::ne, weights, 0.0);
    gradient = graph.whereElseZero(weighs, graph.mul(difference, graph.mul(weights, outer)));
  } else {
    gradient = graph.mul(difference, outer);
  }
  if (needed[0])
    operandGradients[first] = graph.cast(gradient, Graph::elementOf(getPredictions()));
  if (needed[1])
    operandGradients[first + 1] = graph.cast(graph.neg(gradient), Graph::elementOf(getTargets()));
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Swaps the last two axes.
static Value transposeMatrix(Graph &graph, Value x) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, Graph::typeOf(x).getRank()));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return graph.transpose(x, permutation);
}

/// Folds all axes but the last into one.
static Value foldRows(Graph &graph, Value x) {
  auto type = Graph::typeOf(x);
  int64_t columns = type.getShape().back();
  int64_t rows = 1;
  for (int64_t size : type.getShape().drop_back())
    rows *= size;
  return graph.reshape(x, {rows, columns});
}

LogicalResult MatmulOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                      ArrayRef<bool> needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(2, Value());
  Value dy = resultGradients[0];
  if (!dy)
    return success();
  MutableArrayRef<Value> gradients = MutableArrayRef(operandGradients).take_back(2);
  Graph graph{builder, getLoc()};
  auto product = [&](Value a, Value b, bool transposeA, bool transposeB) -> Value {
    return MatmulOp::create(builder, getLoc(), a, b, transposeA, transposeB, TypeAttr());
  };
  Value a = getA(), b = getB();
  // The gradients' products run in the type of the product itself, whatever its sum was rounded to.
  dy = graph.cast(dy, Graph::typeOf(a).getElementType());
  bool transposeA = getTransposeA(), transposeB = getTransposeB();
  // One B for every batch: dB is one product over all rows of all batches, not a batch of products
  // and a sum.
  bool shared = Graph::typeOf(a).getRank() > 2 && Graph::typeOf(b).getRank() == 2;
  bool untransposed = shared && transposeA;
  if (untransposed) {
    a = transposeMatrix(graph, a);
    transposeA = false;
  }
  if (needed[0]) {
    // dA = dY B^T, or its transpose B dY^T where A is stored transposed.
    Value da = transposeA ? product(b, dy, transposeB, true) : product(dy, b, false, !transposeB);
    gradients[0] = untransposed ? transposeMatrix(graph, da) : da;
  }
  if (needed[1]) {
    if (shared) {
      a = foldRows(graph, a);
      dy = foldRows(graph, dy);
    }
    // dB = A^T dY, or its transpose dY^T A where B is stored transposed.
    gradients[1] =
        transposeB ? product(dy, a, true, transposeA) : product(a, dy, !transposeA, false);
  }
  return success();
}

LogicalResult Conv2DOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                      ArrayRef<bool> needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0], dx, dw;
  if (dy) // in the type of the product itself, whatever its sum was rounded to
    dy = Graph{builder, getLoc()}.cast(dy, Graph::elementOf(getX()));
  if (dy) // in the type of the product itself, whatever its sum was rounded to
    dy = Graph{builder, getLoc()}.cast(dy, Graph::elementOf(getX()));
  if (dy && needed[0])
    dx = Conv2DGradInputOp::create(builder, getLoc(), dy, getW(), getStrides(), getPadding(),
                                   getDilations(), Graph::typeOf(getX()).getShape(), TypeAttr());
  if (dy && needed[1])
    dw = Conv2DGradWeightOp::create(builder, getLoc(), getX(), dy, getStrides(), getPadding(),
                                    getDilations(), Graph::typeOf(getW()).getShape(), TypeAttr());
  operandGradients.append({dx, dw});
  return success();
}

LogicalResult MaxPool2DOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  Value dx;
  if (resultGradients[0] && needed[0])
    dx = MaxPool2DGradOp::create(builder, getLoc(), resultGradients[0], getX(), getKernel(),
                                 getStrides(), getPadding());
  operandGradients.push_back(dx);
  return success();
}

LogicalResult EmbeddingOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  Value dtable;
  if (resultGradients[0] && needed[1]) {
    Value dy = resultGradients[0];
    Type element = Graph::elementOf(getTable());
    dtable = EmbeddingGradOp::create(
        builder, getLoc(), dy, getIndices(), Graph::typeOf(getTable()).getDimSize(0),
        element == Graph::elementOf(dy) ? TypeAttr() : TypeAttr::get(element));
  }
  operandGradients.append({Value(), dtable});
  return success();
}

/// The backward pass needs the log of each row's sum. An op that does not save it is replaced by
/// one that does; the old op stays behind without uses (the caller may still hold it) and goes with
/// the next dead-code elimination.
LogicalResult AttentionOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                         ArrayRef<bool> needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(3, Value());
  if (resultGradients.size() > 1 && resultGradients[1])
    return emitOpError("has no gradient through its logsumexp");
  if (!resultGradients[0] || !(needed[0] || needed[1] || needed[2]))
    return success();
  AttentionOp forward = *this;
  if (!getSaveLogsumexp()) {
    OpBuilder before(*this);
    forward = AttentionOp::create(before, getLoc(), getQ(), getK(), getV(), getHeads(), getCausal(),
                                  /*save_logsumexp=*/true);
    forward->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
    getO().replaceAllUsesWith(forward.getO());
  }
  auto gradient = AttentionGradOp::create(builder, getLoc(), resultGradients[0], getQ(), getK(),
                                          getV(), forward.getO(), forward.getLogsumexp().front(),
                                          getHeads(), getCausal());
  MutableArrayRef<Value> gradients = MutableArrayRef(operandGradients).take_back(3);
  for (auto [index, value] : llvm::enumerate(gradient->getResults()))
    if (needed[index])
      gradients[index] = value;
  return success();
}
