//===- LowerUpdates.cpp - Optimizer steps as flat elementwise programs ----===//
//
// An update reads and writes every element of parameters and states once: it is bound by memory,
// and one launch per parameter would be bound by launches. So each group gets slabs, all with the
// members in the same places, and the rule is built once on the whole slab.
//
//   1. Lay out each group: members in the order of the update, each from a multiple of 64 bytes,
//   the end padded to whole rows.
//   2. Pack the gradients. (The planner makes each gradient's producer write into the slab, so
//   packing moves nothing.)
//   3. Unscaling, the finite check and the norm are taken over the packed slabs: padding is zero
//   and adds nothing. Gradients in memory stay as the backward pass left them; each reader
//   unscales.
//   4. Build the rule; select by the commit's condition; write. Working copies are one more result
//   of the same values, and @refresh makes them from the parameters alone.
//
// Left in the IR: train.read of single parameters (views into the slabs), train.pack, train.write
// at the end of @step.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/Train.h"
#include "passes/Differentiate/SymbolNames.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace descent {
#define GEN_PASS_DEF_LOWERUPDATES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct LowerUpdates : descent::impl::LowerUpdatesBase<LowerUpdates> {
  void runOnOperation() override;

private:
  LogicalResult checkUpdates();
  void lowerCommit(train::CommitOp commit);
  /// Where the members of a group stand in each of its slabs.
  struct Layout {
    SmallVector<int64_t> offsets;
    RankedTensorType type;
    int64_t used = 0; // elements that belong to members
  };
  static Layout layOut(train::UpdateOp update);
  /// The type that a slab of these members (parameters or states) has.
  RankedTensorType slabType(const Layout &layout, ArrayAttr members);

  /// The packed gradients of an update as they lie in memory, and what unscales them, if anything.
  struct Gradients {
    Value packed, factor;
    Value unscaled(OpBuilder &builder, Location loc) const {
      return factor ? train::ScalarMath(builder, loc).mul(packed, factor) : packed;
    }
  };
  /// Declares the slabs of one update as well.
  Gradients packGradients(OpBuilder &builder, train::UpdateOp update);
  void declareSlab(train::UpdateOp update, const Layout &layout, StringRef name, StringRef category,
                   ArrayAttr members, RankedTensorType type);
  ArrayAttr stateMembers(train::UpdateOp update, StringRef state);
  Value narrow(OpBuilder &builder, Location loc, Value value, RankedTensorType type);
  void declareWorkingCopies(train::UpdateOp update, const Layout &layout);
  void lowerUpdate(OpBuilder &builder, train::UpdateOp update, Gradients gradients,
                   Value condition);
  void lowerCheck(train::AllFiniteOp check, ArrayRef<Value> packed);
  void lowerNorm(train::NormOp norm, ArrayRef<Value> packed);
  void lowerWrites(train::CommitOp commit);
  void buildRefresh();

  /// The slabs of working copies, with the slab of parameters that each is a rounding of.
  struct WorkingSlab {
    std::string name, parameters;
    RankedTensorType type, parametersType;
    Location loc;
  };
  llvm::SmallVector<WorkingSlab> workingSlabs;
  bool stochastic = false; // how what is kept in a narrow type is rounded
  int64_t roundings = 0;   // rounded stochastically so far
  train::FuncOp step;      // whose commit is lowered
};

} // namespace

LowerUpdates::Layout LowerUpdates::layOut(train::UpdateOp update) {
  Layout layout;
  int64_t end = 0;
  for (Value gradient : update.getGradients()) {
    layout.offsets.push_back(end);
    int64_t elements = cast<RankedTensorType>(gradient.getType()).getNumElements();
    layout.used += elements;
    end = llvm::alignTo(end + elements, train::slabAlignment);
  }
  auto rows = static_cast<int64_t>(llvm::divideCeil(end, train::slabColumns));
  layout.type =
      RankedTensorType::get({rows, train::slabColumns}, Float32Type::get(update.getContext()));
  return layout;
}

static std::string slabName(train::UpdateOp update, StringRef what) {
  return (update.getGroup() + "." + what).str();
}

RankedTensorType LowerUpdates::slabType(const Layout &layout, ArrayAttr members) {
  Operation *first = getOperation().lookupSymbol(cast<FlatSymbolRefAttr>(members[0]).getAttr());
  RankedTensorType member;
  if (auto parameter = dyn_cast<train::ParameterOp>(first))
    member = parameter.getTensorType();
  else
    member = cast<train::StateOp>(first).getTensorType();
  return RankedTensorType::get(layout.type.getShape(), member.getElementType());
}

void LowerUpdates::declareSlab(train::UpdateOp update, const Layout &layout, StringRef name,
                               StringRef category, ArrayAttr members, RankedTensorType type) {
  OpBuilder builder(update->getParentOfType<train::FuncOp>());
  train::SlabOp::create(builder, update.getLoc(), name, category, members, layout.offsets, type);
  ++slabs;
  padding +=
      llvm::divideCeil(type.getElementTypeBitWidth(), 8) * (type.getNumElements() - layout.used);
}

ArrayAttr LowerUpdates::stateMembers(train::UpdateOp update, StringRef state) {
  SmallVector<Attribute> members;
  for (auto parameter : update.getParameters().getAsRange<FlatSymbolRefAttr>())
    members.push_back(
        FlatSymbolRefAttr::get(&getContext(), (parameter.getValue() + "." + state).str()));
  return ArrayAttr::get(&getContext(), members);
}

/// Rounds what is kept in a narrower type than the update computes.
Value LowerUpdates::narrow(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  auto element = TypeAttr::get(type.getElementType());
  if (!stochastic)
    return nn::CastOp::create(builder, loc, value, element);
  Value rng;
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (auto role = step.getArgAttrOfType<StringAttr>(i, "nn.role"); role && role == "rng")
      rng = step.getArgument(i);
  // Ids of dropouts count from 0; these are out of their way, one for each slab.
  constexpr int64_t firstId = int64_t{1} << 30;
  Value random = nn::RandomOp::create(builder, loc, rng, type.getShape(), firstId + roundings++);
  return nn::RoundStochasticallyOp::create(builder, loc, value, random, element);
}

static std::string workingName(train::UpdateOp update, Type element) {
  std::string suffix;
  llvm::raw_string_ostream(suffix) << "working." << element;
  return slabName(update, suffix);
}

/// The gradient that a value of the update's is the unscaled form of, and the factor; null if it is
/// not scaled.
static std::pair<Value, Value> scaledForm(Value gradient) {
  if (auto unscale = gradient.getDefiningOp<train::UnscaleOp>())
    return {unscale.getGradient(), unscale.getFactor()};
  return {gradient, Value()};
}

/// What the verifiers of single ops cannot see: parameters named like slabs, and gradients of one
/// group under several scales, whose slab could not be unscaled as a whole.
LogicalResult LowerUpdates::checkUpdates() {
  WalkResult walk = getOperation().walk([&](train::UpdateOp update) {
    auto factorOf = [](Value gradient) { return scaledForm(gradient).second; };
    if (!llvm::all_equal(llvm::map_range(update.getGradients(), factorOf))) {
      update.emitOpError("has gradients unscaled by different factors; insert-loss-scaling gives "
                         "all gradients of a step one");
      return WalkResult::interrupt();
    }
    SmallVector<std::string> names{slabName(update, "parameters"), slabName(update, "gradients")};
    auto optimizer = cast<train::OptimizerAttrInterface>(update.getOptimizer());
    for (StringRef state : optimizer.getStateNames())
      names.push_back(slabName(update, state));
    for (auto copy : getOperation().getOps<train::WorkingCopyOp>())
      names.push_back(workingName(update, copy.getTensorType().getElementType()));
    for (const std::string &name : names)
      if (failed(checkNameIsFree(getOperation(), name,
                                 ("a slab of the group '" + update.getGroup() + "'").str())))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// One slab for each type that working copies of the group have, laid out like the group's others.
/// What belongs to parameters without a copy is rounded along and read by nobody.
void LowerUpdates::declareWorkingCopies(train::UpdateOp update, const Layout &layout) {
  llvm::MapVector<Type, SmallVector<std::pair<Attribute, int64_t>>> byType;
  for (auto copy : getOperation().getOps<train::WorkingCopyOp>())
    for (auto [parameter, offset] :
         llvm::zip_equal(update.getParameters().getAsRange<FlatSymbolRefAttr>(), layout.offsets))
      if (parameter == copy.getParameterAttr())
        byType[copy.getTensorType().getElementType()].push_back(
            {FlatSymbolRefAttr::get(copy.getSymNameAttr()), offset});
  OpBuilder builder(update->getParentOfType<train::FuncOp>());
  for (auto &[element, copies] : byType) {
    SmallVector<Attribute> members;
    SmallVector<int64_t> offsets;
    for (auto [member, offset] : copies) {
      members.push_back(member);
      offsets.push_back(offset);
    }
    auto type = RankedTensorType::get(layout.type.getShape(), element);
    std::string name = workingName(update, element);
    train::SlabOp::create(builder, update.getLoc(), name, "working", builder.getArrayAttr(members),
                          offsets, type);
    workingSlabs.push_back(
        {name, slabName(update, "parameters"), type, layout.type, update.getLoc()});
    ++slabs;
  }
}

LowerUpdates::Gradients LowerUpdates::packGradients(OpBuilder &builder, train::UpdateOp update) {
  auto optimizer = cast<train::OptimizerAttrInterface>(update.getOptimizer());
  Layout layout = layOut(update);
  auto declare = [&](StringRef what, StringRef category, ArrayAttr members, RankedTensorType type) {
    declareSlab(update, layout, slabName(update, what), category, members, type);
  };
  ArrayAttr parameters = update.getParametersAttr();
  declare("parameters", "parameters", parameters, slabType(layout, parameters));
  declareWorkingCopies(update, layout);
  declare("gradients", "gradients", parameters, layout.type);
  for (StringRef state : optimizer.getStateNames()) {
    ArrayAttr members = stateMembers(update, state);
    declare(state, "optimizer", members, slabType(layout, members));
  }
  SmallVector<Value> gradients;
  Value factor;
  for (Value gradient : update.getGradients()) {
    auto [scaled, own] = scaledForm(gradient);
    gradients.push_back(scaled);
    factor = own; // checkUpdates: the same for all
  }
  Value packed = train::PackOp::create(builder, update.getLoc(), layout.type,
                                       slabName(update, "gradients"), gradients);
  return {packed, factor};
}

void LowerUpdates::lowerUpdate(OpBuilder &builder, train::UpdateOp update, Gradients gradients,
                               Value condition) {
  auto optimizer = cast<train::OptimizerAttrInterface>(update.getOptimizer());
  Location loc = update.getLoc();
  SmallVector<std::string> names{slabName(update, "parameters")};
  for (StringRef state : optimizer.getStateNames())
    names.push_back(slabName(update, state));
  // The rule computes in f32 whatever the slabs are kept in.
  SmallVector<Value> old, before;
  for (StringRef name : names) {
    RankedTensorType type = getOperation().lookupSymbol<train::SlabOp>(name).getTensorType();
    old.push_back(train::ReadOp::create(builder, loc, type, name));
    before.push_back(
        type == gradients.packed.getType()
            ? old.back()
            : nn::CastOp::create(builder, loc, old.back(), TypeAttr::get(builder.getF32Type())));
  }
  train::ScalarMath math(builder, loc);
  // What unscales the gradient of the update waits for the decision. Were it the factor that check
  // and norm unscale with, all three would share a kernel, which cannot know the condition yet and
  // would have to keep every new value until it does.
  if (gradients.factor)
    gradients.factor = math.where(condition, gradients.factor, math.constant(0.0));
  Value scaled = math.mul(gradients.unscaled(builder, loc), update.getScale());
  SmallVector<Value> after = optimizer.buildUpdate(
      builder, loc, before[0], scaled, ArrayRef(before).drop_front(), update.getRate(),
      update.getCount(), update.getWeightDecay().convertToDouble());
  SmallVector<Value> kept;
  for (auto [name, unchanged, updated] : llvm::zip_equal(names, old, after)) {
    auto type = cast<RankedTensorType>(unchanged.getType());
    kept.push_back(math.where(condition, narrow(builder, loc, updated, type), unchanged));
    train::WriteOp::create(builder, loc, name, kept.back());
  }
  for (const WorkingSlab &slab : workingSlabs)
    if (slab.parameters == names[0])
      train::WriteOp::create(
          builder, loc, slab.name,
          nn::CastOp::create(builder, loc, kept[0], TypeAttr::get(slab.type.getElementType())));
}

/// x * 0 is 0 for every finite x and NaN for the others, so one sum checks a slab.
void LowerUpdates::lowerCheck(train::AllFiniteOp check, ArrayRef<Value> packed) {
  OpBuilder builder(check);
  Location loc = check.getLoc();
  train::ScalarMath math(builder, loc);
  Value zero = math.constant(0.0), total;
  for (Value slab : packed) {
    Value rows = nn::ReduceSumOp::create(builder, loc, math.mul(slab, zero), ArrayRef<int64_t>{1},
                                         /*keep=*/false);
    Value sum = nn::ReduceSumOp::create(builder, loc, rows, ArrayRef<int64_t>{0}, false);
    total = total ? math.add(total, sum) : sum;
  }
  check.replaceAllUsesWith(math.compare(nn::ComparePredicate::eq, total, zero));
  check.erase();
}

void LowerUpdates::lowerNorm(train::NormOp norm, ArrayRef<Value> packed) {
  OpBuilder builder(norm);
  train::ScalarMath math(builder, norm.getLoc());
  Value total;
  for (Value slab : packed) {
    Value rows = nn::ReduceSumOp::create(builder, norm.getLoc(), math.mul(slab, slab),
                                         ArrayRef<int64_t>{1}, /*keep=*/false);
    Value sum = nn::ReduceSumOp::create(builder, norm.getLoc(), rows, ArrayRef<int64_t>{0}, false);
    total = total ? math.add(total, sum) : sum;
  }
  norm.replaceAllUsesWith(math.sqrt(total));
  norm.erase();
}

/// Each state that either outcome of the commit writes: what it wrote, or the old value.
void LowerUpdates::lowerWrites(train::CommitOp commit) {
  llvm::MapVector<StringAttr, std::pair<Value, Value>> values; // if committed, if skipped
  for (auto write : commit.getBody().getOps<train::WriteOp>())
    values[write.getSymbolAttr().getAttr()].first = write.getValue();
  if (!commit.getSkipped().empty())
    for (auto write : commit.getSkipped().getOps<train::WriteOp>())
      values[write.getSymbolAttr().getAttr()].second = write.getValue();
  OpBuilder builder(commit);
  Location loc = commit.getLoc();
  train::ScalarMath math(builder, loc);
  for (auto &[symbol, pair] : values) {
    auto [committed, skipped] = pair;
    Value some = committed ? committed : skipped;
    Value old = committed && skipped
                    ? Value()
                    : train::ReadOp::create(builder, loc, some.getType(), symbol.getValue());
    train::WriteOp::create(
        builder, loc, symbol.getValue(),
        math.where(commit.getCondition(), committed ? committed : old, skipped ? skipped : old));
  }
}

/// @refresh, for parameters that did not come from an update: the first values, loaded weights.
void LowerUpdates::buildRefresh() {
  if (workingSlabs.empty())
    return;
  OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
  Location loc = workingSlabs.front().loc;
  auto function = train::FuncOp::create(builder, loc, "refresh", builder.getFunctionType({}, {}),
                                        ArrayAttr(), ArrayAttr());
  builder.createBlock(&function.getBody());
  for (const WorkingSlab &slab : workingSlabs) {
    Value parameters = train::ReadOp::create(builder, loc, slab.parametersType, slab.parameters);
    train::WriteOp::create(
        builder, loc, slab.name,
        nn::CastOp::create(builder, loc, parameters, TypeAttr::get(slab.type.getElementType())));
  }
  train::ReturnOp::create(builder, loc, builder.getStrArrayAttr({}), ValueRange());
}

void LowerUpdates::lowerCommit(train::CommitOp commit) {
  step = commit->getParentOfType<train::FuncOp>();
  Block &body = step.getBody().front();
  auto updates = llvm::to_vector(commit.getBody().getOps<train::UpdateOp>());
  auto checks = llvm::to_vector(body.getOps<train::AllFiniteOp>());
  auto norms = llvm::to_vector(body.getOps<train::NormOp>());

  // Gradients are packed before the first op that looks at them.
  Operation *first = commit;
  for (Operation &op : body)
    if (isa<train::AllFiniteOp, train::NormOp>(op)) {
      first = &op;
      break;
    }
  OpBuilder builder(first);
  SmallVector<Gradients> gradients;
  SmallVector<Value> unscaled;
  for (train::UpdateOp update : updates) {
    gradients.push_back(packGradients(builder, update));
    unscaled.push_back(gradients.back().unscaled(builder, update.getLoc()));
  }
  for (train::AllFiniteOp check : checks)
    lowerCheck(check, unscaled);
  for (train::NormOp norm : norms)
    lowerNorm(norm, unscaled);

  builder.setInsertionPoint(commit);
  for (auto [update, gradients] : llvm::zip_equal(updates, gradients))
    lowerUpdate(builder, update, gradients, commit.getCondition());
  lowerWrites(commit);
  commit.erase();
  for (auto unscale : llvm::make_early_inc_range(body.getOps<train::UnscaleOp>()))
    if (unscale.use_empty())
      unscale.erase();
}

void LowerUpdates::runOnOperation() {
  workingSlabs.clear();
  roundings = 0;
  auto storage = getOperation()->getAttrOfType<train::StorageAttr>("train.storage");
  stochastic = storage && storage.getStochastic();
  if (failed(checkUpdates()))
    return signalPassFailure();
  for (auto function : getOperation().getOps<train::FuncOp>())
    for (auto commit : llvm::make_early_inc_range(function.getBody().getOps<train::CommitOp>()))
      lowerCommit(commit);
  for (auto function : getOperation().getOps<train::FuncOp>())
    for (auto scaling :
         llvm::make_early_inc_range(function.getBody().getOps<train::ScaleLossOp>())) {
      OpBuilder builder(scaling);
      train::ScalarMath math(builder, scaling.getLoc());
      scaling.replaceAllUsesWith(math.mul(
          scaling.getScale(), math.constant(1.0 / scaling.getExpected().convertToDouble())));
      scaling.erase();
    }
  buildRefresh();
}
