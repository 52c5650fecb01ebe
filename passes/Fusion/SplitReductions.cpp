//===- SplitReductions.cpp - Reductions in the forms that kernels have ----===//
//
// A rows kernel reduces the last axis, a columns kernel the leading axes. This pass brings every
// reduction into one of the two and gives long ones with few results a second level of parallelism.
//
//   - Several trailing axes: the last axis first, so that its reduction can share a kernel with
//   what computed its rows; then the rest, which
//     is smaller by that axis. Where the last axis is too short to be worth a row, the axes become
//     one by a view.
//   - Axes in the middle: moved to the front by a transpose.
//   - One long axis with few results: blocks of fixed size and a total. Elementwise producers that
//   nothing else uses move to the blocked shape
//     too; left behind, the view would keep them from sharing the kernel of the partial results.
//
// A mean of equally long parts is the mean of their means, and a maximum is that of the maxima: the
// parts are reductions of the same op. The block depends on the shape alone. Lengths without a
// divisor near the block stay whole and are counted.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct SplitReductionsPass : descent::impl::SplitReductionsBase<SplitReductionsPass> {
  using SplitReductionsBase::SplitReductionsBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (block < 2 || minLength < block)
      return emitError(UnknownLoc::get(context))
             << "split-reductions: block must be at least 2 and min-length at least block, got "
                "block="
             << int64_t(block) << " and min-length=" << int64_t(minLength);
    return success();
  }

  void runOnOperation() override {
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      SmallVector<Operation *> work;
      for (Operation &op : function.getFunctionBody().front())
        if (isReduction(&op) && llvm::all_of(op.getOperandTypes(), [](Type type) {
              auto tensor = dyn_cast<RankedTensorType>(type);
              return tensor && tensor.hasStaticShape();
            }))
          work.push_back(&op);
      while (!work.empty())
        rewrite(work.pop_back_val(), work);
    });
  }

private:
  /// Brings one reduction a step closer to its final form; reductions it makes that may need
  /// another step are added to `work`.
  void rewrite(Operation *op, SmallVectorImpl<Operation *> &work);
  std::optional<int64_t> blockFor(int64_t length) const;
};

Value reshape(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return nn::ReshapeOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(shape));
}

/// The same reduction of `x` over `axes`, without keeping them.
Operation *reduceLike(OpBuilder &builder, Operation *op, Value x, ArrayRef<int64_t> axes) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(x);
  SmallVector<int64_t> kept;
  for (auto [axis, size] : llvm::enumerate(shapeOf(x)))
    if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
      kept.push_back(size);
  state.addTypes(RankedTensorType::get(
      kept, cast<RankedTensorType>(op->getResult(0).getType()).getElementType()));
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.set("axes", builder.getDenseI64ArrayAttr(axes));
  attributes.erase("keep");
  state.addAttributes(attributes);
  return builder.create(state);
}

/// `x` seen in another shape of as many elements. Elementwise ops on the way that have no other use
/// and no broadcasting but of scalars are done in the new shape.
Value reshapeThrough(OpBuilder &builder, Value x, ArrayRef<int64_t> shape) {
  Operation *def = x.getDefiningOp();
  bool moves = def && isElementwise(def) && isa<ElementwiseOp>(def) && def->getNumOperands() != 0 &&
               x.hasOneUse() && llvm::all_of(def->getOperands(), [&](Value operand) {
                 return shapeOf(operand).empty() || shapeOf(operand) == shapeOf(x);
               });
  if (!moves)
    return reshape(builder, x.getLoc(), x, shape);
  IRMapping mapping;
  for (Value operand : def->getOperands())
    if (!mapping.contains(operand) && !shapeOf(operand).empty())
      // An operand read twice by this op has two uses, and is then a view.
      mapping.map(operand, reshapeThrough(builder, operand, shape));
  Operation *copy = builder.clone(*def, mapping);
  copy->getResult(0).setType(
      RankedTensorType::get(shape, cast<RankedTensorType>(x.getType()).getElementType()));
  return copy->getResult(0);
}

void replace(OpBuilder &builder, Operation *op, Value value) {
  SmallVector<Value> sources(op->getOperands());
  op->getResult(0).replaceAllUsesWith(
      reshape(builder, op->getLoc(), value, shapeOf(op->getResult(0))));
  op->erase();
  // What was done in another shape is dead in the old one.
  while (!sources.empty()) {
    Operation *def = sources.pop_back_val().getDefiningOp();
    if (def && def->use_empty() && isElementwise(def)) {
      llvm::append_range(sources, def->getOperands());
      def->erase();
    }
  }
}

} // namespace

std::optional<int64_t> SplitReductionsPass::blockFor(int64_t length) const {
  // The divisor nearest to the block; below an eighth of it partial results would be too many,
  // above eight times too few.
  for (int64_t distance = 1; distance <= 8; ++distance)
    for (int64_t candidate = block / distance; candidate > block / (distance + 1); --candidate)
      if (candidate > 1 && length % candidate == 0)
        return candidate;
  for (int64_t candidate = block; candidate <= block * 8 && candidate <= length / 2; ++candidate)
    if (length % candidate == 0)
      return candidate;
  return std::nullopt;
}

void SplitReductionsPass::rewrite(Operation *op, SmallVectorImpl<Operation *> &work) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  SmallVector<int64_t> shape(shapeOf(x)), axes = reducedAxes(op);
  auto rank = static_cast<int64_t>(shape.size());
  if (axes.empty())
    return;
  bool adjacent = axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  bool trailing = adjacent && axes.back() == rank - 1;
  bool leading = adjacent && axes.front() == 0 && !trailing;
  if (leading)
    return;

  if (!trailing) {
    SmallVector<int64_t> permutation(axes), moved;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!llvm::is_contained(axes, axis))
        permutation.push_back(axis);
    Value front =
        nn::TransposeOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(permutation));
    Operation *reduced =
        reduceLike(builder, op, front, llvm::to_vector(llvm::seq<int64_t>(0, axes.size())));
    ++axesMoved;
    replace(builder, op, reduced->getResult(0));
    return;
  }

  int64_t results = 1, length = 1;
  for (int64_t axis = 0; axis < rank; ++axis)
    (axis < axes.front() ? results : length) *= shape[axis];
  if (axes.size() > 1) {
    ++trailingAxesSplit;
    constexpr int64_t shortestRow = 32;
    Operation *last = nullptr;
    if (shape.back() >= shortestRow && shape.back() < length) {
      Operation *rows = reduceLike(builder, op, x, {rank - 1});
      last = reduceLike(builder, op, rows->getResult(0), ArrayRef<int64_t>(axes).drop_back());
      work.push_back(rows);
    } else {
      SmallVector<int64_t> flat(ArrayRef<int64_t>(shape).take_front(axes.front()));
      flat.push_back(length);
      last = reduceLike(builder, op, reshapeThrough(builder, x, flat), {axes.front()});
    }
    work.push_back(last);
    replace(builder, op, last->getResult(0));
    return;
  }

  constexpr int64_t enoughResults = 64; // for the threads of any machine this is for
  if (length < minLength)
    return;
  if (results >= enoughResults) {
    ++declinedManyResults;
    return;
  }
  std::optional<int64_t> size = blockFor(length);
  if (!size) {
    ++declinedNoDivisor;
    return;
  }
  SmallVector<int64_t> blocked(ArrayRef<int64_t>(shape).drop_back());
  blocked.push_back(length / *size);
  blocked.push_back(*size);
  Operation *partial = reduceLike(builder, op, reshapeThrough(builder, x, blocked), {rank});
  Operation *total = reduceLike(builder, op, partial->getResult(0), {rank - 1});
  ++reductionsSplit;
  work.push_back(total);
  replace(builder, op, total->getResult(0));
}
