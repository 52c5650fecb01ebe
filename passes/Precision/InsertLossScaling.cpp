//===- InsertLossScaling.cpp - A scale for gradients that are too small ---===//
//
// Gradients of mean losses are small numbers, and f16 ends at 6e-8: the backward pass starts from
// S / E instead of one, where S is the loss scale and E the weight of a full batch, and every
// gradient is multiplied by E / S before anything looks at it. E is rounded up to a power of two,
// so that with a power of two for S nothing is rounded that would not be otherwise.
//
// The pass runs behind insert-optimizer, when all that looks at gradients is in place: the finite
// check, the norm and the update. What it leaves reads in the order that semantics demand:
//
//   seed = scale_loss -> backward -> unscale -> all_finite -> norm -> clip -> commit
//
// and in the commit, for a dynamic scale, the books of both outcomes: a committed step counts
// towards the next growth, a skipped one halves the scale. Steps skipped because no target counted
// leave the scale alone. Sources: Micikevicius et al., "Mixed Precision Training", ICLR 2018;
// constants and order as torch.amp.GradScaler documents them.
//
// 1 / S is computed by one f32 division. That equals computing it in double and rounding: quotients
// of p-bit numbers survive rounding through 2p + 2 bits (Figueroa, "When is double rounding
// innocuous?", 1995), and 53 >= 2 * 24 + 2.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/StateNames.h"
#include "dialects/Train/Train.h"
#include "passes/Differentiate/SymbolNames.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace descent {
#define GEN_PASS_DEF_INSERTLOSSSCALING
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct InsertLossScaling : descent::impl::InsertLossScalingBase<InsertLossScaling> {
  void runOnOperation() override;

private:
  LogicalResult scale(train::FuncOp step, train::SeedOp seed, Attribute scale);
  void declareState(StringRef name, Type element, double initial);
  void unscaleGradients(train::FuncOp step, train::AllFiniteOp finite, Value factor);
  void keepBooks(train::CommitOp commit, Value scale, Value finite,
                 train::DynamicScaleAttr dynamic);
};

} // namespace

/// The weight of a full batch as a power of two, from the losses that the step's weight comes from.
static double expectedWeight(Value weight) {
  double sum = 0.0;
  llvm::SetVector<Operation *> pending;
  if (Operation *def = weight.getDefiningOp())
    pending.insert(def);
  for (size_t i = 0; i < pending.size(); ++i) {
    if (auto loss = dyn_cast<RowWeightedOp>(pending[i])) {
      sum += loss.getExpectedWeight();
      continue;
    }
    for (Value operand : pending[i]->getOperands())
      if (Operation *def = operand.getDefiningOp())
        pending.insert(def);
  }
  return static_cast<double>(llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max(sum, 1.0))));
}

void InsertLossScaling::declareState(StringRef name, Type element, double initial) {
  OpBuilder builder(*getOperation().getOps<train::FuncOp>().begin());
  train::StateOp::create(builder, getOperation().getLoc(), name, FlatSymbolRefAttr(),
                         RankedTensorType::get({}, element), APFloat(initial));
}

/// The ops that look at gradients get them unscaled, each gradient by one op.
void InsertLossScaling::unscaleGradients(train::FuncOp step, train::AllFiniteOp finite,
                                         Value factor) {
  OpBuilder builder(finite);
  SmallVector<Value> gradients(finite.getValues());
  DenseMap<Value, Value> unscaledOf;
  for (Value gradient : gradients) {
    Value &result = unscaledOf[gradient];
    if (!result) {
      result = train::UnscaleOp::create(builder, gradient.getLoc(), gradient.getType(), gradient,
                                        factor);
      ++unscaled;
    }
  }
  step.walk([&](Operation *op) {
    if (isa<train::AllFiniteOp, train::NormOp, train::UpdateOp>(op))
      for (OpOperand &operand : op->getOpOperands())
        if (Value result = unscaledOf.lookup(operand.get()))
          operand.set(result);
  });
}

void InsertLossScaling::keepBooks(train::CommitOp commit, Value scale, Value finite,
                                  train::DynamicScaleAttr dynamic) {
  Location loc = scale.getLoc();
  auto counter = RankedTensorType::get({}, IntegerType::get(&getContext(), 64));
  auto number = [&](OpBuilder &builder, int64_t value) -> Value {
    return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(counter, value));
  };
  OpBuilder builder(commit);
  train::ScalarMath math(builder, loc);
  Value zero = number(builder, 0), one = number(builder, 1);
  declareState(train::skippedStepsState, counter.getElementType(), 0.0);
  Value skips = train::ReadOp::create(builder, loc, counter, train::skippedStepsState);
  Value moreSkips = math.where(finite, skips, math.add(skips, one));

  OpBuilder committed = OpBuilder::atBlockEnd(&commit.getBody().front());
  OpBuilder skipped = OpBuilder::atBlockEnd(&commit.getSkipped().emplaceBlock());
  train::WriteOp::create(skipped, loc, train::skippedStepsState, moreSkips);
  if (!dynamic)
    return;

  declareState(train::cleanStepsState, counter.getElementType(), 0.0);
  Value clean = train::ReadOp::create(builder, loc, counter, train::cleanStepsState);
  Value next = math.add(clean, one);
  Value due = math.compare(nn::ComparePredicate::ge, next, number(builder, dynamic.getInterval()));
  Value grown = math.mul(scale, math.constant(dynamic.getGrowth()));
  Value infinity = math.constant(std::numeric_limits<double>::infinity());
  Value possible =
      math.where(math.compare(nn::ComparePredicate::lt, grown, infinity), grown, scale);
  Value shrunk = math.max(math.mul(scale, math.constant(dynamic.getBackoff())),
                          math.constant(dynamic.getFloor()));
  Value afterCommit = math.where(due, possible, scale), cleanAfter = math.where(due, zero, next);
  Value afterSkip = math.where(finite, scale, shrunk), cleanSkip = math.where(finite, clean, zero);
  train::WriteOp::create(committed, loc, train::lossScaleState, afterCommit);
  train::WriteOp::create(committed, loc, train::cleanStepsState, cleanAfter);
  train::WriteOp::create(skipped, loc, train::lossScaleState, afterSkip);
  train::WriteOp::create(skipped, loc, train::cleanStepsState, cleanSkip);
}

LogicalResult InsertLossScaling::scale(train::FuncOp step, train::SeedOp seed, Attribute wanted) {
  for (StringRef name : {train::lossScaleState, train::cleanStepsState, train::skippedStepsState})
    if (failed(checkNameIsFree(getOperation(), name, "a state of the loss scale")))
      return failure();
  auto finites = step.getBody().getOps<train::AllFiniteOp>();
  auto commits = step.getBody().getOps<train::CommitOp>();
  if (!llvm::hasSingleElement(finites) || !llvm::hasSingleElement(commits))
    return step.emitError("insert-loss-scaling needs one train.all_finite and one train.commit in "
                          "@step; run insert-optimizer first");
  train::AllFiniteOp finite = *finites.begin();
  train::ReturnOp ret = step.getReturn();
  Location loc = NameLoc::get(StringAttr::get(&getContext(), "loss scaling"), seed.getLoc());
  auto scalar = RankedTensorType::get({}, Float32Type::get(&getContext()));
  double expected = expectedWeight(ret.getValues()[1]);

  OpBuilder builder(seed);
  Value scale;
  auto dynamic = dyn_cast<train::DynamicScaleAttr>(wanted);
  if (dynamic) {
    declareState(train::lossScaleState, scalar.getElementType(), dynamic.getInitial());
    // The floor holds for a state that was loaded, too. (It also makes the scale a value of the
    // step's own, which can be returned although the state is overwritten.)
    Value state = train::ReadOp::create(builder, loc, scalar, train::lossScaleState);
    train::ScalarMath math(builder, loc);
    scale = math.max(state, math.constant(dynamic.getFloor()));
  } else {
    auto fixed = dyn_cast<train::StaticScaleAttr>(wanted);
    if (!fixed)
      return step.emitError() << "train.loss_scale is " << wanted
                              << "; it must be #train.dynamic_scale or #train.static_scale";
    scale = train::ScalarMath(builder, loc).constant(fixed.getScale());
  }
  Value start =
      train::ScaleLossOp::create(builder, loc, scalar, scale, builder.getF64FloatAttr(expected));
  seed.replaceAllUsesWith(start);
  seed.erase();

  builder.setInsertionPoint(finite);
  train::ScalarMath math(builder, loc);
  Value factor = math.div(math.constant(expected), scale);
  unscaleGradients(step, finite, factor);
  keepBooks(*commits.begin(), scale, finite.getFinite(), dynamic);

  // What the runtime prints, and multiplies the gradients in memory by when they are dumped.
  builder.setInsertionPoint(ret);
  SmallVector<Value> results(ret.getValues());
  llvm::append_values(results, factor, scale);
  SmallVector<Attribute> names(ret.getNames().getValue());
  names.push_back(builder.getStringAttr("unscale"));
  names.push_back(builder.getStringAttr("loss_scale"));
  train::ReturnOp::create(builder, ret.getLoc(), builder.getArrayAttr(names), results);
  ret.erase();
  step.setFunctionType(
      builder.getFunctionType(step.getArgumentTypes(), ValueRange(results).getTypes()));
  return success();
}

void InsertLossScaling::runOnOperation() {
  auto step = getOperation().lookupSymbol<train::FuncOp>("step");
  if (!step) {
    getOperation().emitError("insert-loss-scaling needs train.func @step; run differentiate first");
    return signalPassFailure();
  }
  auto seeds = step.getBody().getOps<train::SeedOp>();
  if (!llvm::hasSingleElement(seeds)) {
    step.emitError("insert-loss-scaling needs exactly one train.seed in @step, where differentiate "
                   "starts the backward pass");
    return signalPassFailure();
  }
  train::SeedOp seed = *seeds.begin();
  if (Attribute wanted = getOperation()->getAttr("train.loss_scale")) {
    if (failed(scale(step, seed, wanted)))
      signalPassFailure();
    return;
  }
  OpBuilder builder(seed);
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  auto one = DenseElementsAttr::get(scalar, 1.0f);
  seed.replaceAllUsesWith(nn::ConstantOp::create(builder, seed.getLoc(), one).getResult());
  seed.erase();
}
