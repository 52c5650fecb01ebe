//===- KernelRules.cpp - What may share a kernel --------------------------===//
//
// A rows kernel has a domain [R..., C]. Every value computed in it is of the domain's shape, or has
// one element a row, as [R..., 1] or (the axis dropped) as [R...]. Inside one kernel a value of
// dropped shape must not meet one of full shape: NumPy's rule would align the last axis of R with
// C, which is another element than the row's own. Inputs from outside may broadcast in any way,
// since they can be read at any place; so may what merely widens one to another float type.
//
// A columns kernel has a domain [R..., C...]: reductions over R of values that elementwise ops
// compute on the domain.
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/KernelRules.h"
#include "passes/Fusion/LibraryForm.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

/// Tensors of this many elements are passed around for nothing: scalars and the random key.
constexpr int64_t tinyElements = 4;

enum class Level { Full, Row, RowDropped, Outside };

Level levelOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> domain) {
  if (shape == domain)
    return Level::Full;
  if (domain.empty())
    return Level::Outside;
  ArrayRef<int64_t> rows = domain.drop_back();
  if (shape == rows)
    return Level::RowDropped;
  if (shape.size() == domain.size() && shape.drop_back() == rows && shape.back() == 1)
    return Level::Row;
  return Level::Outside;
}

/// An op whose elements are read, or made from nothing, wherever a kernel wants them: no rule about
/// its shape applies.
bool isAnywhere(Operation *op, const llvm::SmallPtrSetImpl<Operation *> &members) {
  return isFree(op) || (isWidening(op) && !members.contains(op->getOperand(0).getDefiningOp()));
}

std::string describe(Operation *op) { return ("'" + op->getName().getStringRef() + "'").str(); }

std::optional<std::string> rowsViolation(ArrayRef<Operation *> ops) {
  SmallVector<int64_t> domain = kernelDomain(rowsKind, ops);
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  for (Operation *op : ops) {
    if (isAnywhere(op, members))
      continue;
    bool reduction = isReduction(op);
    if (!reduction && !isElementwise(op))
      return describe(op) + " is neither elementwise nor a reduction";
    if (reduction && !reducesLastAxis(op))
      return describe(op) + " reduces other axes than the last";
    if (reduction && iterationShape(op) != ArrayRef<int64_t>(domain))
      return describe(op) + " reduces " + shapeText(iterationShape(op)) + " in a kernel over " +
             shapeText(domain);
    if (op->getNumResults() != 1)
      return describe(op) + " has " + std::to_string(op->getNumResults()) + " results";
    Level level = levelOf(shapeOf(op->getResult(0)), domain);
    if (level == Level::Outside)
      return describe(op) + " yields " + shapeText(shapeOf(op->getResult(0))) +
             " in a kernel over " + shapeText(domain);
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || !members.contains(def) || isAnywhere(def, members))
        continue;
      Level from = levelOf(shapeOf(operand), domain);
      // With a domain of rank 1 there is one row, and its dropped value is a scalar that broadcasts
      // rightly everywhere.
      bool scalar = from == Level::RowDropped && domain.size() == 1;
      bool fits = reduction              ? from == Level::Full
                  : level == Level::Full ? from == Level::Full || from == Level::Row || scalar
                  : level == Level::Row  ? from == Level::Row || scalar
                                         : from == Level::RowDropped;
      if (!fits)
        return describe(op) + " reads " + shapeText(shapeOf(operand)) +
               " computed in the same kernel over " + shapeText(domain) + " across rows";
    }
  }
  return std::nullopt;
}

std::optional<std::string> columnsViolation(ArrayRef<Operation *> ops) {
  SmallVector<int64_t> domain = kernelDomain(columnsKind, ops);
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  size_t reduced = 0;
  for (Operation *op : ops) {
    if (isAnywhere(op, members))
      continue;
    if (isReduction(op)) {
      if (!reducesLeadingAxes(op))
        return describe(op) + " does not reduce the leading axes";
      size_t count = reducedAxes(op).size();
      if (reduced && reduced != count)
        return "reductions over " + std::to_string(reduced) + " and " + std::to_string(count) +
               " axes share a columns kernel";
      reduced = count;
    } else if (!isElementwise(op)) {
      return describe(op) + " is neither elementwise nor a reduction";
    }
    if (iterationShape(op) != ArrayRef<int64_t>(domain))
      return describe(op) + " iterates over " + shapeText(iterationShape(op)) +
             " in a kernel over " + shapeText(domain);
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && members.contains(def) && isReduction(def))
        return describe(op) + " reads a reduction of the same columns kernel";
  }
  if (!reduced)
    return std::string("no reduction in a columns kernel");
  return std::nullopt;
}

/// Where the elements of an epilogue's operand lie is known for these forms only.
std::optional<std::string> epilogueViolation(Operation *op, ArrayRef<int64_t> shape) {
  if (!isEpilogueOp(op))
    return describe(op) + " cannot be computed in a product's epilogue";
  for (Value operand : op->getOperands())
    if (!epilogueReads(shapeOf(operand), shape))
      return describe(op) + " reads " + shapeText(shapeOf(operand)) +
             " in the epilogue of a product of " + shapeText(shape);
  return std::nullopt;
}

/// Products: one contraction and elementwise ops on its domain. Others: one op, and copies that its
/// generator reads or writes through.
std::optional<std::string> singleViolation(StringRef kind, ArrayRef<Operation *> ops,
                                           bool library) {
  Operation *main = nullptr;
  for (Operation *op : ops)
    if (!isElementwise(op) && !isFree(op) && kernelKind(op) == kind) {
      if (main)
        return describe(main) + " and " + describe(op) + " share a kernel of kind " + kind.str();
      main = op;
    }
  if (!main)
    return "no op of kind " + kind.str();
  bool contraction = fusionClass(main) == FusionClass::Contraction;
  std::optional<OperandSum> beside;
  for (Operation *op : ops)
    if (auto sum = dyn_cast<nn::ReduceSumOp>(op); sum && library && !beside)
      beside = OperandSum::of(sum);
  for (Operation *op : ops) {
    if (op == main || (beside && (op == beside->sum || op == beside->cast)))
      continue;
    if (contraction) {
      if (std::optional<std::string> reason = epilogueViolation(op, shapeOf(main->getResult(0))))
        return reason;
      if (isFree(op))
        continue;
      if (!isElementwise(op))
        return describe(op) + " is not elementwise and follows a product";
      if (shapeOf(op->getResult(0)) != shapeOf(main->getResult(0)) && !isWidening(op))
        return describe(op) + " yields " + shapeText(shapeOf(op->getResult(0))) +
               " in a product of " + shapeText(shapeOf(main->getResult(0)));
      if (main->isBeforeInBlock(op))
        continue;
      // What the epilogue reads may be computed before the product, but never what the product
      // reads.
      if (llvm::is_contained(op->getUsers(), main))
        return describe(op) + " computes an operand of a product";
      continue;
    }
    if (fusionClass(op) != FusionClass::Copy || kind == copyKind)
      return describe(op) + " shares a kernel with " + describe(main);
  }
  return std::nullopt;
}

} // namespace

std::optional<FusionClass> fusion::fusionClass(Operation *op) {
  if (auto fusible = dyn_cast<FusibleOp>(op))
    return fusible.getFusionClass();
  return std::nullopt;
}

bool fusion::isElementwise(Operation *op) { return fusionClass(op) == FusionClass::Elementwise; }
bool fusion::isReduction(Operation *op) { return fusionClass(op) == FusionClass::Reduction; }
bool fusion::isView(Operation *op) { return fusionClass(op) == FusionClass::View; }

SmallVector<int64_t> fusion::reducedAxes(Operation *reduction) {
  SmallVector<int64_t> axes;
  int64_t rank = static_cast<int64_t>(shapeOf(reduction->getOperand(0)).size());
  if (auto attr = reduction->getAttrOfType<DenseI64ArrayAttr>("axes"))
    for (int64_t axis : attr.asArrayRef())
      axes.push_back(axis < 0 ? axis + rank : axis);
  llvm::sort(axes);
  return axes;
}

bool fusion::reducesLastAxis(Operation *op) {
  if (!isReduction(op))
    return false;
  SmallVector<int64_t> axes = reducedAxes(op);
  return axes.size() == 1 && axes[0] == static_cast<int64_t>(iterationShape(op).size()) - 1;
}

bool fusion::reducesLeadingAxes(Operation *op) {
  if (!isReduction(op))
    return false;
  SmallVector<int64_t> axes = reducedAxes(op);
  if (axes.empty() || axes.size() >= iterationShape(op).size())
    return false;
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis != static_cast<int64_t>(index))
      return false;
  return true;
}

bool fusion::diesHere(Value value, Operation *reader) {
  if (!value.hasOneUse() || *value.user_begin() != reader)
    return false;
  Operation *def = value.getDefiningOp();
  if (!def)
    return false;
  if (isView(def))
    return diesHere(def->getOperand(0), def);
  return isa<exec::FusionOp>(def);
}

ArrayRef<int64_t> fusion::shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

int64_t fusion::elementsOf(Value value) {
  int64_t count = 1;
  for (int64_t size : shapeOf(value))
    count *= size;
  return count;
}

int64_t fusion::bytesOf(Value value) {
  unsigned bits = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
  return elementsOf(value) * ((bits + 7) / 8);
}

ArrayRef<int64_t> fusion::iterationShape(Operation *op) {
  return shapeOf(isReduction(op) ? op->getOperand(0) : op->getResult(0));
}

bool fusion::isFree(Operation *op) {
  if (!isElementwise(op) || op->getNumResults() != 1)
    return false;
  if (op->getNumOperands() == 0)
    return true;
  // Arithmetic on scalars is work worth doing once, next to its consumers it would only be repeated
  // for every task.
  if (elementsOf(op->getResult(0)) <= tinyElements)
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    Operation *def = operand.getDefiningOp();
    return elementsOf(operand) <= tinyElements || (def && isFree(def));
  });
}

bool fusion::isWidening(Operation *op) {
  auto cast = dyn_cast<nn::CastOp>(op);
  if (!cast)
    return false;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(cast->getOperand(0).getType())),
       to = dyn_cast<FloatType>(getElementTypeOrSelf(cast->getResult(0).getType()));
  return from && to && from.getWidth() < to.getWidth();
}

bool fusion::isEpilogueOp(Operation *op) {
  if (!isElementwise(op))
    return false;
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return constant.getValue().isSplat();
  return isa<ElementwiseOp, nn::BroadcastOp>(op);
}

bool fusion::epilogueReads(ArrayRef<int64_t> operand, ArrayRef<int64_t> shape) {
  if (operand.size() > shape.size())
    return false;
  SmallVector<int64_t> padded(shape.size() - operand.size(), 1);
  llvm::append_range(padded, operand);
  for (auto [size, full] : llvm::zip_equal(padded, shape))
    if (size != full && size != 1)
      return false;
  // The row's index must be one division and one remainder away: broadcast axes, then real ones,
  // then broadcast ones.
  unsigned changes = 0;
  bool counts = false;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) {
    if (shape[axis] == 1)
      continue;
    bool here = padded[axis] != 1;
    changes += here != counts;
    counts = here;
  }
  return changes <= 2;
}

StringRef fusion::kernelKind(Operation *op) {
  std::optional<FusionClass> cls = fusionClass(op);
  if (!cls)
    return "";
  switch (*cls) {
  case FusionClass::Elementwise:
    return rowsKind;
  case FusionClass::Reduction:
    return reducesLastAxis(op) ? StringRef(rowsKind) : StringRef(columnsKind);
  case FusionClass::Copy:
    return copyKind;
  case FusionClass::View:
    return "";
  case FusionClass::Contraction:
  case FusionClass::Opaque:
    return cast<FusibleOp>(op).getKernelKind();
  }
  return "";
}

bool fusion::isKnownKind(StringRef kind) {
  return llvm::StringSwitch<bool>(kind)
      .Cases({"rows", "columns", "copy", "gemm", "conv", "attention", "attention_grad", "gather",
              "scatter", "pool"},
             true)
      .Default(false);
}

std::optional<std::string> fusion::kernelViolation(StringRef kind, ArrayRef<Operation *> ops,
                                                   bool library) {
  if (!isKnownKind(kind))
    return "no generator makes kernels of kind '" + kind.str() + "'";
  if (kind == rowsKind)
    return rowsViolation(ops);
  if (kind == columnsKind)
    return columnsViolation(ops);
  return singleViolation(kind, ops, library);
}

SmallVector<int64_t> fusion::kernelDomain(StringRef kind, ArrayRef<Operation *> ops) {
  // A reduction's operand is the domain; without one, the largest result is.
  Operation *best = nullptr;
  for (Operation *op : ops) {
    if (isReduction(op))
      return llvm::to_vector(iterationShape(op));
    if (op->getNumResults() != 1 || (isFree(op) && ops.size() > 1 && best))
      continue;
    Value value = op->getResult(0);
    auto size = [](Value v) { return std::pair(elementsOf(v), shapeOf(v).size()); };
    if (!best || (isFree(best) && !isFree(op)) || size(best->getResult(0)) < size(value))
      best = op;
  }
  return best ? llvm::to_vector(shapeOf(best->getResult(0))) : SmallVector<int64_t>{};
}

std::string fusion::shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

void fusion::forEachProgram(ModuleOp module, llvm::function_ref<void(FunctionOpInterface)> visit) {
  for (auto function : llvm::make_early_inc_range(module.getOps<FunctionOpInterface>())) {
    if (isa<exec::KernelOp, nn::ModelOp, nn::ModuleOp>(function.getOperation()) ||
        function.isExternal())
      continue;
    if (llvm::hasSingleElement(function.getFunctionBody()))
      visit(function);
  }
}
