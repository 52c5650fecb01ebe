//===- QuantizeProducts.cpp - Operands of products in 8 bits or TF32 ------===//
//
// The types of the program stay those of insert-precision-casts; only what goes into a matrix
// product or a convolution is rounded further. It runs on the finished step, since what is rounded
// how depends on what only the step knows: gradients have another format than forward values, and
// scales have a past.
//
//   1. Operands are numbered in order of appearance, each tensor once however many products read it
//      (also through reshapes): what the backward pass reads again is kept in 8 bits.
//   2. Each is scaled, cast (saturating) and divided back in the epilogue of its products.
//   3. With delayed scales a state of [operands, history] holds the largest magnitudes of past
//   steps;
//      the commit shifts it. Skipped steps do not count. @evaluate reads the rows of the same
//      forward operands: both functions have the same products in the same order.
//
// Products whose type an override gave are left alone, with those of their gradients, which stand
// at the same source location. Sources: Micikevicius et al., "FP8 Formats for Deep Learning",
// arXiv:2209.05433; scaling recipes as Transformer Engine documents them (margin 0, history 1024,
// maximum).
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"
#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/StateNames.h"
#include "dialects/Train/Train.h"
#include "passes/Differentiate/SymbolNames.h"
#include "passes/Passes.h"
#include "passes/Precision/PrecisionChoice.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

namespace descent {
#define GEN_PASS_DEF_QUANTIZEPRODUCTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

/// Rounds the operands of one function's products.
class Quantizer {
public:
  Quantizer(train::FuncOp function, train::QuantizeAttr recipe)
      : function(function), recipe(recipe) {}

  void collect();
  /// `rows`: tensors in the history, that of @step.
  void rewrite(int64_t rows);
  /// The history after this step.
  Value shiftedHistory(OpBuilder &builder, Location loc);

  int64_t size() const { return tensors.size(); }
  int64_t getProducts() const { return products.size(); }

private:
  struct Tensor {
    bool isGradient = false;
    Value quantized, inverse, amax; // set by rewrite; the last two with fp8
  };

  bool isTf32() const { return recipe.getFormat() == "tf32"; }
  bool isDelayed() const { return !isTf32() && recipe.getScaling() == "delayed"; }
  void quantize(Value source, Tensor &tensor, int64_t row);
  Value quantizedForm(Value operand);

  train::FuncOp function;
  train::QuantizeAttr recipe;
  SmallVector<Operation *> products;
  llvm::MapVector<Value, Tensor> tensors;
  Value history, pastMaxima; // [rows, history], [rows]
};

struct QuantizeProducts : descent::impl::QuantizeProductsBase<QuantizeProducts> {
  void runOnOperation() override;
};

/// The tensor behind reshapes.
Value sourceOf(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getX();
  return value;
}

} // namespace

void Quantizer::collect() {
  llvm::DenseSet<Value> gradients;
  llvm::DenseSet<Location> exempt;
  for (Operation &op : function.getBody().front())
    if (op.removeAttr(unquantizedAttrName))
      exempt.insert(op.getLoc());
  for (Operation &op : function.getBody().front()) {
    bool isGradient = isa<train::SeedOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                        return gradients.contains(operand);
                      });
    if (isGradient)
      gradients.insert(op.getResults().begin(), op.getResults().end());
    auto fusible = dyn_cast<FusibleOp>(op);
    if (!fusible || !isa<AccumulatingOp>(op) ||
        fusible.getFusionClass() != FusionClass::Contraction)
      continue;
    Type element = getElementTypeOrSelf(op.getOperand(0));
    if (element.isF32() != isTf32() || exempt.contains(op.getLoc()))
      continue;
    products.push_back(&op);
    for (Value operand : op.getOperands().take_front(2)) {
      Value source = sourceOf(operand);
      tensors[source].isGradient = gradients.contains(source);
    }
  }
}

void Quantizer::quantize(Value source, Tensor &tensor, int64_t row) {
  OpBuilder builder(function.getContext());
  // An input's scale comes from the history, which is read first.
  builder.setInsertionPointAfterValue(isa<BlockArgument>(source) && pastMaxima ? pastMaxima
                                                                               : source);
  Location loc = source.getLoc();
  nn::Graph graph{builder, loc};
  if (isTf32()) {
    tensor.quantized = nn::RoundTf32Op::create(builder, loc, source);
    return;
  }
  double largest = tensor.isGradient ? 57344.0 : 448.0; // of E5M2 and E4M3
  Type format = tensor.isGradient ? Type(Float8E5M2Type::get(function.getContext()))
                                  : Type(Float8E4M3FNType::get(function.getContext()));
  Value wide = graph.toF32(source);
  SmallVector<int64_t> axes(llvm::to_vector(llvm::seq<int64_t>(graph.typeOf(source).getRank())));
  if (!isDelayed() || function.getSymName() == "step")
    tensor.amax = graph.max(nn::AbsOp::create(builder, loc, wide), axes);
  Value amax = tensor.amax;
  if (isDelayed()) {
    int64_t limit = row + 1, stride = 1;
    amax = graph.reshape(nn::SliceOp::create(builder, loc, pastMaxima, row, limit, stride), {});
  }
  train::ScalarMath math(builder, loc);
  // Nothing known yet, or nothing but zeros: any scale will do. The bound keeps the scale of tiny
  // tensors finite.
  Value scale = math.min(math.div(math.constant(std::ldexp(largest, -recipe.getMargin())), amax),
                         math.constant(0x1p100));
  scale = math.where(math.compare(nn::ComparePredicate::gt, amax, math.constant(0.0)), scale,
                     math.constant(1.0));
  tensor.inverse = math.div(math.constant(1.0), scale);
  tensor.quantized = graph.cast(math.mul(wide, scale), format);
}

/// `operand` rounded, in its own shape.
Value Quantizer::quantizedForm(Value operand) {
  Value quantized = tensors[sourceOf(operand)].quantized;
  auto type = cast<RankedTensorType>(operand.getType());
  if (cast<RankedTensorType>(quantized.getType()).getShape() == type.getShape())
    return quantized;
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(operand);
  return nn::Graph{builder, operand.getLoc()}.reshape(quantized, type.getShape());
}

void Quantizer::rewrite(int64_t rows) {
  if (isDelayed()) {
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    auto type = RankedTensorType::get({rows, recipe.getHistory()}, builder.getF32Type());
    history = train::ReadOp::create(builder, function.getLoc(), type, train::amaxHistoryState);
    pastMaxima = nn::Graph{builder, function.getLoc()}.max(history, {1});
  }
  for (auto [row, entry] : llvm::enumerate(tensors))
    quantize(entry.first, entry.second, row);
  for (Operation *product : products) {
    Value a = product->getOperand(0), b = product->getOperand(1);
    product->setOperand(0, quantizedForm(a));
    product->setOperand(1, quantizedForm(b));
    if (isTf32())
      continue;
    Value result = product->getResult(0);
    auto type = cast<RankedTensorType>(result.getType());
    OpBuilder builder(product->getContext());
    builder.setInsertionPointAfter(product);
    Location loc = product->getLoc();
    Type f32 = builder.getF32Type();
    cast<AccumulatingOp>(product).setResultTypeAttr(TypeAttr::get(f32));
    result.setType(type.clone(f32));
    // The scales of the operands may be computed behind the product's place; both come before it,
    // since its operands do.
    train::ScalarMath math(builder, loc);
    Value inverse = math.mul(tensors[sourceOf(a)].inverse, tensors[sourceOf(b)].inverse);
    Value scaled = math.mul(result, inverse);
    Value rounded = nn::Graph{builder, loc}.cast(scaled, type.getElementType());
    result.replaceAllUsesExcept(rounded, scaled.getDefiningOp());
  }
}

Value Quantizer::shiftedHistory(OpBuilder &builder, Location loc) {
  nn::Graph graph{builder, loc};
  SmallVector<Value> now;
  for (auto &[source, tensor] : tensors)
    now.push_back(graph.reshape(tensor.amax, {1, 1}));
  Value column = now.size() == 1 ? now.front() : nn::ConcatOp::create(builder, loc, now, 0).getY();
  int64_t length = recipe.getHistory();
  if (length == 1)
    return column;
  Value newest = nn::SliceOp::create(
      builder, loc, history, ArrayRef<int64_t>{0, 0},
      ArrayRef<int64_t>{static_cast<int64_t>(tensors.size()), length - 1}, ArrayRef<int64_t>{1, 1});
  return nn::ConcatOp::create(builder, loc, ValueRange{column, newest}, 1);
}

void QuantizeProducts::runOnOperation() {
  ModuleOp module = getOperation();
  auto recipe = module->getAttrOfType<train::QuantizeAttr>("train.quantize");
  if (!recipe)
    return;
  auto step = module.lookupSymbol<train::FuncOp>("step");
  auto evaluate = module.lookupSymbol<train::FuncOp>("evaluate");
  if (!step || !evaluate) {
    module.emitError("quantize-products needs train.func @step and @evaluate; run differentiate "
                     "first");
    return signalPassFailure();
  }
  Quantizer training(step, recipe), evaluation(evaluate, recipe);
  training.collect();
  evaluation.collect();
  if (training.size() < evaluation.size()) {
    evaluate.emitError("has products that @step lacks; quantize-products must run before either is "
                       "changed");
    return signalPassFailure();
  }
  products += training.getProducts();
  tensors += training.size();
  if (training.size() == 0)
    return;
  training.rewrite(training.size());
  evaluation.rewrite(training.size());
  if (recipe.getFormat() == "tf32" || recipe.getScaling() != "delayed")
    return;
  auto commits = step.getBody().getOps<train::CommitOp>();
  if (!llvm::hasSingleElement(commits)) {
    step.emitError("quantize-products needs one train.commit in @step; run insert-optimizer first");
    return signalPassFailure();
  }
  if (failed(checkNameIsFree(module, train::amaxHistoryState, "the state of the fp8 scales")))
    return signalPassFailure();
  train::CommitOp commit = *commits.begin();
  OpBuilder builder(step);
  auto type = RankedTensorType::get({training.size(), recipe.getHistory()}, builder.getF32Type());
  train::StateOp::create(builder, module.getLoc(), train::amaxHistoryState, FlatSymbolRefAttr(),
                         type, APFloat(0.0));
  builder.setInsertionPoint(commit);
  Value next = training.shiftedHistory(builder, commit.getLoc());
  OpBuilder inside = OpBuilder::atBlockEnd(&commit.getBody().front());
  train::WriteOp::create(inside, commit.getLoc(), train::amaxHistoryState, next);
}
