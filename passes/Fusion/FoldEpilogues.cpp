//===- FoldEpilogues.cpp - Elementwise ops join the product before them ---===//
//
// A product's result is in registers once; whatever is done to it there costs no memory traffic.
// For each product's fusion and each rows fusion that reads its results, ops of the latter move
// over, in program order, if
//   - they are elementwise on the product's domain, and their other operands are inputs that do not
//   wait for the product, or come from
//     elementwise ops that nothing else uses and that move along (the derivative of an activation
//     at its saved input);
//   - the product then writes no more bytes than before, or writes a tensor that the rows fusion
//   would have written. A saved
//     pre-activation thus becomes a result of the product, while a value that merely feeds two row
//     statistics stays where it is, and a narrow result is widened by those who read it.
//
// Inputs that are computed between the product and its consumer are moved in front of the product;
// they do not depend on it. An op that reads a reduction ends the chain, since a tile does not see
// whole rows.
//
// Code for CUDA leaves matrix products to a library, which has few epilogues (LibraryForm.h): there
// only ops that make one of these move, and all else stays in kernels of rows. Convolutions are
// generated on every target.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Fusion/LibraryEpilogues.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace descent {
#define GEN_PASS_DEF_FOLDEPILOGUES
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

using OpSet = llvm::SmallSetVector<Operation *, 8>;

Operation *productOf(exec::FusionOp fusion) {
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (fusionClass(&op) == FusionClass::Contraction)
      return &op;
  return nullptr;
}

exec::YieldOp yieldOf(exec::FusionOp fusion) {
  return cast<exec::YieldOp>(fusion.getBody().front().getTerminator());
}

/// What the value `inside` a fusion is outside of it: an input; null for what the fusion computes.
Value outerInput(exec::FusionOp fusion, Value inside) {
  auto argument = dyn_cast<BlockArgument>(inside);
  return argument && argument.getOwner() == &fusion.getBody().front()
             ? fusion.getInputs()[argument.getArgNumber()]
             : Value();
}

/// A fusion under construction: ops are cloned in, inputs appear as they are read.
class NewFusion {
public:
  NewFusion(OpBuilder &builder) : builder(builder), block(std::make_unique<Block>()) {}

  Value input(Value outer) {
    if (Value known = arguments.lookup(outer))
      return known;
    inputs.push_back(outer);
    Value argument = block->addArgument(outer.getType(), outer.getLoc());
    arguments[outer] = argument;
    return argument;
  }
  /// Clones `op` of `from`. Its operands are clones made before, or inputs of `from`, of which
  /// `substitute` may give a value in here.
  void clone(exec::FusionOp from, Operation *op, llvm::function_ref<Value(Value)> substitute) {
    for (Value operand : op->getOperands()) {
      if (values.contains(operand))
        continue;
      if (Value outer = outerInput(from, operand)) {
        Value local = substitute(outer);
        values.map(operand, local ? local : input(outer));
      }
    }
    // The block has no parent yet to take the context from.
    OpBuilder inside(op->getContext());
    inside.setInsertionPointToEnd(block.get());
    inside.clone(*op, values);
  }
  Value local(Value original) { return values.lookupOrNull(original); }
  void map(Value original, Value local) { values.map(original, local); }
  /// One input for each input of `product`, in order, though two may be the same tensor. What the
  /// product itself reads keeps its inputs to itself: the generator packs those, and an epilogue
  /// that reads the same tensor reads it by another index.
  void startFrom(exec::FusionOp product, Operation *main) {
    for (auto [outer, argument] :
         llvm::zip_equal(product.getInputs(), product.getBody().getArguments())) {
      inputs.push_back(outer);
      Value local = block->addArgument(outer.getType(), outer.getLoc());
      values.map(argument, local);
      if (!llvm::is_contained(main->getOperands(), argument))
        arguments[outer] = local;
    }
  }

  exec::FusionOp finish(Location loc, StringRef kind, ArrayRef<Value> outputs) {
    auto fusion =
        exec::FusionOp::create(builder, loc, TypeRange(ValueRange(outputs)), kind, inputs);
    fusion.getBody().push_back(block.release());
    OpBuilder inside = OpBuilder::atBlockEnd(&fusion.getBody().front());
    exec::YieldOp::create(inside, loc, outputs);
    return fusion;
  }

private:
  OpBuilder &builder;
  std::unique_ptr<Block> block;
  SmallVector<Value> inputs;
  DenseMap<Value, Value> arguments;
  IRMapping values;
};

struct FoldEpiloguesPass : descent::impl::FoldEpiloguesBase<FoldEpiloguesPass> {
  using FoldEpiloguesBase::FoldEpiloguesBase;

  void runOnOperation() override {
    if (target != "cpu" && target != "cuda") {
      getOperation().emitError("fold-epilogues knows no target '")
          << target << "'; known are cpu and cuda";
      return signalPassFailure();
    }
    bool library = target == "cuda";
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      Block &block = function.getFunctionBody().front();
      if (library) {
        markLibraryProducts(block);
        derivativesSunk += sinkDerivatives(block);
      }
      SmallVector<exec::FusionOp> products;
      for (auto fusion : block.getOps<exec::FusionOp>())
        if (productOf(fusion))
          products.push_back(fusion);
      for (exec::FusionOp product : products)
        while (exec::FusionOp larger = foldOne(product))
          product = larger;
    });
  }

private:
  /// Moves what it can from one rows fusion into `product` and returns the new fusion in its place;
  /// null if there is nothing to move.
  exec::FusionOp foldOne(exec::FusionOp product);
  OpSet choose(exec::FusionOp product, exec::FusionOp rows,
               const llvm::SmallPtrSetImpl<Operation *> &dependents);
  bool collect(exec::FusionOp product, exec::FusionOp rows, Operation *op,
               const llvm::SmallPtrSetImpl<Operation *> &dependents, const OpSet &pulled,
               OpSet &cone, bool &fromProduct);
  exec::FusionOp move(exec::FusionOp product, exec::FusionOp rows, const OpSet &pulled);
};

/// Ops of the block that wait for `op`.
void dependentsOf(Operation *op, llvm::SmallPtrSetImpl<Operation *> &dependents) {
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    bool waits = false;
    next->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && (def == op || dependents.contains(def)))
          waits = true;
    });
    if (waits)
      dependents.insert(next);
  }
}

/// Moves what `values` need from behind `anchor` to before it, where that is possible without
/// moving side effects.
bool hoistBefore(ValueRange values, Operation *anchor) {
  OpSet slice;
  SmallVector<Value> work(values);
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != anchor->getBlock() || def->isBeforeInBlock(anchor) ||
        !slice.insert(def))
      continue;
    if (def == anchor || !isMemoryEffectFree(def))
      return false;
    def->walk([&](Operation *nested) { llvm::append_range(work, nested->getOperands()); });
  }
  SmallVector<Operation *> ordered(slice.begin(), slice.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ordered)
    op->moveBefore(anchor);
  return true;
}

/// How many bytes the product writes once `pulled` has moved.
int64_t bytesWritten(exec::FusionOp product, exec::FusionOp rows, const OpSet &pulled) {
  int64_t bytes = 0;
  for (Value result : product.getOutputs())
    if (llvm::any_of(result.getUses(), [&](OpOperand &use) {
          if (use.getOwner() != rows)
            return true;
          Value argument = rows.getBody().getArgument(use.getOperandNumber());
          return llvm::any_of(argument.getUsers(),
                              [&](Operation *user) { return !pulled.contains(user); });
        }))
      bytes += bytesOf(result);
  for (Operation *op : pulled)
    if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !pulled.contains(user); }))
      bytes += bytesOf(op->getResult(0));
  return bytes;
}

} // namespace

/// Whether `op` can move, together with the ops it needs that are not yet pulled: those are added
/// to `cone`.
bool FoldEpiloguesPass::collect(exec::FusionOp product, exec::FusionOp rows, Operation *op,
                                const llvm::SmallPtrSetImpl<Operation *> &dependents,
                                const OpSet &pulled, OpSet &cone, bool &fromProduct) {
  ArrayRef<int64_t> shape = shapeOf(productOf(product)->getResult(0));
  if (pulled.contains(op) || cone.contains(op))
    return true;
  if (isReduction(op)) {
    ++declinedReduction;
    return false;
  }
  // A widened input is read like the input itself, in whatever shape broadcasts.
  bool anyShape = isFree(op) || (isWidening(op) && outerInput(rows, op->getOperand(0)));
  if (!isEpilogueOp(op) || (!anyShape && shapeOf(op->getResult(0)) != shape) ||
      !epilogueReads(shapeOf(op->getResult(0)), shape))
    return false;
  for (Value operand : op->getOperands()) {
    if (!epilogueReads(shapeOf(operand), shape))
      return false;
    if (Value outer = outerInput(rows, operand)) {
      Operation *def = outer.getDefiningOp();
      if (def == product)
        fromProduct = true;
      else if (def && dependents.contains(def)) {
        ++declinedOrder;
        return false;
      }
      continue;
    }
    Operation *def = operand.getDefiningOp();
    if (pulled.contains(def)) {
      fromProduct = true;
      continue;
    }
    if (!collect(product, rows, def, dependents, pulled, cone, fromProduct))
      return false;
  }
  cone.insert(op); // operands first
  return true;
}

OpSet FoldEpiloguesPass::choose(exec::FusionOp product, exec::FusionOp rows,
                                const llvm::SmallPtrSetImpl<Operation *> &dependents) {
  OpSet pulled;
  size_t present = llvm::range_size(product.getBody().front().without_terminator());
  for (Operation &op : rows.getBody().front().without_terminator()) {
    if (isFree(&op) || !isElementwise(&op))
      continue;
    OpSet cone;
    bool fromProduct = false;
    if (!collect(product, rows, &op, dependents, pulled, cone, fromProduct) || !fromProduct ||
        cone.empty())
      continue;
    OpSet larger(pulled);
    larger.insert(cone.begin(), cone.end());
    // What moves along must not be needed by what stays: it would be computed twice. Free ops may.
    bool shared = llvm::any_of(cone, [&](Operation *member) {
      return member != &op && !isFree(member) &&
             llvm::any_of(member->getUsers(), [&](Operation *user) {
               return !larger.contains(user) && !isa<exec::YieldOp>(user);
             });
    });
    if (shared)
      continue;
    if (present + larger.size() > maxOps) {
      ++declinedSize;
      continue;
    }
    OpSet before(pulled), after(larger);
    auto dropFree = [](OpSet &set) {
      set.remove_if([](Operation *member) { return isFree(member); });
    };
    dropFree(before);
    dropFree(after);
    int64_t yielded = 0;
    for (Operation *member : after)
      if (!before.contains(member) &&
          llvm::any_of(member->getUsers(), llvm::IsaPred<exec::YieldOp>))
        yielded += bytesOf(member->getResult(0));
    if (bytesWritten(product, rows, after) > bytesWritten(product, rows, before) + yielded) {
      ++declinedTraffic;
      continue;
    }
    pulled = std::move(larger);
  }
  return pulled;
}

exec::FusionOp FoldEpiloguesPass::foldOne(exec::FusionOp product) {
  llvm::SmallPtrSet<Operation *, 32> dependents;
  dependentsOf(product, dependents);
  llvm::SmallSetVector<Operation *, 4> consumers;
  for (Operation *user : product->getUsers())
    if (auto rows = dyn_cast<exec::FusionOp>(user);
        rows && rows.getKind() == rowsKind && rows->getBlock() == product->getBlock())
      consumers.insert(user);
  // The list of uses has no meaningful order.
  SmallVector<Operation *> ordered(consumers.begin(), consumers.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *consumer : ordered) {
    auto rows = cast<exec::FusionOp>(consumer);
    OpSet pulled = target == "cuda" && isLibraryProduct(product)
                       ? nextLibraryOps(product, rows)
                       : choose(product, rows, dependents);
    if (pulled.empty())
      continue;
    SmallVector<Value> reads;
    for (Operation *op : pulled)
      for (Value operand : op->getOperands())
        if (Value outer = outerInput(rows, operand); outer && outer.getDefiningOp() != product)
          reads.push_back(outer);
    if (!hoistBefore(reads, product)) {
      ++declinedOrder;
      continue;
    }
    return move(product, rows, pulled);
  }
  return nullptr;
}

exec::FusionOp FoldEpiloguesPass::move(exec::FusionOp product, exec::FusionOp rows,
                                       const OpSet &pulled) {
  OpBuilder builder(product);
  NewFusion larger(builder), rest(builder);
  auto none = [](Value) { return Value(); };
  larger.startFrom(product, productOf(product));
  for (Operation &op : product.getBody().front().without_terminator())
    larger.clone(product, &op, none);
  auto ownResult = [&](Value outer) -> Value {
    auto result = dyn_cast<OpResult>(outer);
    if (!result || result.getOwner() != product)
      return Value();
    return larger.local(yieldOf(product).getValues()[result.getResultNumber()]);
  };
  for (Operation &op : rows.getBody().front().without_terminator())
    if (pulled.contains(&op)) {
      larger.clone(rows, &op, ownResult);
      if (!isFree(&op))
        ++opsFolded;
    }

  // What stays: ops that are not pulled, with the free ones they use. Outputs of the rows fusion
  // that were pulled are now the product's.
  OpSet staying;
  std::function<void(Value)> stay = [&](Value value) {
    Operation *def = value.getDefiningOp();
    if (!def || def->getBlock() != &rows.getBody().front() ||
        (pulled.contains(def) && !isFree(def)) || !staying.insert(def))
      return;
    llvm::for_each(def->getOperands(), stay);
  };
  SmallVector<unsigned> keptResults;
  for (auto [index, value] : llvm::enumerate(yieldOf(rows).getValues()))
    if (Operation *def = value.getDefiningOp(); !def || !pulled.contains(def) || isFree(def)) {
      keptResults.push_back(index);
      stay(value);
    }

  // Results of the product: old ones that are still read, and pulled values that are read outside.
  SmallVector<Value> outputs;
  SmallVector<std::pair<OpResult, unsigned>> replacements; // (old result, output)
  DenseMap<Value, unsigned> outputOf;                      // value in the rows fusion -> output
  for (auto [index, result] : llvm::enumerate(product->getResults())) {
    bool read = llvm::any_of(result.getUses(), [&](OpOperand &use) {
      if (use.getOwner() != rows)
        return true;
      Value argument = rows.getBody().getArgument(use.getOperandNumber());
      return llvm::any_of(argument.getUsers(), [&](Operation *user) {
        return staying.contains(user) || isa<exec::YieldOp>(user);
      });
    });
    if (!read)
      continue;
    replacements.push_back({result, outputs.size()});
    outputs.push_back(larger.local(yieldOf(product).getValues()[index]));
  }
  for (Operation &op : rows.getBody().front().without_terminator()) {
    if (!pulled.contains(&op) || isFree(&op))
      continue;
    Value value = op.getResult(0);
    bool yielded = llvm::any_of(op.getUsers(), llvm::IsaPred<exec::YieldOp>);
    bool read =
        llvm::any_of(op.getUsers(), [&](Operation *user) { return staying.contains(user); });
    if (!yielded && !read)
      continue;
    outputOf[value] = outputs.size();
    if (yielded)
      for (auto [index, result] : llvm::enumerate(yieldOf(rows).getValues()))
        if (result == value)
          replacements.push_back({rows->getResult(index), outputs.size()});
    outputs.push_back(larger.local(value));
  }
  SmallVector<Location> locations{product.getLoc()};
  for (Operation *op : pulled)
    locations.push_back(op->getLoc());
  exec::FusionOp folded = larger.finish(builder.getFusedLoc(locations), product.getKind(), outputs);
  folded->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  for (auto [result, output] : replacements)
    result.replaceAllUsesWith(folded.getOutputs()[output]);

  if (keptResults.empty()) {
    ++kernelsRemoved;
  } else {
    builder.setInsertionPoint(rows);
    // Inputs in the order in which the staying ops read them, so that nothing depends on the order
    // of a map.
    for (Operation &op : rows.getBody().front().without_terminator()) {
      if (!staying.contains(&op))
        continue;
      for (Value operand : op.getOperands())
        if (auto it = outputOf.find(operand); it != outputOf.end() && !rest.local(operand))
          rest.map(operand, rest.input(folded.getOutputs()[it->second]));
      rest.clone(rows, &op, none);
    }
    SmallVector<Value> kept;
    for (unsigned index : keptResults) {
      Value value = yieldOf(rows).getValues()[index];
      Value outer = outerInput(rows, value);
      kept.push_back(outer ? rest.input(outer) : rest.local(value));
    }
    exec::FusionOp smaller = rest.finish(rows.getLoc(), rows.getKind(), kept);
    for (auto [result, index] : llvm::zip_equal(smaller.getOutputs(), keptResults))
      rows->getResult(index).replaceAllUsesWith(result);
  }
  rows.erase();
  product.erase();
  return folded;
}
