//===- NNInfer.cpp - Result types: elementwise ops and shape ops ----------===//
//
// Broadcasting is NumPy's: shapes are aligned at the right, an axis of size 1 (or a missing one) is
// repeated. The batch '?' stands for one size known later, so it fits '?' and 1 and no other.
// Element types never promote: nn.cast says what is meant.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

std::string nn::formatShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [axis, size] : llvm::enumerate(shape))
    text += (axis ? ", " : "") + (isDynamic(size) ? std::string("?") : std::to_string(size));
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Widens `shape` to what it and `other` broadcast to. Fails where the two don't fit, leaving the
/// axis of the operands' common shape in `axis`.
static LogicalResult broadcastInto(Dims &shape, ArrayRef<int64_t> other, size_t &axis) {
  size_t rank = std::max(shape.size(), other.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  size_t offset = rank - other.size();
  for (axis = offset; axis < rank; ++axis) {
    int64_t size = other[axis - offset];
    if (size == 1 || size == shape[axis])
      continue;
    if (shape[axis] != 1)
      return failure();
    shape[axis] = size;
  }
  return success();
}

/// C1 and C2 of every op that broadcasts: shapes fit, element types are equal (unless `mixed`).
template <typename Op>
static FailureOr<Dims> broadcastOperands(MaybeLocation location, ArrayRef<Value> operands,
                                         ArrayRef<Value> alike) {
  for (Value operand : alike.drop_front())
    if (typeOf(operand).getElementType() != typeOf(alike[0]).getElementType())
      return refuse<Op>(location, /*C2*/ "element types differ: ", typeOf(alike[0]), " and ",
                        typeOf(operand), "; nn.cast one of them to the other's");
  Dims shape(typeOf(operands[0]).getShape());
  size_t axis;
  for (Value operand : operands.drop_front()) {
    Dims before = shape;
    if (succeeded(broadcastInto(shape, typeOf(operand).getShape(), axis)))
      continue;
    ArrayRef<int64_t> other = typeOf(operand).getShape();
    int64_t here = shape[axis], there = other[axis - (shape.size() - other.size())];
    return refuse<Op>(location, /*C1*/ "shapes ", formatShape(before), " and ", formatShape(other),
                      " do not broadcast: aligned at the right, axis ", axis, " is ",
                      isDynamic(here) ? "the batch '?'" : std::to_string(here), " and ",
                      isDynamic(there) ? "the batch '?'" : std::to_string(there),
                      "; sizes must be equal or 1");
  }
  return shape;
}

template <typename Op>
static LogicalResult inferUnary(MaybeLocation location, typename Op::Adaptor op,
                                SmallVectorImpl<Type> &results) {
  RankedTensorType type = typeOf(op.getX());
  if (type.getElementType().isInteger(1))
    return refuse<Op>(location, /*C1*/ "has no meaning for booleans (", type,
                      "); nn.cast to i32 first");
  return finish<Op>(location, type.getShape(), type.getElementType(), results);
}

template <typename Op>
static LogicalResult inferBinary(MaybeLocation location, typename Op::Adaptor op,
                                 SmallVectorImpl<Type> &results) {
  Value operands[] = {op.getA(), op.getB()};
  FailureOr<Dims> shape = broadcastOperands<Op>(location, operands, operands);
  if (failed(shape))
    return failure();
  Type element = typeOf(op.getA()).getElementType();
  if (element.isInteger(1))
    return refuse<Op>(location, /*C3*/ "has no meaning for booleans (", typeOf(op.getA()),
                      "); combine conditions with nn.where, or nn.cast to i32 first");
  return finish<Op>(location, *shape, element, results);
}

#define INFER(OP)                                                                                  \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, MaybeLocation location, Adaptor op,     \
                                     SmallVectorImpl<Type> &results)
#define INFER_WITH(FUNCTION, OP)                                                                   \
  INFER(OP) { return FUNCTION<OP>(location, op, results); }

INFER_WITH(inferUnary, NegOp)
INFER_WITH(inferUnary, AbsOp)
INFER_WITH(inferUnary, ExpOp)
INFER_WITH(inferUnary, LogOp)
INFER_WITH(inferUnary, SqrtOp)
INFER_WITH(inferUnary, RsqrtOp)
INFER_WITH(inferUnary, SinOp)
INFER_WITH(inferUnary, CosOp)
INFER_WITH(inferUnary, TanhOp)
INFER_WITH(inferUnary, ErfOp)
INFER_WITH(inferUnary, SigmoidOp)
INFER_WITH(inferUnary, ReluOp)
INFER_WITH(inferUnary, SiluOp)
INFER_WITH(inferUnary, GeluOp)
INFER_WITH(inferUnary, GeluGradOp)
INFER_WITH(inferBinary, AddOp)
INFER_WITH(inferBinary, SubOp)
INFER_WITH(inferBinary, MulOp)
INFER_WITH(inferBinary, DivOp)
INFER_WITH(inferBinary, MaximumOp)
INFER_WITH(inferBinary, MinimumOp)
INFER_WITH(inferBinary, PowOp)

INFER(CompareOp) {
  Value operands[] = {op.getA(), op.getB()};
  FailureOr<Dims> shape = broadcastOperands<CompareOp>(location, operands, operands);
  if (failed(shape))
    return failure();
  return finish<CompareOp>(location, *shape, IntegerType::get(context, 1), results);
}

INFER(WhereOp) {
  Value operands[] = {op.getCondition(), op.getA(), op.getB()};
  FailureOr<Dims> shape =
      broadcastOperands<WhereOp>(location, operands, ArrayRef(operands).drop_front());
  if (failed(shape))
    return failure();
  return finish<WhereOp>(location, *shape, typeOf(op.getA()).getElementType(), results);
}

/// Whether tensors of the dialect may hold `type`.
static bool isElement(Type type) {
  return type.isF32() || type.isBF16() || type.isF16() || isF8(type) || type.isInteger(32) ||
         type.isInteger(64) || type.isInteger(1);
}

INFER(CastOp) {
  if (!isElement(op.getTo()))
    return refuse<CastOp>(location, /*C1*/ "cannot cast to ", op.getTo(),
                          "; tensors hold f32, bf16, f16, f8E4M3FN, f8E5M2, i32, i64 or i1");
  return finish<CastOp>(location, typeOf(op.getX()).getShape(), op.getTo(), results);
}

INFER_WITH(inferUnary, RoundTf32Op)

INFER(RoundStochasticallyOp) {
  Value operands[] = {op.getX(), op.getU()};
  FailureOr<Dims> shape = broadcastOperands<RoundStochasticallyOp>(location, operands, operands);
  if (failed(shape))
    return failure();
  if (!op.getTo().isBF16())
    return refuse<RoundStochasticallyOp>(
        location, /*C2*/ "cannot round to ", op.getTo(),
        "; the low half of f32's pattern makes room for bf16 alone");
  return finish<RoundStochasticallyOp>(location, *shape, op.getTo(), results);
}

INFER(ConstantOp) {
  auto type = dyn_cast<RankedTensorType>(op.getValue().getType());
  if (!type || !isElement(type.getElementType()))
    return refuse<ConstantOp>(location, /*C1*/ "a literal of type ", op.getValue().getType(),
                              "; it must be a ranked tensor of f32, bf16, f16, i32, i64 or i1");
  results.push_back(type);
  return success();
}

/// C1 of ops that make a tensor from nothing: sizes are known and positive.
template <typename Op>
static LogicalResult checkSizes(MaybeLocation location, ArrayRef<int64_t> shape) {
  for (int64_t size : shape)
    if (size <= 0)
      return refuse<Op>(location, /*C1*/ "size ", size, " in shape ", formatShape(shape),
                        "; sizes must be positive");
  return success();
}

INFER(IotaOp) {
  if (failed(checkSizes<IotaOp>(location, op.getShape())))
    return failure();
  int64_t rank = op.getShape().size();
  if (op.getAxis() < 0 || static_cast<int64_t>(op.getAxis()) >= rank)
    return refuse<IotaOp>(location, /*C2*/ "axis ", static_cast<int64_t>(op.getAxis()),
                          " of shape ", formatShape(op.getShape()), "; it must be in [0, ", rank,
                          ")");
  if (!isElement(op.getType()) || op.getType().isInteger(1))
    return refuse<IotaOp>(location, /*C3*/ "cannot count in ", op.getType(),
                          "; use i32, i64, f32, bf16 or f16");
  results.push_back(RankedTensorType::get(op.getShape(), op.getType()));
  return success();
}

INFER(RandomOp) {
  if (failed(checkSizes<RandomOp>(location, op.getShape())))
    return failure();
  results.push_back(RankedTensorType::get(op.getShape(), Float32Type::get(context)));
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

INFER(ReshapeOp) {
  RankedTensorType type = typeOf(op.getX());
  ArrayRef<int64_t> wanted = op.getShape();
  bool batched = !type.hasStaticShape();
  int64_t known = 1; // The product of the sizes of x that are known.
  for (int64_t size : type.getShape())
    known *= isDynamic(size) ? 1 : size;

  int64_t product = 1, open = -1;
  for (auto [axis, size] : llvm::enumerate(wanted)) {
    if (size == -1 && open >= 0)
      return refuse<ReshapeOp>(location, /*C1*/ "two sizes of ", formatShape(wanted),
                               " are -1; at most one can follow from the others");
    if (size != -1 && size <= 0)
      return refuse<ReshapeOp>(location, /*C1*/ "size ", size, " in ", formatShape(wanted),
                               "; sizes are positive, or -1 for what is left");
    if (size == -1)
      open = axis;
    else
      product *= size;
  }

  Dims shape(wanted);
  if (batched) {
    // With B samples x has B * known elements, so the open axis is B * known / product: it is
    // unknown too. Whether it is whole is seen once the batch is bound.
    if (open != 0)
      return refuse<ReshapeOp>(location, /*C2*/ "", type,
                               " has the batch '?', so the leading size of ", formatShape(wanted),
                               " must be -1 and the others sizes of a sample");
    shape[0] = ShapedType::kDynamic;
    return finish<ReshapeOp>(location, shape, type.getElementType(), results);
  }
  if (open >= 0 ? known % product != 0 : known != product)
    return refuse<ReshapeOp>(location, /*C3*/ "cannot turn ", type, ", ", known, " elements, into ",
                             formatShape(wanted), ", ", open >= 0 ? "a multiple of " : "", product,
                             " elements");
  if (open >= 0)
    shape[open] = known / product;
  return finish<ReshapeOp>(location, shape, type.getElementType(), results);
}

INFER(TransposeOp) {
  RankedTensorType type = typeOf(op.getX());
  ArrayRef<int64_t> permutation = op.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != type.getRank() ||
      !isPermutationVector(permutation))
    return refuse<TransposeOp>(location, /*C1*/ "", formatShape(permutation),
                               " is not a permutation of the ", type.getRank(), " axes of ", type);
  Dims shape;
  for (int64_t axis : permutation)
    shape.push_back(type.getDimSize(axis));
  return finish<TransposeOp>(location, shape, type.getElementType(), results);
}

INFER(BroadcastOp) {
  RankedTensorType type = typeOf(op.getX());
  ArrayRef<int64_t> wanted = op.getShape();
  int64_t offset = static_cast<int64_t>(wanted.size()) - type.getRank();
  if (offset < 0)
    return refuse<BroadcastOp>(location, /*C1*/ "", formatShape(wanted), " has fewer axes than ",
                               type, "; broadcasting only adds axes");
  Dims shape(wanted);
  for (auto [axis, size] : llvm::enumerate(shape)) {
    int64_t from = static_cast<int64_t>(axis) < offset ? 1 : type.getDimSize(axis - offset);
    if (size == -1 && static_cast<int64_t>(axis) >= offset) {
      size = from;
      continue;
    }
    if (size <= 0 || (from != 1 && from != size))
      return refuse<BroadcastOp>(
          location, /*C2*/ "cannot broadcast ", type, " to ", formatShape(wanted), ": axis ", axis,
          " would go from ", isDynamic(from) ? "the batch '?'" : std::to_string(from), " to ", size,
          "; only size 1 is repeated, and -1 keeps an axis of the operand as it is");
  }
  return finish<BroadcastOp>(location, shape, type.getElementType(), results);
}

INFER(SliceOp) {
  RankedTensorType type = typeOf(op.getX());
  int64_t rank = type.getRank();
  ArrayRef<int64_t> starts = op.getStarts(), limits = op.getLimits(), strides = op.getStrides();
  for (ArrayRef<int64_t> list : {starts, limits, strides})
    if (static_cast<int64_t>(list.size()) != rank)
      return refuse<SliceOp>(location, /*C1*/ "", formatShape(list), " has ", list.size(),
                             " numbers for the ", rank, " axes of ", type,
                             "; give starts, limits and strides for each axis");
  Dims shape(type.getShape());
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (isDynamic(shape[axis])) {
      if (starts[axis] != 0 || limits[axis] != -1 || strides[axis] != 1)
        return refuse<SliceOp>(location, /*C3*/ "cannot cut the batch '?' of ", type, " (axis ",
                               axis, "); it must be taken whole: from 0 to -1 by 1");
      continue;
    }
    int64_t limit = limits[axis] == -1 ? shape[axis] : limits[axis];
    if (starts[axis] < 0 || limit > shape[axis] || limit <= starts[axis] || strides[axis] < 1)
      return refuse<SliceOp>(location, /*C2*/ "axis ", axis, " of ", type, " cannot be cut from ",
                             starts[axis], " to ", limit, " by ", strides[axis],
                             "; 0 <= start < limit <= ", shape[axis], " and stride >= 1");
    shape[axis] = (limit - starts[axis] + strides[axis] - 1) / strides[axis];
  }
  return finish<SliceOp>(location, shape, type.getElementType(), results);
}

INFER(PadOp) {
  RankedTensorType type = typeOf(op.getX());
  int64_t rank = type.getRank();
  ArrayRef<int64_t> low = op.getLow(), high = op.getHigh(), interior = op.getInterior();
  for (ArrayRef<int64_t> list : {low, high, interior}) {
    if (static_cast<int64_t>(list.size()) != rank)
      return refuse<PadOp>(location, /*C1*/ "", formatShape(list), " has ", list.size(),
                           " numbers for the ", rank, " axes of ", type,
                           "; give low, high and interior for each axis");
    for (int64_t count : list)
      if (count < 0)
        return refuse<PadOp>(location, /*C2*/ "negative padding in ", formatShape(list),
                             "; nn.slice removes elements");
  }
  Dims shape(type.getShape());
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (low[axis] == 0 && high[axis] == 0 && interior[axis] == 0)
      continue;
    if (isDynamic(shape[axis]))
      return refuse<PadOp>(location, /*C3*/ "cannot pad the batch '?' of ", type, " (axis ", axis,
                           "); its low, high and interior must be 0");
    shape[axis] = low[axis] + shape[axis] + (shape[axis] - 1) * interior[axis] + high[axis];
  }
  return finish<PadOp>(location, shape, type.getElementType(), results);
}

INFER(ConcatOp) {
  if (op.getInputs().empty())
    return refuse<ConcatOp>(location, /*C1*/ "needs at least one input");
  RankedTensorType first = typeOf(op.getInputs()[0]);
  int64_t written = op.getAxis();
  FailureOr<int64_t> axis = normaliseAxis(written, first.getRank());
  if (failed(axis))
    return refuse<ConcatOp>(location, /*C2*/ "axis ", written, " of ", first, "; it must be in [",
                            -first.getRank(), ", ", first.getRank(), ")");
  Dims shape(first.getShape());
  if (isDynamic(shape[*axis]))
    return refuse<ConcatOp>(location, /*C4*/ "cannot concatenate along the batch '?' of ", first);
  for (Value input : op.getInputs().drop_front()) {
    RankedTensorType type = typeOf(input);
    Dims others(type.getShape());
    bool fits = type.getRank() == first.getRank() &&
                type.getElementType() == first.getElementType() && !isDynamic(others[*axis]);
    if (fits) {
      shape[*axis] += others[*axis];
      others[*axis] = first.getDimSize(*axis);
      fits = ArrayRef<int64_t>(others) == first.getShape();
    }
    if (!fits)
      return refuse<ConcatOp>(location, /*C3*/ "", type, " does not continue ", first,
                              " along axis ", *axis,
                              "; the element type and all other sizes must be equal");
  }
  return finish<ConcatOp>(location, shape, first.getElementType(), results);
}

INFER(SplitOp) {
  RankedTensorType type = typeOf(op.getX());
  int64_t written = op.getAxis(), sections = op.getSections();
  FailureOr<int64_t> axis = normaliseAxis(written, type.getRank());
  if (failed(axis))
    return refuse<SplitOp>(location, /*C1*/ "axis ", written, " of ", type, "; it must be in [",
                           -type.getRank(), ", ", type.getRank(), ")");
  Dims shape(type.getShape());
  if (isDynamic(shape[*axis]))
    return refuse<SplitOp>(location, /*C3*/ "cannot split the batch '?' of ", type);
  if (sections < 1 || shape[*axis] % sections != 0)
    return refuse<SplitOp>(location, /*C2*/ "cannot split axis ", *axis, " of ", type, " into ",
                           sections, " equal parts; ", shape[*axis],
                           " must be a multiple of the sections");
  shape[*axis] /= sections;
  for (int64_t part = 0; part < sections; ++part)
    if (failed(finish<SplitOp>(location, shape, type.getElementType(), results)))
      return failure();
  return success();
}
