//===- NNReference.cpp - Elementwise and shape ops in double precision ----===//
//
// Written to be obviously right: one loop over positions each, libm for functions, no reuse of the
// formulas that code generation uses. Values are doubles throughout; evaluateRounded rounds each
// result once, so that the program's types can be had with their rounding or without.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNReference.h"
#include "dialects/NN/NNGraph.h"
#include "dialects/NN/Rounding.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace mlir;
using namespace descent;
using namespace descent::nn;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Tensor nn::toReference(ElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getShapedType());
  Tensor result(type.getShape().vec());
  Type element = type.getElementType();
  int64_t i = 0;
  if (isa<FloatType>(element)) {
    for (APFloat number : value.getValues<APFloat>())
      result.values[i++] = number.convertToDouble();
  } else {
    for (const APInt &number : value.getValues<APInt>())
      result.values[i++] = element.isInteger(1) ? static_cast<double>(number.getZExtValue())
                                                : static_cast<double>(number.getSExtValue());
  }
  return result;
}

std::vector<int64_t> nn::referenceShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().vec();
}

double nn::wrapToType(double value, Type element) {
  if (isa<FloatType>(element))
    return value;
  auto bits = static_cast<int64_t>(value);
  if (element.isInteger(1))
    return static_cast<double>(bits & 1);
  if (element.isInteger(32))
    return static_cast<double>(static_cast<int32_t>(bits));
  return static_cast<double>(bits);
}

int64_t nn::offsetOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &position) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    offset = offset * shape[axis] + position[axis];
  return offset;
}

int64_t nn::broadcastOffset(const Tensor &tensor, const std::vector<int64_t> &position) {
  size_t skipped = position.size() - tensor.shape.size();
  int64_t offset = 0;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
    offset = offset * tensor.shape[axis] + (tensor.shape[axis] == 1 ? 0 : position[skipped + axis]);
  return offset;
}

LogicalResult descent::roundResults(Operation *op, LogicalResult evaluated,
                                    SmallVectorImpl<Tensor> &results) {
  if (failed(evaluated))
    return failure();
  for (auto [type, tensor] : llvm::zip_equal(
           op->getResultTypes(), MutableArrayRef<Tensor>(results).take_back(op->getNumResults())))
    roundTensor(tensor, type);
  return success();
}

using Element = std::function<double(ArrayRef<double>)>;

/// Applies `element` at every position of the result, operands broadcast.
static LogicalResult evaluateElements(Operation *op, ArrayRef<Tensor> operands,
                                      SmallVectorImpl<Tensor> &results, const Element &element) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Tensor y(referenceShape(op->getResult(0)));
  SmallVector<double> values(operands.size());
  int64_t i = 0;
  for (Positions position(y.shape); !position.done(); position.next()) {
    for (auto [value, operand] : llvm::zip_equal(values, operands))
      value =
          operand.values[operand.shape == y.shape ? i : broadcastOffset(operand, position.get())];
    y.values[i++] = wrapToType(element(values), type);
  }
  results.push_back(std::move(y));
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static constexpr double sqrtTwoOverPi = 0.79788456080286535588;

static double normalDensity(double x) { return 0.5 * sqrtTwoOverPi * std::exp(-0.5 * x * x); }
static double normalCumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

static double gelu(double x, GeluForm form) {
  if (form == GeluForm::erf)
    return x * normalCumulative(x);
  return 0.5 * x * (1.0 + std::tanh(sqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

static double geluSlope(double x, GeluForm form) {
  if (form == GeluForm::erf)
    return normalCumulative(x) + x * normalDensity(x);
  double t = std::tanh(sqrtTwoOverPi * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * sqrtTwoOverPi * (1.0 + 3.0 * 0.044715 * x * x);
}

/// The larger (or smaller) operand; a NaN wins over both.
static double extremum(double a, double b, bool largest) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return largest ? std::max(a, b) : std::min(a, b);
}

#define DESCENT_ELEMENT_REFERENCE(Op, expression)                                                  \
  LogicalResult Op::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {        \
    return evaluateElements(*this, operands, results, [&](ArrayRef<double> v) -> double {          \
      double x = v[0];                                                                             \
      return expression;                                                                           \
    });                                                                                            \
  }

DESCENT_ELEMENT_REFERENCE(NegOp, -x)
DESCENT_ELEMENT_REFERENCE(AbsOp, std::fabs(x))
DESCENT_ELEMENT_REFERENCE(ExpOp, std::exp(x))
DESCENT_ELEMENT_REFERENCE(LogOp, std::log(x))
DESCENT_ELEMENT_REFERENCE(SqrtOp, std::sqrt(x))
DESCENT_ELEMENT_REFERENCE(RsqrtOp, 1.0 / std::sqrt(x))
DESCENT_ELEMENT_REFERENCE(SinOp, std::sin(x))
DESCENT_ELEMENT_REFERENCE(CosOp, std::cos(x))
DESCENT_ELEMENT_REFERENCE(TanhOp, std::tanh(x))
DESCENT_ELEMENT_REFERENCE(ErfOp, std::erf(x))
DESCENT_ELEMENT_REFERENCE(SigmoidOp, sigmoid(x))
DESCENT_ELEMENT_REFERENCE(ReluOp, extremum(x, 0.0, true))
DESCENT_ELEMENT_REFERENCE(SiluOp, x *sigmoid(x))
DESCENT_ELEMENT_REFERENCE(GeluOp, gelu(x, getForm()))
DESCENT_ELEMENT_REFERENCE(GeluGradOp, geluSlope(x, getForm()))
DESCENT_ELEMENT_REFERENCE(AddOp, x + v[1])
DESCENT_ELEMENT_REFERENCE(SubOp, x - v[1])
DESCENT_ELEMENT_REFERENCE(MaximumOp, extremum(x, v[1], true))
DESCENT_ELEMENT_REFERENCE(MinimumOp, extremum(x, v[1], false))
DESCENT_ELEMENT_REFERENCE(PowOp, std::pow(x, v[1]))
DESCENT_ELEMENT_REFERENCE(WhereOp, x != 0.0 ? v[1] : v[2])

#undef DESCENT_ELEMENT_REFERENCE

LogicalResult MulOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(getY()));
  return evaluateElements(*this, operands, results, [&](ArrayRef<double> v) {
    // Products of integers are taken modulo 2^64, as the program does.
    return isFloat ? v[0] * v[1]
                   : static_cast<double>(
                         static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(v[0])) *
                                              static_cast<uint64_t>(static_cast<int64_t>(v[1]))));
  });
}

LogicalResult DivOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(getY()));
  return evaluateElements(*this, operands, results, [&](ArrayRef<double> v) {
    if (isFloat)
      return v[0] / v[1];
    return v[1] == 0.0 ? 0.0 : std::trunc(v[0] / v[1]); // integers: nothing traps, x / 0 is 0
  });
}

LogicalResult CompareOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  return evaluateElements(*this, operands, results, [&](ArrayRef<double> v) -> double {
    switch (getPredicate()) {
    case ComparePredicate::eq:
      return v[0] == v[1];
    case ComparePredicate::ne:
      return v[0] != v[1];
    case ComparePredicate::lt:
      return v[0] < v[1];
    case ComparePredicate::le:
      return v[0] <= v[1];
    case ComparePredicate::gt:
      return v[0] > v[1];
    case ComparePredicate::ge:
      return v[0] >= v[1];
    }
    llvm_unreachable("covered switch");
  });
}

LogicalResult CastOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Type from = getElementTypeOrSelf(getX()), to = getElementTypeOrSelf(getY());
  return evaluateElements(*this, operands, results, [&](ArrayRef<double> v) -> double {
    double x = v[0];
    if (isa<FloatType>(to))
      return x;
    if (to.isInteger(1))
      return x != 0.0;
    if (!isa<FloatType>(from))
      return x;
    // Towards zero; NaN becomes 0, the rest saturates.
    if (std::isnan(x))
      return 0.0;
    double bound = std::ldexp(1.0, static_cast<int>(to.getIntOrFloatBitWidth()) - 1);
    if (to.isInteger(64)) // the largest double below 2^63
      return std::clamp(std::trunc(x), -bound, std::nextafter(bound, 0.0));
    return std::clamp(std::trunc(x), -bound, bound - 1.0);
  });
}

// Like every rounding to a type, these two are nothing in exact arithmetic.
LogicalResult RoundTf32Op::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(operands[0]);
  return success();
}
LogicalResult RoundStochasticallyOp::evaluate(ArrayRef<Tensor> operands,
                                              SmallVectorImpl<Tensor> &results) {
  return evaluateElements(*this, operands, results, [](ArrayRef<double> v) { return v[0]; });
}

LogicalResult CastOp::evaluateRounded(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  if (failed(evaluate(operands, results)))
    return failure();
  // 8-bit floats saturate: E4M3 has no infinity, and a scale that is a little too large should cost
  // the largest values some accuracy, not the step.
  Type to = getElementTypeOrSelf(getY());
  bool isFloat8 = isa<FloatType>(to) && to.getIntOrFloatBitWidth() == 8;
  roundTensor(results.back(), to, isFloat8 ? Overflow::Saturate : Overflow::Infinite);
  return success();
}
LogicalResult RoundTf32Op::evaluateRounded(ArrayRef<Tensor> operands,
                                           SmallVectorImpl<Tensor> &results) {
  return evaluateElements(*this, operands, results, [](ArrayRef<double> v) {
    return roundToFormat(v[0], FloatFormat::tf32());
  });
}
LogicalResult RoundStochasticallyOp::evaluateRounded(ArrayRef<Tensor> operands,
                                                     SmallVectorImpl<Tensor> &results) {
  return evaluateElements(*this, operands, results,
                          [](ArrayRef<double> v) { return roundStochastically(v[0], v[1]); });
}

LogicalResult IotaOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y(getShape().vec());
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), y.rank());
  int64_t i = 0;
  for (Positions position(y.shape); !position.done(); position.next())
    y.values[i++] = wrapToType(static_cast<double>(position[axis]), getElementTypeOrSelf(getY()));
  results.push_back(std::move(y));
  return success();
}

LogicalResult ConstantOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(toReference(getValue()));
  return success();
}

/// Philox 4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11. Word 0 of
/// the block.
static uint32_t philoxWord(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                           uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
             n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c0 = n0, c1 = static_cast<uint32_t>(p1), c2 = n2, c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c0;
}

LogicalResult RandomOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  uint32_t rng[4];
  for (int i = 0; i < 4; ++i)
    rng[i] = static_cast<uint32_t>(static_cast<int64_t>(operands[0].values[i]));
  Tensor y(getShape().vec());
  for (int64_t i = 0; i < y.size(); ++i) {
    uint32_t word = philoxWord(static_cast<uint32_t>(i), static_cast<uint32_t>(getId()), rng[2],
                               rng[3], rng[0], rng[1]);
    y.values[i] = static_cast<double>(word >> 8) * 0x1p-24;
  }
  results.push_back(std::move(y));
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y = operands[0];
  y.shape = referenceShape(getY());
  results.push_back(std::move(y));
  return success();
}

/// y at each position is x at the position `source` names; outside x, zero.
template <typename Source>
static LogicalResult gather(Operation *op, const Tensor &x, SmallVectorImpl<Tensor> &results,
                            Source source, unsigned result = 0) {
  Tensor y(referenceShape(op->getResult(result)));
  std::vector<int64_t> from(x.shape.size());
  int64_t i = 0;
  for (Positions position(y.shape); !position.done(); position.next(), ++i)
    if (source(position, from))
      y.values[i] = x.values[offsetOf(x.shape, from)];
  results.push_back(std::move(y));
  return success();
}

LogicalResult TransposeOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  return gather(*this, operands[0], results, [&](const Positions &to, std::vector<int64_t> &from) {
    for (size_t axis = 0; axis < from.size(); ++axis)
      from[getPermutation()[axis]] = to[axis];
    return true;
  });
}

LogicalResult BroadcastOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y(referenceShape(getY()));
  int64_t i = 0;
  for (Positions position(y.shape); !position.done(); position.next())
    y.values[i++] = operands[0].values[broadcastOffset(operands[0], position.get())];
  results.push_back(std::move(y));
  return success();
}

LogicalResult SliceOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  return gather(*this, operands[0], results, [&](const Positions &to, std::vector<int64_t> &from) {
    for (size_t axis = 0; axis < from.size(); ++axis)
      from[axis] = getStarts()[axis] + to[axis] * getStrides()[axis];
    return true;
  });
}

LogicalResult PadOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  return gather(*this, operands[0], results, [&](const Positions &to, std::vector<int64_t> &from) {
    for (size_t axis = 0; axis < from.size(); ++axis) {
      int64_t shifted = to[axis] - getLow()[axis], step = getInterior()[axis] + 1;
      if (shifted < 0 || shifted % step != 0 || shifted / step >= operands[0].shape[axis])
        return false;
      from[axis] = shifted / step;
    }
    return true;
  });
}

LogicalResult ConcatOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y(referenceShape(getY()));
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), y.rank());
  int64_t start = 0;
  for (const Tensor &input : operands) {
    int64_t i = 0;
    for (Positions position(input.shape); !position.done(); position.next()) {
      std::vector<int64_t> to = position.get();
      to[axis] += start;
      y.values[offsetOf(y.shape, to)] = input.values[i++];
    }
    start += input.shape[axis];
  }
  results.push_back(std::move(y));
  return success();
}

LogicalResult SplitOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  auto axis = normaliseAxis(static_cast<int64_t>(getAxis()), operands[0].rank());
  int64_t size = operands[0].shape[axis] / static_cast<int64_t>(getSections());
  for (unsigned part = 0; part < getSections(); ++part)
    if (failed(gather(
            *this, operands[0], results,
            [&](const Positions &to, std::vector<int64_t> &from) {
              from = to.get();
              from[axis] += part * size;
              return true;
            },
            part)))
      return failure();
  return success();
}
