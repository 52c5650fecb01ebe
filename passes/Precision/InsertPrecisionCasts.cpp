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

LogicalResult InsertPrecisionCasts::apply(const PrecisionChoice &choice) {
  Operation *op = choice.op;
  if (choice.operands)
    for (OpOperand &operand : op->getOpOperands()) {
      Type element = getElementTypeOrSelf(operand.get());
      if (isa<FloatType>(element) && element != choice.operands &&
          !(isa<RowWeightedOp, nn::LossOp>(op) &&
            cast<RankedTensorType>(operand.get().getType()).getRank() == 0))
        operand.set(convert(operand.get(), choice.operands, op));
    }
  if (isa<nn::LossOp>(op) || op->getNumResults() == 0)
    return success();
  auto infer = dyn_cast<InferTypeOpInterface>(op);
  if (!infer)
    return success();
  if (auto sum = dyn_cast<AccumulatingOp>(op); sum && choice.results != choice.operands)
    sum.setResultTypeAttr(TypeAttr::get(choice.results));
  SmallVector<Type> types;
  if (failed(infer.inferReturnTypes(&getContext(), op->getLoc(), op->getOperands(),
                                    op->getRawDictionaryAttrs(), op->getPropertiesStorage(),
                                    op->getRegions(), types)))
    return failure();
  bool rounds = false;
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    Type element = getElementTypeOrSelf(type);
    narrowed += isa<FloatType>(element) && !element.isF32();
    result.setType(type);
    rounds |= isa<FloatType>(element) && choice.results && element != choice.results &&
              choice.results != Type();
  }
  // What runs in f32 but yields the compute type is rounded behind the op.
  if (rounds && op->getNumResults() == 1 && !isa<AccumulatingOp>(op)) {
    OpBuilder after(op);
    after.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    auto cast = nn::CastOp::create(after, op->getLoc(), result, TypeAttr::get(choice.results));
    result.replaceAllUsesExcept(cast.getY(), cast);
    ++casts;
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
