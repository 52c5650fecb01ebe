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
//   3. The norm is taken over the packed slabs: padding is zero and adds nothing.
//   4. Build the rule; select by the commit's condition; write.
//
// Left in the IR: train.read of single parameters (views into the slabs), train.pack, train.write
// at the end of @step.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/Train.h"
#include "passes/Passes.h"

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
  void lowerCommit(train::CommitOp commit);
  /// Declares the slabs of one update and returns the packed gradients.
  Value packGradients(OpBuilder &builder, train::UpdateOp update);
  void declareSlab(train::UpdateOp update, StringRef name, StringRef category, ArrayAttr members);
  void lowerUpdate(OpBuilder &builder, train::UpdateOp update, Value gradients, Value condition);
};

/// Where the members of a group stand in each of its slabs.
struct Layout {
  SmallVector<int64_t> offsets;
  RankedTensorType type;
  int64_t used = 0; // elements that belong to members
};

} // namespace

static Layout layOut(train::UpdateOp update) {
  Layout layout;
  int64_t end = 0;
  for (Value gradient : update.getGradients()) {
    layout.offsets.push_back(end);
    int64_t elements = cast<RankedTensorType>(gradient.getType()).getNumElements();
    layout.used += elements;
    end = llvm::alignTo(end + elements, train::slabAlignment);
  }
  layout.type =
      RankedTensorType::get({llvm::divideCeil(end, train::slabColumns), train::slabColumns},
                            Float32Type::get(update.getContext()));
  return layout;
}

static std::string slabName(train::UpdateOp update, StringRef what) {
  return (update.getGroup() + "." + what).str();
}

void LowerUpdates::declareSlab(train::UpdateOp update, StringRef name, StringRef category,
                               ArrayAttr members) {
  OpBuilder builder(update->getParentOfType<train::FuncOp>());
  Layout layout = layOut(update);
  train::SlabOp::create(builder, update.getLoc(), name, category, members, layout.offsets,
                        layout.type);
  ++slabs;
  padding += 4 * (layout.type.getNumElements() - layout.used);
}

Value LowerUpdates::packGradients(OpBuilder &builder, train::UpdateOp update) {
  auto optimizer = cast<train::OptimizerAttrInterface>(update.getOptimizer());
  declareSlab(update, slabName(update, "parameters"), "parameters", update.getParametersAttr());
  declareSlab(update, slabName(update, "gradients"), "gradients", update.getParametersAttr());
  for (StringRef state : optimizer.getStateNames()) {
    SmallVector<Attribute> members;
    for (auto parameter : update.getParameters().getAsRange<FlatSymbolRefAttr>())
      members.push_back(
          FlatSymbolRefAttr::get(&getContext(), (parameter.getValue() + "." + state).str()));
    declareSlab(update, slabName(update, state), "optimizer",
                ArrayAttr::get(&getContext(), members));
  }
  return train::PackOp::create(builder, update.getLoc(), layOut(update).type,
                               slabName(update, "gradients"), update.getGradients());
}

void LowerUpdates::lowerUpdate(OpBuilder &builder, train::UpdateOp update, Value gradients,
                               Value condition) {
  auto optimizer = cast<train::OptimizerAttrInterface>(update.getOptimizer());
  Location loc = update.getLoc();
  SmallVector<std::string> names{slabName(update, "parameters")};
  for (StringRef state : optimizer.getStateNames())
    names.push_back(slabName(update, state));
  SmallVector<Value> before;
  for (StringRef name : names)
    before.push_back(train::ReadOp::create(builder, loc, gradients.getType(), name));
  train::ScalarMath math(builder, loc);
  Value scaled = math.mul(gradients, update.getScale());
  SmallVector<Value> after = optimizer.buildUpdate(
      builder, loc, before[0], scaled, ArrayRef(before).drop_front(), update.getRate(),
      update.getCount(), update.getWeightDecay().convertToDouble());
  for (auto [name, old, updated] : llvm::zip_equal(names, before, after))
    train::WriteOp::create(builder, loc, name, math.where(condition, updated, old));
}

void LowerUpdates::lowerCommit(train::CommitOp commit) {
  auto function = commit->getParentOfType<train::FuncOp>();
  Block &body = function.getBody().front();
  auto updates = llvm::to_vector(commit.getBody().getOps<train::UpdateOp>());
  auto norms = llvm::to_vector(body.getOps<train::NormOp>());

  // Gradients are packed before the first op that wants their norm.
  OpBuilder builder(norms.empty() ? commit.getOperation() : norms.front().getOperation());
  SmallVector<Value> packed;
  for (train::UpdateOp update : updates)
    packed.push_back(packGradients(builder, update));
  for (train::NormOp norm : norms) {
    train::ScalarMath math(builder, norm.getLoc());
    Value total;
    for (Value slab : packed) {
      Value rows = nn::ReduceSumOp::create(builder, norm.getLoc(), math.mul(slab, slab),
                                           ArrayRef<int64_t>{1}, /*keep=*/false);
      Value sum =
          nn::ReduceSumOp::create(builder, norm.getLoc(), rows, ArrayRef<int64_t>{0}, false);
      total = total ? math.add(total, sum) : sum;
    }
    norm.replaceAllUsesWith(math.sqrt(total));
    norm.erase();
  }

  builder.setInsertionPoint(commit);
  for (auto [update, gradients] : llvm::zip_equal(updates, packed))
    lowerUpdate(builder, update, gradients, commit.getCondition());
  for (auto write : commit.getBody().getOps<train::WriteOp>()) {
    Location loc = write.getLoc();
    Value old = train::ReadOp::create(builder, loc, write.getValue().getType(), write.getSymbol());
    train::ScalarMath math(builder, loc);
    train::WriteOp::create(builder, loc, write.getSymbol(),
                           math.where(commit.getCondition(), write.getValue(), old));
  }
  commit.erase();
}

void LowerUpdates::runOnOperation() {
  for (auto function : getOperation().getOps<train::FuncOp>())
    for (auto commit : llvm::make_early_inc_range(function.getBody().getOps<train::CommitOp>()))
      lowerCommit(commit);
}
