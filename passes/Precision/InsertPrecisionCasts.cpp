//===- InsertPrecisionCasts.cpp - Types of mixed precision ----------------===//
//
// Applies what choosePrecision decided: every float operand of another type than its op's goes
// through an nn.cast, one for each value and type; then result types are inferred again. The pass
// decides nothing and optimises nothing: fold-casts and the fusion phase make the casts cheap.
//
// It runs before differentiate, so the backward pass needs no rules of its own: the gradient of a
// value has the value's type, and the gradient of a cast is the cast back.
//
// Parameters stay f32 (the master weights). Rejected: overrides that match nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Precision/PrecisionChoice.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/Matchers.h"

namespace descent {
#define GEN_PASS_DEF_INSERTPRECISIONCASTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct InsertPrecisionCasts : descent::impl::InsertPrecisionCastsBase<InsertPrecisionCasts> {
  void runOnOperation() override;

private:
  LogicalResult apply(const PrecisionChoice &choice);
  Value convert(Value value, Type element, Operation *before);
  void roundBehind(Value result, Type element);

  DenseMap<std::pair<Value, Type>, Value> converted;
};

} // namespace

/// A splat constant in another type: a new literal, not a cast.
static Value convertConstant(OpBuilder &builder, Value value, FloatType element) {
  DenseElementsAttr literal;
  if (!matchPattern(value, m_Constant(&literal)) || !literal.isSplat())
    return {};
  APFloat number = literal.getSplatValue<APFloat>();
  bool lost, isFinite = number.isFinite();
  number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  if (isFinite && !number.isFinite()) // an operand of a narrow op: the largest value there is
    number = APFloat::getLargest(element.getFloatSemantics(), number.isNegative());
  auto type = cast<RankedTensorType>(value.getType()).clone(element);
  return nn::ConstantOp::create(builder, value.getLoc(), DenseElementsAttr::get(type, number));
}

Value InsertPrecisionCasts::convert(Value value, Type element, Operation *before) {
  Value &result = converted[{value, element}];
  if (result)
    return result;
  OpBuilder builder(before);
  result = convertConstant(builder, value, cast<FloatType>(element));
  if (!result) {
    result = nn::CastOp::create(builder, before->getLoc(), value, TypeAttr::get(element));
    ++casts;
  }
  return result;
}

/// For an op that runs in f32 but is to yield the compute type.
void InsertPrecisionCasts::roundBehind(Value result, Type element) {
  OpBuilder builder(result.getContext());
  builder.setInsertionPointAfterValue(result);
  auto cast = nn::CastOp::create(builder, result.getLoc(), result, TypeAttr::get(element));
  result.replaceAllUsesExcept(cast.getY(), cast);
  ++casts;
}

LogicalResult InsertPrecisionCasts::apply(const PrecisionChoice &choice) {
  Operation *op = choice.op;
  // Weights of rows are counts, not data: f32 wherever the loss runs.
  auto isRowWeight = [&](OpOperand &operand) {
    auto loss = dyn_cast<RowWeightedOp>(op);
    return loss && llvm::any_of(loss.getRowWeightsMutable(),
                                [&](OpOperand &weight) { return &weight == &operand; });
  };
  if (choice.operands)
    for (OpOperand &operand : op->getOpOperands()) {
      Type element = getElementTypeOrSelf(operand.get());
      if (isa<FloatType>(element) && element != choice.operands && !isRowWeight(operand))
        operand.set(convert(operand.get(), choice.operands, op));
    }
  if (isa<nn::LossOp>(op) || op->getNumResults() == 0)
    return success();
  auto infer = dyn_cast<InferTypeOpInterface>(op);
  if (!infer)
    return success();
  bool quantizes = getOperation()->hasAttr("train.quantize");
  if (quantizes && choice.overridden && isa<AccumulatingOp>(op))
    op->setAttr(unquantizedAttrName, UnitAttr::get(&getContext()));
  if (auto sum = dyn_cast<AccumulatingOp>(op);
      sum && choice.operands && choice.results != choice.operands)
    sum.setResultTypeAttr(TypeAttr::get(choice.results));
  SmallVector<Type> types;
  if (failed(infer.inferReturnTypes(&getContext(), op->getLoc(), op->getOperands(),
                                    op->getRawDictionaryAttrs(), op->getPropertiesStorage(),
                                    op->getRegions(), types)))
    return failure();
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    result.setType(type);
    Type element = getElementTypeOrSelf(type);
    if (!isa<FloatType>(element))
      continue;
    narrowed += !choice.results.isF32();
    if (element != choice.results)
      roundBehind(result, choice.results);
  }
  return success();
}

void InsertPrecisionCasts::runOnOperation() {
  for (auto model : getOperation().getOps<nn::ModelOp>()) {
    converted.clear();
    FailureOr<SmallVector<PrecisionChoice>> choices = choosePrecision(model);
    if (failed(choices))
      return signalPassFailure();
    for (const PrecisionChoice &choice : *choices)
      if (failed(apply(choice)))
        return signalPassFailure();
  }
}
