//===- NNInferRows.cpp - Result types: reductions, rows, losses, products -===//
//
// A model never reduces over the batch: the padding rows of a ragged last batch would count. Losses
// are the one exception, because attach-row-weights gives them the weights of the rows. Hence '?'
// on a reduced axis is refused here; after bind-batch gradients may reduce it.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

#define INFER(OP)                                                                                  \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, MaybeLocation location, Adaptor op,     \
                                     SmallVectorImpl<Type> &results)
#define INFER_WITH(FUNCTION, OP)                                                                   \
  INFER(OP) { return FUNCTION<OP>(location, op, results); }

/// C2 of ops with several float operands: nothing is converted silently.
template <typename Op>
static LogicalResult checkElements(MaybeLocation location, StringRef firstName, Value first,
                                   StringRef secondName, Value second) {
  if (typeOf(first).getElementType() == typeOf(second).getElementType())
    return success();
  return refuse<Op>(location, /*C2*/ "element types differ: ", firstName, " is ", typeOf(first),
                    " and ", secondName, " is ", typeOf(second),
                    "; nn.cast one of them to the other's");
}

/// C2 of products: two f8 formats may meet, since forward values and gradients have different ones.
template <typename Op>
static LogicalResult checkFactors(MaybeLocation location, StringRef firstName, Value first,
                                  StringRef secondName, Value second) {
  if (isF8(typeOf(first).getElementType()) && isF8(typeOf(second).getElementType()))
    return success();
  return checkElements<Op>(location, firstName, first, secondName, second);
}

/// The element type of an AccumulatingOp's result. The parser infers before it moves the attributes
/// in braces into properties, so `result_type` is looked up in both places.
template <typename Op>
static FailureOr<Type> sumType(MaybeLocation location, typename Op::Adaptor op, Value operand) {
  auto wanted = op.getResultTypeAttr();
  if (DictionaryAttr written = op.getAttributes(); !wanted && written)
    wanted = written.template getAs<TypeAttr>("result_type");
  Type element = typeOf(operand).getElementType();
  if (!wanted && isF8(element))
    return refuse<Op>(location, /*C2*/ "operands are ", typeOf(operand),
                      "; a sum does not fit f8: add {result_type = f32}");
  Type type = wanted ? wanted.getValue() : element;
  if (!type.isF32() && !type.isBF16() && !type.isF16())
    return refuse<Op>(location, "result_type is ", type, "; it must be f32, bf16 or f16");
  return type;
}

//===----------------------------------------------------------------------===//
// Reductions and rows
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult inferReduce(MaybeLocation location, typename Op::Adaptor op,
                                 SmallVectorImpl<Type> &results) {
  RankedTensorType type = typeOf(op.getX());
  int64_t rank = type.getRank();
  llvm::SmallBitVector reduced(rank);
  for (int64_t written : op.getAxes()) {
    FailureOr<int64_t> axis = normaliseAxis(written, rank);
    if (failed(axis))
      return refuse<Op>(location, /*C1*/ "axis ", written, " of ", type, "; it must be in [", -rank,
                        ", ", rank, ")");
    if (reduced.test(*axis))
      return refuse<Op>(location, /*C1*/ "axis ", *axis, " of ", type, " is named twice in ",
                        formatShape(op.getAxes()));
    if (isDynamic(type.getDimSize(*axis)))
      return refuse<Op>(location, /*C2*/ "cannot reduce the batch '?' of ", type,
                        ": padding rows of a last, smaller batch would count; the losses "
                        "(nn.cross_entropy, nn.mse) reduce it with weights");
    reduced.set(*axis);
  }
  Dims shape;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!reduced.test(axis))
      shape.push_back(type.getDimSize(axis));
    else if (op.getKeep())
      shape.push_back(1);
  return finish<Op>(location, shape, type.getElementType(), results);
}

INFER_WITH(inferReduce, ReduceSumOp)
INFER_WITH(inferReduce, ReduceMeanOp)
INFER_WITH(inferReduce, ReduceMaxOp)

template <typename Op>
static LogicalResult inferSoftmax(MaybeLocation location, typename Op::Adaptor op,
                                  SmallVectorImpl<Type> &results) {
  RankedTensorType type = typeOf(op.getX());
  int64_t written = op.getAxis();
  FailureOr<int64_t> axis = normaliseAxis(written, type.getRank());
  if (failed(axis))
    return refuse<Op>(location, /*C1*/ "axis ", written, " of ", type, "; it must be in [",
                      -type.getRank(), ", ", type.getRank(), ")");
  if (isDynamic(type.getDimSize(*axis)))
    return refuse<Op>(location, /*C2*/ "cannot normalise over the batch '?' of ", type,
                      "; choose an axis of the sample");
  return finish<Op>(location, type.getShape(), type.getElementType(), results);
}

INFER_WITH(inferSoftmax, SoftmaxOp)
INFER_WITH(inferSoftmax, LogSoftmaxOp)

INFER(LayerNormOp) {
  RankedTensorType type = typeOf(op.getX());
  if (type.getRank() < 1 || isDynamic(type.getShape().back()))
    return refuse<LayerNormOp>(location, /*C1*/ "", type,
                               " has no last axis of known size to normalise");
  for (auto [name, value] : {std::pair("gain", Value(op.getGain())), {"bias", op.getBias()}}) {
    if (failed(checkElements<LayerNormOp>(location, "x", op.getX(), name, value)))
      return failure();
    if (typeOf(value).getShape() != type.getShape().take_back(1))
      return refuse<LayerNormOp>(
          location, /*C3*/ "", name, " is ", typeOf(value), " but the last axis of x, ", type,
          ", has ", type.getShape().back(), " elements; make it ",
          RankedTensorType::get(type.getShape().take_back(1), type.getElementType()));
  }
  return finish<LayerNormOp>(location, type.getShape(), type.getElementType(), results);
}

INFER(DropoutOp) {
  RankedTensorType type = typeOf(op.getX());
  return finish<DropoutOp>(location, type.getShape(), type.getElementType(), results);
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// (sum, weight), both f32 whatever the operands are: see docs/architecture.md.
static void pushScalars(MLIRContext *context, SmallVectorImpl<Type> &results) {
  results.append(2, RankedTensorType::get({}, Float32Type::get(context)));
}

/// C4 of losses: one weight a row of the batch.
template <typename Op>
static LogicalResult checkRowWeights(MaybeLocation location, Value weights, StringRef name,
                                     RankedTensorType rows) {
  if (!weights || typeOf(weights).getShape() == rows.getShape().take_front(1))
    return success();
  return refuse<Op>(location, /*C4*/ "row_weights is ", typeOf(weights),
                    " but the leading axis of ", name, ", ", rows, ", is ",
                    isDynamic(rows.getDimSize(0)) ? "'?'" : std::to_string(rows.getDimSize(0)),
                    "; it must hold one weight a row");
}

INFER(CrossEntropyOp) {
  RankedTensorType logits = typeOf(op.getLogits()), targets = typeOf(op.getTargets());
  if (logits.getRank() < 2 || isDynamic(logits.getShape().back()))
    return refuse<CrossEntropyOp>(location, /*C1*/ "logits are ", logits,
                                  "; they must be [batch, ..., classes]");
  if (targets.getShape() != logits.getShape().drop_back())
    return refuse<CrossEntropyOp>(location, /*C3*/ "targets are ", targets, " but logits ", logits,
                                  " ask for shape ", formatShape(logits.getShape().drop_back()),
                                  ": one class number for each row of scores over the last axis");
  if (Value weights = op.getClassWeights()) {
    if (typeOf(weights).getShape() != logits.getShape().take_back(1))
      return refuse<CrossEntropyOp>(location, /*C2*/ "class_weights is ", typeOf(weights),
                                    " but logits ", logits, " have ", logits.getShape().back(),
                                    " classes; it must hold one weight a class");
  }
  if (failed(checkRowWeights<CrossEntropyOp>(location, op.getRowWeights(), "logits", logits)))
    return failure();
  pushScalars(context, results);
  return success();
}

INFER(MseOp) {
  RankedTensorType predictions = typeOf(op.getPredictions()), targets = typeOf(op.getTargets());
  if (predictions.getRank() < 1)
    return refuse<MseOp>(location, /*C1*/ "predictions are ", predictions,
                         "; they must be [batch, ...]");
  if (failed(checkElements<MseOp>(location, "predictions", op.getPredictions(), "targets",
                                  op.getTargets())))
    return failure();
  if (predictions.getShape() != targets.getShape())
    return refuse<MseOp>(location, /*C3*/ "predictions are ", predictions, " and targets ", targets,
                         "; the shapes must be equal (nothing broadcasts in a loss: nn.reshape or "
                         "nn.broadcast one of them)");
  if (failed(checkRowWeights<MseOp>(location, op.getRowWeights(), "predictions", predictions)))
    return failure();
  pushScalars(context, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

INFER(MatmulOp) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB());
  if (failed(checkFactors<MatmulOp>(location, "a", op.getA(), "b", op.getB())))
    return failure();
  int64_t rankA = a.getRank(), rankB = b.getRank();
  if (rankA < 2 || rankB < 2)
    return refuse<MatmulOp>(
        location, /*C1*/ "a is ", a, " and b is ", b,
        "; both need at least two axes (nn.reshape a vector to a row or a column)");
  // The parser infers before it moves the attributes in braces into properties, so they are looked
  // up in both places.
  DictionaryAttr written = op.getAttributes();
  auto flag = [&](bool property, StringRef name) {
    return property || (written && written.contains(name));
  };
  bool transA = flag(op.getTransposeA(), "transpose_a");
  bool transB = flag(op.getTransposeB(), "transpose_b");
  int64_t axisM = rankA - (transA ? 1 : 2), axisK = rankA - (transA ? 2 : 1);
  int64_t axisN = rankB - (transB ? 2 : 1), axisKB = rankB - (transB ? 1 : 2);
  int64_t k = a.getDimSize(axisK), kB = b.getDimSize(axisKB);
  if (k != kB) {
    auto show = [](int64_t size) { return isDynamic(size) ? "?" : std::to_string(size); };
    std::string cure;
    int64_t otherA = a.getDimSize(axisM), otherB = b.getDimSize(axisN);
    auto suggest = [&](bool transposed, StringRef flag, int64_t first, int64_t second) {
      cure = (transposed ? "; without " : "; ") + flag.str() +
             (transposed ? " they would be " : " would make them ") + show(first) + " and " +
             show(second);
    };
    if (k == otherB)
      suggest(transB, "transpose_b", k, otherB);
    else if (otherA == kB)
      suggest(transA, "transpose_a", otherA, kB);
    return refuse<MatmulOp>(location, /*C3*/ "inner dimensions differ: ", show(k), " (axis ", axisK,
                            " of a, ", a, ") and ", show(kB), " (axis ", axisKB, " of b, ", b, ")",
                            cure);
  }
  if (isDynamic(k))
    return refuse<MatmulOp>(location, /*C4*/ "cannot sum over the batch '?' (axis ", axisK,
                            " of a, ", a, "): padding rows of a last, smaller batch would count");
  if (rankB > 2 && a.getShape().drop_back(2) != b.getShape().drop_back(2))
    return refuse<MatmulOp>(
        location, /*C5*/ "batch axes differ: ", formatShape(a.getShape().drop_back(2)), " of a, ",
        a, ", and ", formatShape(b.getShape().drop_back(2)), " of b, ", b,
        "; they must be equal, or b of rank 2 (nn.broadcast repeats a matrix)");
  if (rankB == 2 && rankA > 2 && transA)
    return refuse<MatmulOp>(location, /*C6*/ "transpose_a on a of rank ", rankA, ", ", a,
                            ", with b of rank 2, ", b,
                            ": the matrices of a are stored apart; nn.transpose a instead");
  Dims shape(a.getShape().drop_back(2));
  shape.push_back(a.getDimSize(axisM));
  shape.push_back(b.getDimSize(axisN));
  FailureOr<Type> element = sumType<MatmulOp>(location, op, op.getA());
  if (failed(element))
    return failure();
  return finish<MatmulOp>(location, shape, *element, results);
}

/// C1 of convolutions and pools: as many positive (or non-negative) numbers as there should be.
template <typename Op>
static LogicalResult checkNumbers(MaybeLocation location, StringRef name, ArrayRef<int64_t> values,
                                  size_t count, int64_t least, StringRef meaning) {
  if (values.size() == count && llvm::all_of(values, [&](int64_t v) { return v >= least; }))
    return success();
  return refuse<Op>(location, /*C1*/ "", name, " ", formatShape(values), " must be ", count,
                    " numbers of at least ", least, ": ", meaning);
}

/// Height and width after windows of `kernel` have gone over `size` padded by padding [top, bottom,
/// left, right].
template <typename Op>
static FailureOr<Dims> windowCounts(MaybeLocation location, ArrayRef<int64_t> size,
                                    ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                    ArrayRef<int64_t> padding, ArrayRef<int64_t> dilations) {
  if (failed(checkNumbers<Op>(location, "strides", strides, 2, 1, "[vertical, horizontal]")) ||
      failed(checkNumbers<Op>(location, "padding", padding, 4, 0, "[top, bottom, left, right]")) ||
      failed(checkNumbers<Op>(location, "dilations", dilations, 2, 1, "[vertical, horizontal]")))
    return failure();
  Dims counts;
  for (int axis = 0; axis < 2; ++axis) {
    int64_t padded = size[axis] + padding[2 * axis] + padding[2 * axis + 1];
    int64_t span = dilations[axis] * (kernel[axis] - 1) + 1;
    if (padded < span)
      return refuse<Op>(location, /*C4*/ "a window of ", span, axis == 0 ? " rows" : " columns",
                        " does not fit into an image of ", size[axis], " and padding of ",
                        padded - size[axis], "; use a smaller kernel or more padding");
    counts.push_back((padded - span) / strides[axis] + 1);
  }
  return counts;
}

/// C3 of convolutions: [N, H, W, IC] by [KH, KW, IC, OC]. Returns the output's shape.
template <typename Op>
static FailureOr<Dims> convolutionShape(MaybeLocation location, ArrayRef<int64_t> image,
                                        ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                        ArrayRef<int64_t> padding, ArrayRef<int64_t> dilations) {
  if (image.size() != 4 || kernel.size() != 4)
    return refuse<Op>(location, /*C3*/ "images ", formatShape(image), " and weights ",
                      formatShape(kernel),
                      "; they must be [N, H, W, C] and [KH, KW, C, output channels]");
  if (image[3] != kernel[2])
    return refuse<Op>(location, /*C3*/ "images ", formatShape(image), " have ", image[3],
                      " channels (axis 3) but weights ", formatShape(kernel), " take ", kernel[2],
                      " (axis 2)");
  auto counts = windowCounts<Op>(location, image.slice(1, 2), kernel.take_front(2), strides,
                                 padding, dilations);
  if (failed(counts))
    return failure();
  return Dims{image[0], (*counts)[0], (*counts)[1], kernel[3]};
}

/// C5 of gradients: dy is shaped like the result of the forward op.
template <typename Op>
static LogicalResult checkGradient(MaybeLocation location, RankedTensorType gradient,
                                   ArrayRef<int64_t> shape) {
  if (gradient.getShape() == shape)
    return success();
  return refuse<Op>(location, /*C5*/ "dy is ", gradient, " but the forward op yields ",
                    formatShape(shape));
}

INFER(Conv2DOp) {
  if (failed(checkFactors<Conv2DOp>(location, "x", op.getX(), "w", op.getW())))
    return failure();
  auto shape = convolutionShape<Conv2DOp>(location, typeOf(op.getX()).getShape(),
                                          typeOf(op.getW()).getShape(), op.getStrides(),
                                          op.getPadding(), op.getDilations());
  if (failed(shape))
    return failure();
  FailureOr<Type> element = sumType<Conv2DOp>(location, op, op.getX());
  if (failed(element))
    return failure();
  return finish<Conv2DOp>(location, *shape, *element, results);
}

INFER(Conv2DGradInputOp) {
  using Op = Conv2DGradInputOp;
  if (failed(checkFactors<Op>(location, "dy", op.getDy(), "w", op.getW())))
    return failure();
  auto shape = convolutionShape<Op>(location, op.getInputShape(), typeOf(op.getW()).getShape(),
                                    op.getStrides(), op.getPadding(), op.getDilations());
  if (failed(shape) || failed(checkGradient<Op>(location, typeOf(op.getDy()), *shape)))
    return failure();
  FailureOr<Type> element = sumType<Op>(location, op, op.getDy());
  if (failed(element))
    return failure();
  return finish<Op>(location, op.getInputShape(), *element, results);
}

INFER(Conv2DGradWeightOp) {
  using Op = Conv2DGradWeightOp;
  if (failed(checkFactors<Op>(location, "x", op.getX(), "dy", op.getDy())))
    return failure();
  auto shape = convolutionShape<Op>(location, typeOf(op.getX()).getShape(), op.getKernelShape(),
                                    op.getStrides(), op.getPadding(), op.getDilations());
  if (failed(shape) || failed(checkGradient<Op>(location, typeOf(op.getDy()), *shape)))
    return failure();
  FailureOr<Type> element = sumType<Op>(location, op, op.getDy());
  if (failed(element))
    return failure();
  return finish<Op>(location, op.getKernelShape(), *element, results);
}

/// C2, C3 of pools: an image, and windows that always hold a real element.
template <typename Op>
static FailureOr<Dims> poolShape(MaybeLocation location, RankedTensorType image,
                                 ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                 ArrayRef<int64_t> padding) {
  if (image.getRank() != 4)
    return refuse<Op>(location, /*C2*/ "images are ", image, "; they must be [N, H, W, C]");
  if (failed(checkNumbers<Op>(location, "kernel", kernel, 2, 1, "[height, width]")))
    return failure();
  auto counts =
      windowCounts<Op>(location, image.getShape().slice(1, 2), kernel, strides, padding, {1, 1});
  if (failed(counts))
    return failure();
  for (int side = 0; side < 4; ++side)
    if (padding[side] >= kernel[side / 2])
      return refuse<Op>(location, /*C3*/ "padding ", formatShape(padding), " with kernel ",
                        formatShape(kernel),
                        ": a window could hold nothing but padding; padding must be smaller than "
                        "the kernel");
  return Dims{image.getDimSize(0), (*counts)[0], (*counts)[1], image.getDimSize(3)};
}

INFER(MaxPool2DOp) {
  RankedTensorType x = typeOf(op.getX());
  auto shape =
      poolShape<MaxPool2DOp>(location, x, op.getKernel(), op.getStrides(), op.getPadding());
  if (failed(shape))
    return failure();
  return finish<MaxPool2DOp>(location, *shape, x.getElementType(), results);
}

INFER(MaxPool2DGradOp) {
  using Op = MaxPool2DGradOp;
  RankedTensorType x = typeOf(op.getX());
  auto shape = poolShape<Op>(location, x, op.getKernel(), op.getStrides(), op.getPadding());
  if (failed(shape) || failed(checkGradient<Op>(location, typeOf(op.getDy()), *shape)))
    return failure();
  return finish<Op>(location, x.getShape(), typeOf(op.getDy()).getElementType(), results);
}

//===----------------------------------------------------------------------===//
// Embedding and attention
//===----------------------------------------------------------------------===//

INFER(EmbeddingOp) {
  RankedTensorType indices = typeOf(op.getIndices()), table = typeOf(op.getTable());
  if (table.getRank() != 2 || !table.hasStaticShape())
    return refuse<EmbeddingOp>(location, /*C1*/ "table is ", table, "; it must be [rows, width]");
  Dims shape(indices.getShape());
  shape.push_back(table.getDimSize(1));
  return finish<EmbeddingOp>(location, shape, table.getElementType(), results);
}

INFER(EmbeddingGradOp) {
  RankedTensorType indices = typeOf(op.getIndices()), dy = typeOf(op.getDy());
  if (dy.getRank() < 1 || dy.getShape().drop_back() != indices.getShape())
    return refuse<EmbeddingGradOp>(location, /*C1*/ "dy is ", dy, " but indices ", indices,
                                   " ask for one row of gradients each");
  int64_t rows = op.getRows();
  if (rows < 1)
    return refuse<EmbeddingGradOp>(location, /*C2*/ "a table of ", rows, " rows; at least one");
  FailureOr<Type> element = sumType<EmbeddingGradOp>(location, op, op.getDy());
  if (failed(element))
    return failure();
  return finish<EmbeddingGradOp>(location, {rows, dy.getShape().back()}, *element, results);
}

/// C1..C3 of attention: equal q, k, v of shape [B, T, H * D]. Returns the logsumexp's type [B, H,
/// T].
template <typename Op>
static FailureOr<RankedTensorType> checkAttention(MaybeLocation location, int64_t heads, Value q,
                                                  ArrayRef<std::pair<StringRef, Value>> others) {
  RankedTensorType type = typeOf(q);
  if (type.getRank() != 3)
    return refuse<Op>(location, /*C1*/ "q is ", type, "; it must be [batch, time, heads * width]");
  for (auto [name, value] : others)
    if (typeOf(value) != type)
      return refuse<Op>(location, /*C2*/ "q is ", type, " and ", name, " is ", typeOf(value),
                        "; the types must be equal");
  if (heads < 1 || type.getDimSize(2) % heads != 0)
    return refuse<Op>(location, /*C3*/ "", heads, " heads do not divide the ", type.getDimSize(2),
                      " elements of the last axis of q, ", type);
  return RankedTensorType::get({type.getDimSize(0), heads, type.getDimSize(1)},
                               Float32Type::get(type.getContext()));
}

INFER(AttentionOp) {
  int64_t heads = op.getHeads();
  auto logsumexp =
      checkAttention<AttentionOp>(location, heads, op.getQ(), {{"k", op.getK()}, {"v", op.getV()}});
  if (failed(logsumexp))
    return failure();
  results.push_back(typeOf(op.getQ()));
  if (op.getSaveLogsumexp())
    results.push_back(*logsumexp);
  return success();
}

INFER(AttentionGradOp) {
  int64_t heads = op.getHeads();
  auto logsumexp = checkAttention<AttentionGradOp>(
      location, heads, op.getQ(),
      {{"k", op.getK()}, {"v", op.getV()}, {"o", op.getO()}, {"dout", op.getDout()}});
  if (failed(logsumexp))
    return failure();
  if (typeOf(op.getLogsumexp()) != *logsumexp)
    return refuse<AttentionGradOp>(location, /*C4*/ "logsumexp is ", typeOf(op.getLogsumexp()),
                                   "; nn.attention with save_logsumexp yields ", *logsumexp);
  results.append(3, typeOf(op.getQ()));
  return success();
}
