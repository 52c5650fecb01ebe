//===- PrecisionChoice.cpp - In which type each op runs -------------------===//
//
// One walk in program order: an op's choice needs those of its operands. Sources: the op lists of
// torch.autocast (the classes, in NNClasses.cpp) and Micikevicius et al., "Mixed Precision
// Training", ICLR 2018 (f32 sums, f32 reductions).
//
//===----------------------------------------------------------------------===//

#include "passes/Precision/PrecisionChoice.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace descent {

namespace {

class Chooser {
public:
  explicit Chooser(nn::ModelOp model) : model(model) {}
  FailureOr<SmallVector<PrecisionChoice>> run();

private:
  LogicalResult readAttributes();
  PrecisionChoice choose(Operation &op);
  PrecisionChoice byClass(PrecisionOp op);
  PrecisionChoice byOperands(Operation &op);
  std::optional<unsigned> findOverride(Operation &op);
  bool addsBias(Operation *op);
  bool goesIntoBias(Operation *op);

  /// The element type a value will have; null for other than floats.
  Type typeOf(Value value) {
    if (Type chosen = types.lookup(value))
      return chosen;
    Type element = getElementTypeOrSelf(value);
    return isa<FloatType>(element) ? element : Type();
  }
  PrecisionChoice all(Operation &op, Type type, std::string rule) {
    return {&op, type, type, std::move(rule)};
  }

  nn::ModelOp model;
  Type compute, f32;
  SmallVector<train::OverrideAttr> overrides;
  SmallVector<bool> matched;
  DenseMap<Value, Type> types;
};

} // namespace

static std::string kindOf(Operation &op) { return op.getName().stripDialect().str(); }

LogicalResult Chooser::readAttributes() {
  auto module = model->getParentOfType<ModuleOp>();
  f32 = Float32Type::get(model.getContext());
  compute = f32;
  if (auto type = module->getAttrOfType<TypeAttr>("train.compute"))
    compute = type.getValue();
  if (!compute.isF32() && !compute.isBF16() && !compute.isF16())
    return module.emitError() << "train.compute is " << compute << "; it must be f32, bf16 or f16";
  if (auto array = module->getAttrOfType<ArrayAttr>("train.overrides"))
    for (Attribute attribute : array) {
      auto entry = dyn_cast<train::OverrideAttr>(attribute);
      if (!entry)
        return module.emitError() << "train.overrides holds " << attribute
                                  << "; it must hold #train.override attributes";
      overrides.push_back(entry);
    }
  matched.assign(overrides.size(), false);
  return success();
}

/// The instance that inline-modules took the op from, "h.0.attn"; empty at the top of the model.
static StringRef instanceOf(Operation &op) {
  auto name = dyn_cast<NameLoc>(op.getLoc());
  return name ? name.getName().getValue() : StringRef();
}

static bool isNamed(Operation &op, StringRef pattern) {
  // With its kind behind the path, an op right in an instance is as much in "h.0.*" as those in the
  // instances inside.
  StringRef instance = instanceOf(op);
  std::string path = instance.empty() ? kindOf(op) : (instance + "." + kindOf(op)).str();
  if (pattern.empty() || train::matchesPattern(instance, pattern) ||
      train::matchesPattern(path, pattern))
    return true;
  return llvm::any_of(op.getOperands(), [&](Value operand) {
    auto parameter = operand.getDefiningOp<nn::ParameterOp>();
    return parameter && train::matchesPattern(parameter.getName(), pattern);
  });
}

/// As the recipe writes it; its number there is another where an override has several patterns.
static std::string describe(train::OverrideAttr entry) {
  std::string text = "override";
  if (!entry.getOp().empty())
    text += " of " + entry.getOp().str();
  if (!entry.getMatch().empty())
    text += " in " + entry.getMatch().str();
  return text;
}

bool canOverride(Operation &op) {
  return isa<PrecisionOp>(op) && !isa<nn::ConstantOp, nn::CastOp>(op) && op.getNumOperands() != 0;
}

bool matchesOverride(Operation &op, train::OverrideAttr entry) {
  return canOverride(op) && (entry.getOp().empty() || entry.getOp() == kindOf(op)) &&
         isNamed(op, entry.getMatch());
}

std::optional<unsigned> Chooser::findOverride(Operation &op) {
  std::optional<unsigned> last;
  for (auto [index, entry] : llvm::enumerate(overrides)) {
    if (!matchesOverride(op, entry))
      continue;
    matched[index] = true;
    last = index;
  }
  return last;
}

/// Whether `op` adds a parameter of rank 1 to the result of a product that nothing else reads.
/// Only an addition is a bias, so this rule names its op.
bool Chooser::addsBias(Operation *op) {
  if (!isa<nn::AddOp>(op))
    return false;
  for (auto [product, bias] : {std::pair(op->getOperand(0), op->getOperand(1)),
                               std::pair(op->getOperand(1), op->getOperand(0))}) {
    auto parameter = bias.getDefiningOp<nn::ParameterOp>();
    auto accumulating = product.getDefiningOp<AccumulatingOp>();
    auto precision = product.getDefiningOp<PrecisionOp>();
    if (parameter && cast<RankedTensorType>(bias.getType()).getRank() == 1 && accumulating &&
        precision && precision.getPrecisionClass() == PrecisionClass::Narrow &&
        product.hasOneUse() && !accumulating.getResultTypeAttr())
      return true;
  }
  return false;
}

bool Chooser::goesIntoBias(Operation *op) {
  return op->getNumResults() == 1 && op->getResult(0).hasOneUse() &&
         addsBias(*op->getResult(0).user_begin()) && !findOverride(**op->getResult(0).user_begin());
}

static bool fits(Value constant, Type type) {
  DenseElementsAttr elements;
  if (!matchPattern(constant, m_Constant(&elements)) || !isa<FloatType>(elements.getElementType()))
    return true;
  APFloat value = elements.getSplatValue<APFloat>();
  if (!value.isFinite())
    return true; // infinite on purpose
  bool lost;
  value.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  // Nor may it vanish, or lose most of its bits below the smallest normal number: an epsilon.
  return value.isFinite() && (!lost || value.isNormal());
}

static bool isSplat(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

PrecisionChoice Chooser::byOperands(Operation &op) {
  Type widest;
  SmallVector<Value> constants;
  unsigned floats = 0;
  for (Value operand : op.getOperands()) {
    Type type = typeOf(operand);
    if (!type)
      continue;
    ++floats;
    if (isSplat(operand)) {
      constants.push_back(operand);
      continue;
    }
    // bf16 and f16 hold each other's values only by way of f32.
    widest = !widest || widest == type ? type : f32;
  }
  if (!widest) // nothing but constants
    for (Value constant : constants)
      widest = !widest || widest == typeOf(constant) ? typeOf(constant) : f32;
  if (!widest)
    return {&op, Type(), f32, "no float operand"};
  for (Value constant : constants)
    if (!fits(constant, widest))
      return all(op, f32, "a constant does not fit the narrow type");
  return all(op, widest, floats == 1 ? "as its input" : "widest operand");
}

PrecisionChoice Chooser::byClass(PrecisionOp precision) {
  Operation &op = *precision.getOperation();
  switch (precision.getPrecisionClass()) {
  case PrecisionClass::Narrow:
    if (compute != f32 && goesIntoBias(&op))
      return {&op, compute, f32, "narrow (" + kindOf(op) + "), its sum meets a bias in f32"};
    return all(op, compute, "narrow (" + kindOf(op) + ")");
  case PrecisionClass::Wide:
    return all(op, f32, "wide (" + kindOf(op) + ")");
  case PrecisionClass::WidestOperand:
    if (compute != f32 && addsBias(&op))
      for (Value operand : op.getOperands())
        if (auto product = operand.getDefiningOp<AccumulatingOp>();
            product && typeOf(operand) == f32 && !findOverride(*product.getOperation()))
          return {&op, f32, compute, "bias of a product: added in f32, rounded once"};
    return byOperands(op);
  case PrecisionClass::FollowsInput:
    return byOperands(op);
  }
  llvm_unreachable("covered switch");
}

PrecisionChoice Chooser::choose(Operation &op) {
  auto precision = dyn_cast<PrecisionOp>(op);
  if (isa<nn::LossOp>(op))
    return {&op, f32, Type(), "predictions are f32"};
  if (!precision || isa<nn::ConstantOp>(op) || op.getNumOperands() == 0)
    return {&op, Type(), op.getNumResults() ? typeOf(op.getResult(0)) : Type(), "as written"};
  if (isa<nn::CastOp>(op))
    return {&op, Type(), typeOf(op.getResult(0)), "a cast of the model's own"};
  if (std::optional<unsigned> index = findOverride(op)) {
    PrecisionChoice choice = all(op, overrides[*index].getType(), describe(overrides[*index]));
    choice.overridden = true;
    return choice;
  }
  if (compute == f32 && overrides.empty())
    return {&op, Type(), typeOf(op.getResult(0)), "precision.compute is fp32"};
  return byClass(precision);
}

FailureOr<SmallVector<PrecisionChoice>> Chooser::run() {
  if (failed(readAttributes()))
    return failure();
  SmallVector<PrecisionChoice> choices;
  for (Operation &op : model.getBody().front()) {
    PrecisionChoice choice = choose(op);
    for (Value result : op.getResults())
      if (isa<FloatType>(getElementTypeOrSelf(result))) {
        // The sums of a loss are f32 whatever goes in.
        if (isa<RowWeightedOp>(op))
          choice.results = f32;
        types[result] = choice.results;
      }
    choices.push_back(std::move(choice));
  }
  for (auto [index, isMatched] : llvm::enumerate(matched))
    if (!isMatched)
      return model->getParentOfType<ModuleOp>().emitError()
             << "precision.override." << index << " (op = \"" << overrides[index].getOp()
             << "\", match = \"" << overrides[index].getMatch()
             << "\") matches no op of the model; `descent plan` lists them with their names";
  return choices;
}

FailureOr<SmallVector<PrecisionChoice>> choosePrecision(nn::ModelOp model) {
  return Chooser(model).run();
}

} // namespace descent
