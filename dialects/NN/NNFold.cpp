//===- NNFold.cpp - Shape ops that do nothing -----------------------------===//
//
// Only rewrites that leave every bit of every value as it is, so that canonicalization is safe at
// any point of the pipeline.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// A splat has the same bytes in any shape.
static Attribute reshapeSplat(Attribute operand, Value result) {
  auto splat = dyn_cast_if_present<SplatElementsAttr>(operand);
  return splat && typeOf(result).hasStaticShape() ? splat.resizeSplat(typeOf(result)) : Attribute();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  // Equal types mean equal order of elements; with a batch, '?' is the same number on both sides
  // since all else is.
  if (getX().getType() == getY().getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getX()); // The number of elements is the same, so an open size (-1) is too.
    return getY();
  }
  return reshapeSplat(adaptor.getX(), getY());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getX();
  if (auto inner = getX().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> permutation;
    for (int64_t axis : getPermutation())
      permutation.push_back(inner.getPermutation()[axis]);
    setOperand(inner.getX());
    setPermutation(permutation);
    return getY();
  }
  return reshapeSplat(adaptor.getX(), getY());
}
