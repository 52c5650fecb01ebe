//===- NNGradients.cpp - Gradients of elementwise and shape ops -----------===//
//
// Two rules keep a branch that was not taken out of the gradient: masks are selects, and where a
// derivative may be infinite (exp, log, sqrt, rsqrt, division, pow) a zero incoming gradient gives
// zero whatever the derivative is.
//
// Subgradients: abs at 0 and relu at 0 have 0; sqrt at 0 has 0 (so the 2-norm of a zero vector has
// gradient 0); of maximum and minimum the first operand gets all of dy at a tie, so that clip
// passes gradients at its bounds.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"

#include <numbers>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

using P = ComparePredicate;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// The gradient of a unary op from dy; integer operands have none.
template <typename Formula>
static LogicalResult unaryGradient(Operation *op, OpBuilder &builder,
                                   ArrayRef<Value> resultGradients, ArrayRef<bool> needed,
                                   SmallVectorImpl<Value> &operandGradients, Formula formula) {
  Value dy = resultGradients[0], x = op->getOperand(0);
  if (!dy || !needed[0] || !isa<FloatType>(Graph::elementOf(x))) {
    operandGradients.push_back({});
    return success();
  }
  Graph graph{builder, op->getLoc()};
  operandGradients.push_back(formula(graph, dy, x, op->getResult(0)));
  return success();
}

#define DESCENT_UNARY_GRADIENT(Op, expression)                                                     \
  LogicalResult Op::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,             \
                                  ArrayRef<bool> needed,                                           \
                                  SmallVectorImpl<Value> &operandGradients) {                      \
    return unaryGradient(                                                                          \
        *this, builder, resultGradients, needed, operandGradients,                                 \
        [&](Graph &g, Value dy, Value x, Value y) -> Value { return expression; });                \
  }

DESCENT_UNARY_GRADIENT(NegOp, g.neg(dy))
// Rounding has slope 0 or none; passing the gradient through is what the op is for.
DESCENT_UNARY_GRADIENT(RoundTf32Op, dy)
DESCENT_UNARY_GRADIENT(AbsOp, g.where(g.compare(P::gt, x, 0.0), dy,
                                      g.whereElseZero(g.compare(P::lt, x, 0.0), g.neg(dy))))
DESCENT_UNARY_GRADIENT(ExpOp, g.guard(dy, g.mul(dy, y)))
DESCENT_UNARY_GRADIENT(LogOp, g.guard(dy, g.div(dy, x)))
// At 0 the slope is infinite; 0 is a value that trains.
DESCENT_UNARY_GRADIENT(SqrtOp,
                       g.guard(dy, g.where(g.compare(P::eq, y, 0.0), g.constantLike(0.0, dy),
                                           g.div(g.mul(dy, 0.5), y))))
DESCENT_UNARY_GRADIENT(RsqrtOp, g.guard(dy, g.div(g.mul(g.mul(dy, -0.5), y), x)))
DESCENT_UNARY_GRADIENT(SinOp, g.mul(dy, CosOp::create(g.builder, g.loc, x)))
DESCENT_UNARY_GRADIENT(CosOp, g.neg(g.mul(dy, SinOp::create(g.builder, g.loc, x))))
DESCENT_UNARY_GRADIENT(TanhOp, g.mul(dy, g.sub(1.0, g.mul(y, y))))
DESCENT_UNARY_GRADIENT(ErfOp,
                       g.mul(dy, g.mul(g.exp(g.neg(g.mul(x, x))), 2.0 * std::numbers::inv_sqrtpi)))
DESCENT_UNARY_GRADIENT(SigmoidOp, g.mul(dy, g.mul(y, g.sub(1.0, y))))
DESCENT_UNARY_GRADIENT(ReluOp, g.whereElseZero(g.compare(P::gt, x, 0.0), dy))
DESCENT_UNARY_GRADIENT(GeluOp, g.mul(dy, GeluGradOp::create(g.builder, g.loc, x, getForm())))

#undef DESCENT_UNARY_GRADIENT

LogicalResult SiluOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value> &operandGradients) {
  return unaryGradient(*this, builder, resultGradients, needed, operandGradients,
                       [](Graph &g, Value dy, Value x, Value y) -> Value {
                         // d/dx x s = s + y (1 - s) with y = x s.
                         Value s = SigmoidOp::create(g.builder, g.loc, x);
                         return g.mul(dy, g.add(s, g.mul(y, g.sub(1.0, s))));
                       });
}

LogicalResult CastOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value> &operandGradients) {
  return unaryGradient(*this, builder, resultGradients, needed, operandGradients,
                       [](Graph &g, Value dy, Value x, Value y) -> Value {
                         if (!isa<FloatType>(Graph::elementOf(y)))
                           return {};
                         return g.cast(dy, Graph::elementOf(x));
                       });
}

//===----------------------------------------------------------------------===//
// Two and three operands
//===----------------------------------------------------------------------===//

/// Broadcast operands get the sum over the axes they were broadcast along.
template <typename FormulaA, typename FormulaB>
static LogicalResult binaryGradient(Operation *op, OpBuilder &builder,
                                    ArrayRef<Value> resultGradients, ArrayRef<bool> needed,
                                    SmallVectorImpl<Value> &operandGradients, FormulaA formulaA,
                                    FormulaB formulaB) {
  Value dy = resultGradients[0], a = op->getOperand(0), b = op->getOperand(1);
  operandGradients.append(2, Value());
  if (!dy || !isa<FloatType>(Graph::elementOf(a)))
    return success();
  Graph graph{builder, op->getLoc()};
  MutableArrayRef<Value> gradients = MutableArrayRef(operandGradients).take_back(2);
  if (needed[0])
    gradients[0] = graph.sumTo(formulaA(graph, dy, a, b, op->getResult(0)), Graph::typeOf(a));
  if (needed[1])
    gradients[1] = graph.sumTo(formulaB(graph, dy, a, b, op->getResult(0)), Graph::typeOf(b));
  return success();
}

#define DESCENT_BINARY_GRADIENT(Op, expressionA, expressionB)                                      \
  LogicalResult Op::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,             \
                                  ArrayRef<bool> needed,                                           \
                                  SmallVectorImpl<Value> &operandGradients) {                      \
    return binaryGradient(                                                                         \
        *this, builder, resultGradients, needed, operandGradients,                                 \
        [&](Graph &g, Value dy, Value a, Value b, Value y) -> Value { return expressionA; },       \
        [&](Graph &g, Value dy, Value a, Value b, Value y) -> Value { return expressionB; });      \
  }

DESCENT_BINARY_GRADIENT(AddOp, dy, dy)
DESCENT_BINARY_GRADIENT(SubOp, dy, g.neg(dy))
DESCENT_BINARY_GRADIENT(MulOp, g.mul(dy, b), g.mul(dy, a))
DESCENT_BINARY_GRADIENT(DivOp, g.guard(dy, g.div(dy, b)),
                        g.guard(dy, g.neg(g.div(g.mul(dy, y), b))))
DESCENT_BINARY_GRADIENT(MaximumOp, g.whereElseZero(g.compare(P::ge, a, b), dy),
                        g.where(g.compare(P::ge, a, b), g.constantLike(0.0, dy), dy))
DESCENT_BINARY_GRADIENT(MinimumOp, g.whereElseZero(g.compare(P::le, a, b), dy),
                        g.where(g.compare(P::le, a, b), g.constantLike(0.0, dy), dy))

#undef DESCENT_BINARY_GRADIENT

LogicalResult PowOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                   ArrayRef<bool> needed,
                                   SmallVectorImpl<Value> &operandGradients) {
  return binaryGradient(
      *this, builder, resultGradients, needed, operandGradients,
      [](Graph &g, Value dy, Value a, Value b, Value y) -> Value {
        // x^0 is constant; its formula would be 0 * infinity at 0.
        Value slope = g.mul(b, PowOp::create(g.builder, g.loc, a, g.add(b, -1.0)));
        slope = g.where(g.compare(P::eq, b, 0.0), g.constantLike(0.0, slope), slope);
        return g.guard(dy, g.mul(dy, slope));
      },
      [](Graph &g, Value dy, Value a, Value b, Value y) -> Value {
        // 0^b stays 0 around every positive b; its formula would be 0 * -infinity.
        Value slope = g.mul(y, g.log(a));
        slope = g.where(g.compare(P::eq, a, 0.0), g.constantLike(0.0, slope), slope);
        return g.guard(dy, g.mul(dy, slope));
      });
}

LogicalResult WhereOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(3, Value());
  Value dy = resultGradients[0];
  if (!dy || !isa<FloatType>(Graph::elementOf(getA())))
    return success();
  Graph graph{builder, getLoc()};
  MutableArrayRef<Value> gradients = MutableArrayRef(operandGradients).take_back(3);
  if (needed[1])
    gradients[1] = graph.sumTo(graph.whereElseZero(getCondition(), dy), Graph::typeOf(getA()));
  if (needed[2])
    gradients[2] = graph.sumTo(graph.where(getCondition(), graph.constantLike(0.0, dy), dy),
                               Graph::typeOf(getB()));
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

#define DESCENT_SHAPE_GRADIENT(Op, expression)                                                     \
  LogicalResult Op::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,             \
                                  ArrayRef<bool> needed,                                           \
                                  SmallVectorImpl<Value> &operandGradients) {                      \
    return unaryGradient(                                                                          \
        *this, builder, resultGradients, needed, operandGradients,                                 \
        [&](Graph &g, Value dy, Value x, Value y) -> Value { return expression; });                \
  }

static SmallVector<int64_t> inversePermutation(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [position, axis] : llvm::enumerate(permutation))
    inverse[axis] = static_cast<int64_t>(position);
  return inverse;
}

/// Puts the elements back where they were taken from.
static Value sliceGradient(Graph &g, SliceOp op, Value dy) {
  SmallVector<int64_t> low(op.getStarts()), high, interior;
  auto from = Graph::typeOf(op.getX()), to = Graph::typeOf(op.getY());
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    int64_t stride = op.getStrides()[axis];
    int64_t extent = to.getDimSize(axis) == 0 ? 0 : (to.getDimSize(axis) - 1) * stride + 1;
    interior.push_back(stride - 1);
    high.push_back(from.getDimSize(axis) - low[axis] - extent);
  }
  return PadOp::create(g.builder, g.loc, dy, low, high, interior);
}

static Value padGradient(Graph &g, PadOp op, Value dy) {
  SmallVector<int64_t> limits, strides;
  auto from = Graph::typeOf(op.getX()), to = Graph::typeOf(op.getY());
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    limits.push_back(to.getDimSize(axis) - op.getHigh()[axis]);
    strides.push_back(op.getInterior()[axis] + 1);
  }
  return SliceOp::create(g.builder, g.loc, dy, op.getLow(), limits, strides);
}

DESCENT_SHAPE_GRADIENT(ReshapeOp, g.reshape(dy, Graph::typeOf(x).getShape()))
DESCENT_SHAPE_GRADIENT(TransposeOp, g.transpose(dy, inversePermutation(getPermutation())))
DESCENT_SHAPE_GRADIENT(BroadcastOp, g.sumTo(dy, Graph::typeOf(x)))
DESCENT_SHAPE_GRADIENT(SliceOp, sliceGradient(g, *this, dy))
DESCENT_SHAPE_GRADIENT(PadOp, padGradient(g, *this, dy))

#undef DESCENT_SHAPE_GRADIENT

LogicalResult ConcatOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                      ArrayRef<bool> needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  auto type = Graph::typeOf(getY());
  int64_t axis = normaliseAxis(static_cast<int64_t>(getAxis()), type.getRank()), start = 0;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    int64_t end = start + Graph::typeOf(input).getDimSize(axis);
    Value gradient;
    if (dy && needed[index] && isa<FloatType>(type.getElementType())) {
      SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
          strides(type.getRank(), 1);
      starts[axis] = start;
      limits[axis] = end;
      gradient = SliceOp::create(builder, getLoc(), dy, starts, limits, strides);
    }
    operandGradients.push_back(gradient);
    start = end;
  }
  return success();
}

LogicalResult SplitOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  bool any = llvm::any_of(resultGradients, [](Value gradient) { return gradient; });
  if (!needed[0] || !any || !isa<FloatType>(Graph::elementOf(getX())))
    return success();
  Graph graph{builder, getLoc()};
  SmallVector<Value> parts;
  for (auto [part, gradient] : llvm::zip_equal(getParts(), resultGradients))
    parts.push_back(gradient ? gradient : graph.splat(0.0, Graph::typeOf(part)));
  operandGradients.back() = ConcatOp::create(builder, getLoc(), parts, getAxis());
  return success();
}
