//===- LibraryEpilogues.cpp - What fold-epilogues does for a library ------===//
//
// Derivatives. A forward pass computes the derivative of its activation beside the activation,
// since both read the same tensor, and keeps the derivative for the backward pass. A library keeps
// the pre-activation instead and takes the derivative in the backward product; and the mask of a
// relu is its result's sign, which is kept anyway. So
//
//     forward:   h = matmul; y = gelu h; d = gelu_grad h            -> y, d
//     backward:  s = matmul; g = mul s, d
//   becomes
//     forward:   h = matmul; y = gelu h                             -> y, h
//     backward:  s = matmul; d = gelu_grad h; g = mul s, d
//
// and for relu, compare h > 0 becomes compare y > 0 in the backward pass. No bit changes, and as
// many tensors are kept or fewer.
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/LibraryEpilogues.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/KernelRules.h"

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

exec::YieldOp yieldOf(exec::FusionOp fusion) {
  return cast<exec::YieldOp>(fusion.getBody().front().getTerminator());
}

/// Through views, the fusion's value that `value` is.
Value sourceOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

bool isRounded(Value value) {
  auto result = dyn_cast<OpResult>(sourceOf(value));
  auto fusion = result ? dyn_cast<exec::FusionOp>(result.getOwner()) : exec::FusionOp();
  return fusion &&
         yieldOf(fusion).getValues()[result.getResultNumber()].getDefiningOp<nn::RoundTf32Op>();
}

/// What is computed in a forward fusion and can be computed in the backward one from a value that
/// the forward one keeps.
struct Derivative {
  Operation *op;
  Value kept;
};

std::optional<Derivative> derivativeOf(Operation *op) {
  for (Operation *user : op->getUsers())
    if (!isa<exec::YieldOp>(user))
      return std::nullopt;
  Block *body = op->getBlock();
  if (auto gradient = dyn_cast<nn::GeluGradOp>(op)) {
    if (gradient.getForm() == nn::GeluForm::tanh)
      for (Operation *user : gradient.getX().getUsers())
        if (auto gelu = dyn_cast<nn::GeluOp>(user);
            gelu && gelu->getBlock() == body && gelu.getForm() == gradient.getForm())
          return Derivative{op, gradient.getX()};
    return std::nullopt;
  }
  if (auto compare = dyn_cast<nn::CompareOp>(op))
    for (Operation *user : compare.getA().getUsers())
      if (auto relu = dyn_cast<nn::ReluOp>(user);
          relu && relu->getBlock() == body && isReluMask(op, compare.getA()))
        return Derivative{op, relu.getResult()};
  return std::nullopt;
}

/// Whether the activation is behind a product of a library, through elementwise ops alone: only
/// there does a derivative stand in the way.
bool followsProduct(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto fusion = cast<exec::FusionOp>(argument.getOwner()->getParentOp());
    Value outer = sourceOf(fusion.getInputs()[argument.getArgNumber()]);
    auto product = outer.getDefiningOp<exec::FusionOp>();
    return product && isLibraryProduct(product);
  }
  Operation *def = value.getDefiningOp();
  return def && isElementwise(def) && llvm::any_of(def->getOperands(), followsProduct);
}

/// The fusion that yields `value` too, or the same fusion if it does; `value` is then its result
/// `index`.
exec::FusionOp yielding(exec::FusionOp fusion, Value value, unsigned &index) {
  exec::YieldOp yield = yieldOf(fusion);
  for (auto [number, yielded] : llvm::enumerate(yield.getValues()))
    if (yielded == value) {
      index = number;
      return fusion;
    }
  index = yield.getValues().size();
  SmallVector<Value> values(yield.getValues());
  values.push_back(value);
  OpBuilder builder(fusion);
  auto larger = exec::FusionOp::create(builder, fusion.getLoc(), TypeRange(ValueRange(values)),
                                       fusion.getKind(), fusion.getInputs());
  larger->setDiscardableAttrs(fusion->getDiscardableAttrDictionary());
  larger.getBody().takeBody(fusion.getBody());
  yieldOf(larger).getValuesMutable().append(value);
  fusion->replaceAllUsesWith(larger->getResults().take_front(index));
  fusion.erase();
  return larger;
}

/// The fusion without the results that nothing reads and the ops that only they need.
void dropUnused(exec::FusionOp fusion) {
  exec::YieldOp yield = yieldOf(fusion);
  SmallVector<Value> kept, results;
  for (auto [result, value] : llvm::zip_equal(fusion.getOutputs(), yield.getValues()))
    if (!result.use_empty()) {
      kept.push_back(value);
      results.push_back(result);
    }
  OpBuilder builder(fusion);
  auto smaller = exec::FusionOp::create(builder, fusion.getLoc(), TypeRange(ValueRange(kept)),
                                        fusion.getKind(), fusion.getInputs());
  smaller->setDiscardableAttrs(fusion->getDiscardableAttrDictionary());
  smaller.getBody().takeBody(fusion.getBody());
  yieldOf(smaller).getValuesMutable().assign(kept);
  for (auto [result, output] : llvm::zip_equal(results, smaller.getOutputs()))
    result.replaceAllUsesWith(output);
  Block &body = smaller.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      smaller.getInputsMutable().erase(i);
    }
  fusion.erase();
}

/// The name of `outer` inside the fusion: an input, a new one if need be.
Value inputOf(exec::FusionOp fusion, Value outer) {
  Block &body = fusion.getBody().front();
  for (auto [input, argument] : llvm::zip_equal(fusion.getInputs(), body.getArguments()))
    if (input == outer)
      return argument;
  fusion.getInputsMutable().append(outer);
  return body.addArgument(outer.getType(), outer.getLoc());
}

/// Computes `derivative`, whose result `read` is, in the fusion `reader` from `kept`.
void computeIn(exec::FusionOp reader, Value read, Operation *derivative, Value inside, Value kept) {
  Block &body = reader.getBody().front();
  for (unsigned i = body.getNumArguments(); i-- > 0;) {
    if (reader.getInputs()[i] != read)
      continue;
    IRMapping mapping;
    mapping.map(inside, inputOf(reader, kept));
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    // The zero that a mask compares with.
    for (Value operand : derivative->getOperands())
      if (operand != inside && !mapping.contains(operand))
        mapping.map(operand, builder.clone(*operand.getDefiningOp())->getResult(0));
    Operation *copy = builder.clone(*derivative, mapping);
    body.getArgument(i).replaceAllUsesWith(copy->getResult(0));
    body.eraseArgument(i);
    reader.getInputsMutable().erase(i);
  }
}

} // namespace

bool fusion::isLibraryProduct(exec::FusionOp fusion) {
  return llvm::any_of(fusion.getBody().front(), [](Operation &op) {
    return isa<nn::MatmulOp>(op) && !op.hasAttr(tileAttrName);
  });
}

void fusion::markLibraryProducts(Block &block) {
  MLIRContext *context = block.getParentOp()->getContext();
  for (auto fusion : block.getOps<exec::FusionOp>())
    for (Operation &product : fusion.getBody().front()) {
      if (fusionClass(&product) != FusionClass::Contraction)
        continue;
      // Convolutions have code of our own, which knows the same two ways to multiply.
      if (isLibraryProduct(fusion))
        fusion->setAttr(libraryAttrName, UnitAttr::get(context));
      bool rounded = llvm::all_of(product.getOperands(), [&](Value operand) {
        auto argument = dyn_cast<BlockArgument>(operand);
        return argument && isRounded(fusion.getInputs()[argument.getArgNumber()]);
      });
      if (rounded)
        fusion->setAttr(computeAttrName, StringAttr::get(context, "tf32"));
    }
}

unsigned fusion::sinkDerivatives(Block &block) {
  unsigned moved = 0;
  SmallVector<exec::FusionOp> fusions;
  for (auto fusion : block.getOps<exec::FusionOp>())
    if (fusion.getKind() == rowsKind)
      fusions.push_back(fusion);
  for (exec::FusionOp fusion : fusions) {
    SmallVector<Derivative> derivatives;
    for (Operation &op : fusion.getBody().front().without_terminator())
      if (auto derivative = derivativeOf(&op); derivative && followsProduct(op.getOperand(0)))
        derivatives.push_back(*derivative);
    bool changed = false;
    for (auto [op, kept] : derivatives) {
      // All that read it must be able to compute it.
      SmallVector<Operation *> readers;
      Value outside;
      unsigned count = 0;
      for (auto [result, value] : llvm::zip_equal(fusion.getOutputs(), yieldOf(fusion).getValues()))
        if (value == op->getResult(0)) {
          outside = result;
          ++count;
        }
      if (count != 1)
        continue;
      bool able = llvm::all_of(outside.getUsers(), [&](Operation *user) {
        auto reader = dyn_cast<exec::FusionOp>(user);
        if (reader && !llvm::is_contained(readers, user))
          readers.push_back(user);
        return reader && (reader.getKind() == rowsKind || reader.getKind() == columnsKind);
      });
      if (!able || readers.empty())
        continue;
      unsigned derivativeIndex = cast<OpResult>(outside).getResultNumber(), index;
      Value from;
      if (auto argument = dyn_cast<BlockArgument>(kept)) {
        from = fusion.getInputs()[argument.getArgNumber()];
      } else {
        fusion = yielding(fusion, kept, index);
        from = fusion.getOutputs()[index];
        outside = fusion.getOutputs()[derivativeIndex];
      }
      llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      // The operand of the derivative that the kept value takes the place of: of a mask, the value
      // that the relu is applied to.
      Value inside = op->getOperand(0);
      for (Operation *reader : readers)
        computeIn(cast<exec::FusionOp>(reader), outside, op, inside, from);
      ++moved;
      changed = true;
    }
    if (changed)
      dropUnused(fusion);
  }
  return moved;
}

llvm::SmallSetVector<Operation *, 8> fusion::nextLibraryOps(exec::FusionOp product,
                                                            exec::FusionOp rows) {
  llvm::SmallSetVector<Operation *, 8> next;
  std::optional<LibraryForm> form = matchLibraryForm(product.getBody().front());
  if (!form)
    return next;
  Value end;
  for (auto [result, value] : llvm::zip_equal(product.getOutputs(), yieldOf(product).getValues()))
    if (value == form->value)
      end = result;
  Value current;
  for (auto [input, argument] : llvm::zip_equal(rows.getInputs(), rows.getBody().getArguments()))
    if (input == end) {
      if (current)
        return next; // read under two names
      current = argument;
    }
  if (!current)
    return next;
  bool readHereOnly = end.hasOneUse();
  for (Operation *user : current.getUsers()) {
    SmallVector<Operation *> along;
    std::optional<LibraryForm> larger = form->extended(user, current, along);
    if (!larger)
      continue;
    bool alone = readHereOnly && current.hasOneUse();
    // What a gelu is applied to may be read by others too: it is stored beside the result.
    if (!alone &&
        !(larger->activation == LibraryForm::Activation::Gelu && form->canStorePreactivation()))
      continue;
    // Adding onto a tensor is possible where that has no other use and is nobody else's.
    if (larger->accumulated) {
      auto argument = cast<BlockArgument>(larger->accumulated);
      if (!argument.hasOneUse() || !diesHere(rows.getInputs()[argument.getArgNumber()], rows))
        continue;
    }
    // What moves along must not be needed by what stays.
    bool shared = llvm::any_of(along, [&](Operation *op) {
      return op != user && !isFree(op) && !isWidening(op) && !op->hasOneUse();
    });
    if (shared)
      continue;
    next.insert(along.begin(), along.end());
    return next;
  }
  return next;
}
