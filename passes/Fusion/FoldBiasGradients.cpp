//===- FoldBiasGradients.cpp - Sums of rows join the product that reads them ===//
//
// The gradients of a linear layer y = x w + b are dW = x^T dy and db, the sum of dy's rows. Apart,
// they read dy twice; a library that multiplies adds up an operand along k besides. So a columns
// fusion whose whole body is
//
//     [nn.cast to f32] -> nn.reduce_sum over all axes but the last
//
// becomes a second result of a product that reads the same tensor with the summed axes as its k,
// through views or not. Which products have one is OperandSum's and LibraryForm's to say.
//
// The product keeps its place: what it reads is there, and so is what the sum reads. The sum comes
// later than before if it stood in front, which its readers must allow; they are far away as a
// rule, where gradients are packed.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Fusion/LibraryForm.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_FOLDBIASGRADIENTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::fusion;

namespace {

struct FoldBiasGradientsPass : descent::impl::FoldBiasGradientsBase<FoldBiasGradientsPass> {
  void runOnOperation() override {
    forEachProgram(getOperation(), [&](FunctionOpInterface function) {
      Block &block = function.getFunctionBody().front();
      SmallVector<std::pair<exec::FusionOp, nn::ReduceSumOp>> sums;
      for (auto fusion : block.getOps<exec::FusionOp>())
        if (nn::ReduceSumOp sum = rowSumOf(fusion))
          sums.push_back({fusion, sum});
      for (auto [fusion, sum] : sums)
        fold(block, fusion, sum);
    });
  }

private:
  static nn::ReduceSumOp rowSumOf(exec::FusionOp fusion);
  void fold(Block &block, exec::FusionOp columns, nn::ReduceSumOp sum);
};

/// Through views, what holds the same bytes.
Value sourceOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// The operand of the fusion's product that is the rows of `summed`, one below the other, if the
/// library can add it up. -1 if none is.
int operandFor(exec::FusionOp fusion, const LibraryForm &form, Value summed) {
  nn::MatmulOp product = form.product;
  Contraction shape = product.getContraction();
  for (int operand : {1, 0}) {
    auto argument = cast<BlockArgument>(product->getOperand(operand));
    Value outer = fusion.getInputs()[argument.getArgNumber()];
    bool alongRows = operand == 0 ? shape.transposeA : !shape.transposeB;
    if (alongRows && argument.hasOneUse() && sourceOf(outer) == sourceOf(summed) &&
        shapeOf(outer).size() == 2 && shapeOf(outer).back() == shapeOf(summed).back() &&
        getElementTypeOrSelf(outer.getType()) == getElementTypeOrSelf(summed.getType()))
      return operand;
  }
  return -1;
}

/// Whether the library adds up an operand beside this product.
bool takesSum(const LibraryForm &form) {
  nn::MatmulOp product = form.product;
  Type a = getElementTypeOrSelf(product.getA().getType()),
       b = getElementTypeOrSelf(product.getB().getType());
  return form.value == product.getResult() && !form.operandSum && a == b &&
         (a.isF32() || a.isBF16() || a.isF16()) && shapeOf(form.value).size() == 2 &&
         getElementTypeOrSelf(form.value.getType()).isF32();
}

} // namespace

/// The sum, in f32 with one element for each column, that is all the fusion computes; else null.
nn::ReduceSumOp FoldBiasGradientsPass::rowSumOf(exec::FusionOp fusion) {
  Block &body = fusion.getBody().front();
  if (fusion.getKind() != columnsKind || fusion.getInputs().size() != 1 ||
      fusion->getNumResults() != 1)
    return nullptr;
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<nn::ReduceSumOp>();
  if (!sum || !reducesLeadingAxes(sum) || shapeOf(sum.getResult()).size() != 1 ||
      !getElementTypeOrSelf(sum.getResult().getType()).isF32())
    return nullptr;
  Value summed = sum.getX();
  size_t ops = 2;
  if (Operation *def = summed.getDefiningOp()) {
    if (!isWidening(def))
      return nullptr;
    summed = def->getOperand(0);
    ++ops;
  }
  return isa<BlockArgument>(summed) && body.getOperations().size() == ops ? sum : nn::ReduceSumOp();
}

void FoldBiasGradientsPass::fold(Block &block, exec::FusionOp columns, nn::ReduceSumOp sum) {
  Value summed = columns.getInputs()[0];
  for (auto fusion : block.getOps<exec::FusionOp>()) {
    if (!fusion->hasAttr(libraryAttrName))
      continue;
    std::optional<LibraryForm> form = matchLibraryForm(fusion.getBody().front());
    int operand = form ? operandFor(fusion, *form, summed) : -1;
    if (operand < 0)
      continue;
    if (!takesSum(*form)) {
      ++declinedProduct;
      continue;
    }
    bool early = llvm::any_of(columns->getUsers(), [&](Operation *user) {
      Operation *reader = block.findAncestorOpInBlock(*user);
      return !reader || reader->isBeforeInBlock(fusion);
    });
    if (early) {
      ++declinedOrder;
      continue;
    }

    OpBuilder builder(fusion);
    SmallVector<Type> types(fusion->getResultTypes());
    types.push_back(sum.getResult().getType());
    auto larger =
        exec::FusionOp::create(builder, builder.getFusedLoc({fusion.getLoc(), columns.getLoc()}),
                               types, fusion.getKind(), fusion.getInputs());
    larger->setDiscardableAttrs(fusion->getDiscardableAttrDictionary());
    nn::MatmulOp product = form->product;
    larger.getBody().takeBody(fusion.getBody());
    auto yield = cast<exec::YieldOp>(larger.getBody().front().getTerminator());
    builder.setInsertionPoint(yield);
    Value rows = product->getOperand(operand);
    if (Operation *cast = sum.getX().getDefiningOp())
      rows = nn::CastOp::create(builder, cast->getLoc(), rows, TypeAttr::get(builder.getF32Type()));
    Value moved = nn::ReduceSumOp::create(builder, sum.getLoc(), rows, ArrayRef<int64_t>{0}, false);
    yield.getValuesMutable().append(moved);
    fusion->replaceAllUsesWith(larger->getResults().drop_back());
    columns->getResult(0).replaceAllUsesWith(larger->getResults().back());
    fusion.erase();
    columns.erase();
    ++gradientsFolded;
    return;
  }
}
