//===- LibraryForm.cpp - Epilogues that a vendor's library computes -------===//

#include "passes/Fusion/LibraryForm.h"
#include "passes/Fusion/KernelRules.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }
unsigned widthOf(Value value) { return elementOf(value).getIntOrFloatBitWidth(); }

bool isOutside(Value value, Operation *op) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == op->getBlock();
}

/// The argument that `value` is, or that it widens; the cast is then added to `along`. Null for
/// what the block computes.
Value sourceOf(Value value, Operation *op, SmallVectorImpl<Operation *> &along) {
  if (isOutside(value, op))
    return value;
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != op->getBlock() || !isWidening(def) ||
      !isOutside(def->getOperand(0), op))
    return nullptr;
  along.push_back(def);
  return def->getOperand(0);
}

/// One element for each column: the last axis in full, no other.
bool isRow(Value value, int64_t columns) {
  ArrayRef<int64_t> shape = shapeOf(value);
  return !shape.empty() && shape.back() == columns && elementsOf(value) == columns &&
         isa<FloatType>(elementOf(value));
}

bool isZero(Value value) {
  auto constant = value.getDefiningOp<nn::ConstantOp>();
  if (!constant || !constant.getValue().isSplat())
    return false;
  auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  return elements && elements.getSplatValue<APFloat>().isZero();
}

/// A chain that has nothing yet.
bool isPlain(const LibraryForm &form) {
  return form.value.getDefiningOp<nn::MatmulOp>() != nullptr;
}

} // namespace

std::optional<OperandSum> OperandSum::of(nn::ReduceSumOp sum) {
  OperandSum found;
  found.sum = sum;
  Value operand = sum.getX();
  if (auto cast = operand.getDefiningOp<nn::CastOp>()) {
    if (!isWidening(cast) || !cast->hasOneUse() || cast->getBlock() != sum->getBlock())
      return std::nullopt;
    found.cast = cast;
    operand = cast.getX();
  }
  Operation *reader = found.cast ? found.cast.getOperation() : sum.getOperation();
  if (!isOutside(operand, sum) || !elementOf(sum.getX()).isF32() ||
      !elementOf(sum.getResult()).isF32() || shapeOf(operand).size() != 2 || sum.getKeep() ||
      reducedAxes(sum) != SmallVector<int64_t>{0})
    return std::nullopt;
  std::optional<OperandSum> result;
  for (OpOperand &use : operand.getUses()) {
    if (use.getOwner() == reader)
      continue;
    auto product = dyn_cast<nn::MatmulOp>(use.getOwner());
    if (!product || result || product->getBlock() != sum->getBlock() ||
        shapeOf(product.getResult()).size() != 2)
      return std::nullopt;
    Contraction shape = product.getContraction();
    found.operand = use.getOperandNumber();
    if (found.operand == 0 ? !shape.transposeA : shape.transposeB)
      return std::nullopt;
    result = found;
  }
  return result;
}

LibraryForm LibraryForm::of(nn::MatmulOp product) {
  LibraryForm form;
  form.product = product;
  form.value = product.getResult();
  return form;
}

bool LibraryForm::canStorePreactivation() const {
  // The library wants the rows of what it stores to begin at multiples of eight elements.
  return shapeOf(value).back() % 8 == 0;
}

std::optional<LibraryForm> LibraryForm::extended(Operation *op, Value current,
                                                 SmallVectorImpl<Operation *> &along) const {
  if (op->getNumResults() != 1 || accumulated || activation != Activation::None ||
      shapeOf(op->getResult(0)) != shapeOf(value))
    return std::nullopt;
  LibraryForm form = *this;
  nn::MatmulOp product = form.product;
  form.value = op->getResult(0);
  int64_t columns = shapeOf(value).back();
  bool eight = widthOf(product.getA()) == 8;
  bool narrowed = elementOf(value) != elementOf(product.getResult());
  SmallVector<Operation *> taken;
  auto take = [&]() {
    taken.push_back(op);
    along.append(taken);
    return form;
  };
  // An activation needs operands and a result of one type: what the library does with others
  // depends on its version.
  bool activates = elementOf(product.getA()) == elementOf(product.getB()) &&
                   elementOf(product.getA()) == elementOf(value) &&
                   elementOf(op->getResult(0)) == elementOf(value);

  if (auto cast = dyn_cast<nn::CastOp>(op)) {
    // To the operands' type, or what comes of operands of eight bits.
    Type to = elementOf(cast.getResult());
    if (narrowed || !elementOf(value).isF32() || !isa<FloatType>(to) || to.isF32() ||
        widthOf(cast.getResult()) == 8 || (!eight && to != elementOf(product.getA())))
      return std::nullopt;
    return take();
  }
  if (auto relu = dyn_cast<nn::ReluOp>(op)) {
    if (!activates)
      return std::nullopt;
    form.activation = Activation::Relu;
    form.preactivation = value;
    return take();
  }
  if (auto gelu = dyn_cast<nn::GeluOp>(op)) {
    if (!activates || gelu.getForm() != nn::GeluForm::tanh)
      return std::nullopt;
    form.activation = Activation::Gelu;
    form.preactivation = value;
    return take();
  }
  if (!isa<nn::AddOp, nn::MulOp>(op) || elementOf(op->getResult(0)) != elementOf(value))
    return std::nullopt;
  if (op->getOperand(0) == op->getOperand(1))
    return std::nullopt;
  Value other = op->getOperand(op->getOperand(0) == current ? 1 : 0);

  if (isa<nn::MulOp>(op)) {
    // Of products of f8: what their operands were divided by when they were cast.
    if (eight && isPlain(*this) && isOutside(other, op) && elementsOf(other) == 1 &&
        elementOf(other).isF32()) {
      form.scale = other;
      return take();
    }
    auto derivative = other.getDefiningOp<nn::GeluGradOp>();
    if (!derivative || derivative->getBlock() != op->getBlock() || !derivative->hasOneUse() ||
        derivative.getForm() != nn::GeluForm::tanh || !isOutside(derivative.getX(), op) ||
        derivative.getX().getType() != value.getType() || !isPlain(*this) || !activates ||
        !canStorePreactivation())
      return std::nullopt;
    taken.push_back(derivative);
    form.activation = Activation::GeluGradient;
    form.saved = derivative.getX();
    return take();
  }

  if (isRow(other, columns) && elementsOf(value) != columns) {
    if (bias || narrowed)
      return std::nullopt;
    form.bias = sourceOf(other, op, taken);
    return form.bias ? std::optional(take()) : std::nullopt;
  }
  // Onto an f32 tensor, in its place.
  if (isPlain(*this) && isOutside(other, op) && other.getType() == value.getType() &&
      elementOf(value).isF32()) {
    form.accumulated = other;
    return take();
  }
  return std::nullopt;
}

std::optional<LibraryForm> fusion::matchLibraryForm(Block &body) {
  auto products = body.getOps<nn::MatmulOp>();
  if (!llvm::hasSingleElement(products))
    return std::nullopt;
  LibraryForm form = LibraryForm::of(*products.begin());
  if (!isOutside(form.product.getA(), form.product) ||
      !isOutside(form.product.getB(), form.product))
    return std::nullopt;
  llvm::SmallPtrSet<Operation *, 8> taken{form.product};
  for (auto sum : body.getOps<nn::ReduceSumOp>()) {
    std::optional<OperandSum> operandSum = OperandSum::of(sum);
    if (!operandSum || form.operandSum)
      return std::nullopt;
    form.operandSum = operandSum;
    taken.insert(sum);
    if (operandSum->cast)
      taken.insert(operandSum->cast);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *user : form.value.getUsers()) {
      SmallVector<Operation *> along;
      if (isa<exec::YieldOp>(user))
        continue;
      if (auto larger = form.extended(user, form.value, along)) {
        // Only a pre-activation may be read beside the chain, and by the results alone.
        bool alone = llvm::all_of(form.value.getUsers(), [&](Operation *reader) {
          return reader == user || (isa<exec::YieldOp>(reader) &&
                                    larger->activation == LibraryForm::Activation::Gelu &&
                                    larger->canStorePreactivation());
        });
        if (!alone)
          return std::nullopt;
        form = *larger;
        taken.insert(along.begin(), along.end());
        changed = true;
        break;
      }
    }
  }
  for (Operation &op : body.without_terminator())
    if (!taken.contains(&op))
      return std::nullopt;
  if (form.operandSum) {
    // One type for what the library stores, and nothing else behind the product.
    auto results = body.getTerminator()->getOperands();
    bool both = isPlain(form) && elementOf(form.value).isF32() && results.size() == 2 &&
                results[0] == form.value && results[1] == form.operandSum->sum.getResult();
    return both ? std::optional(form) : std::nullopt;
  }
  bool yielded = false;
  for (Value result : body.getTerminator()->getOperands()) {
    yielded |= result == form.value;
    if (result != form.value && result != form.preactivation)
      return std::nullopt;
  }
  bool twice = llvm::count(body.getTerminator()->getOperands(), form.value) > 1;
  return yielded && !twice ? std::optional(form) : std::nullopt;
}

bool fusion::isReluMask(Operation *op, Value x) {
  auto compare = dyn_cast<nn::CompareOp>(op);
  return compare && compare.getPredicate() == nn::ComparePredicate::gt && compare.getA() == x &&
         isZero(compare.getB());
}
