//===- NNClasses.cpp - What passes may do with each op --------------------===//
//
// One table: an op's class in mixed precision and its class in fusion. Precision follows
// torch.autocast's published CUDA lists (and the CPU lists where only they name an op): products
// are narrow; exp, log, pow, rsqrt, softmax, norms, losses, sums and means are wide; arithmetic
// that may mix types takes the widest; what no list names follows its input.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

#define CLASSES(OP, PRECISION, FUSION)                                                             \
  PrecisionClass OP::getPrecisionClass() { return PrecisionClass::PRECISION; }                     \
  FusionClass OP::getFusionClass() { return FusionClass::FUSION; }

// Elementwise. iota and random compute each element from its index; broadcast only repeats, which
// any elementwise kernel can do while it reads.
CLASSES(NegOp, FollowsInput, Elementwise)
CLASSES(AbsOp, FollowsInput, Elementwise)
CLASSES(ExpOp, Wide, Elementwise)
CLASSES(LogOp, Wide, Elementwise)
CLASSES(SqrtOp, FollowsInput, Elementwise)
CLASSES(RsqrtOp, Wide, Elementwise)
CLASSES(SinOp, FollowsInput, Elementwise)
CLASSES(CosOp, FollowsInput, Elementwise)
CLASSES(TanhOp, FollowsInput, Elementwise)
CLASSES(ErfOp, FollowsInput, Elementwise)
CLASSES(SigmoidOp, FollowsInput, Elementwise)
CLASSES(ReluOp, FollowsInput, Elementwise)
CLASSES(SiluOp, FollowsInput, Elementwise)
CLASSES(GeluOp, FollowsInput, Elementwise)
CLASSES(GeluGradOp, FollowsInput, Elementwise)
CLASSES(AddOp, WidestOperand, Elementwise)
CLASSES(SubOp, WidestOperand, Elementwise)
CLASSES(MulOp, WidestOperand, Elementwise)
CLASSES(DivOp, WidestOperand, Elementwise)
CLASSES(MaximumOp, WidestOperand, Elementwise)
CLASSES(MinimumOp, WidestOperand, Elementwise)
CLASSES(PowOp, Wide, Elementwise)
CLASSES(CompareOp, WidestOperand, Elementwise)
CLASSES(WhereOp, WidestOperand, Elementwise)
CLASSES(CastOp, FollowsInput, Elementwise)
CLASSES(RoundTf32Op, Wide, Elementwise)
CLASSES(RoundStochasticallyOp, Wide, Elementwise)
CLASSES(IotaOp, FollowsInput, Elementwise)
CLASSES(RandomOp, FollowsInput, Elementwise)
CLASSES(BroadcastOp, FollowsInput, Elementwise)

// Movement.
CLASSES(ReshapeOp, FollowsInput, View)
CLASSES(SliceOp, FollowsInput, Copy)
CLASSES(PadOp, FollowsInput, Copy)
CLASSES(ConcatOp, WidestOperand, Copy)
CLASSES(SplitOp, FollowsInput, Copy)

// Reductions, and ops that decompose-ops turns into elementwise ops and reductions.
CLASSES(ReduceSumOp, Wide, Reduction)
CLASSES(ReduceMeanOp, Wide, Reduction)
CLASSES(ReduceMaxOp, FollowsInput, Reduction)
CLASSES(SoftmaxOp, Wide, Opaque)
CLASSES(LogSoftmaxOp, Wide, Opaque)
CLASSES(LayerNormOp, Wide, Opaque)
CLASSES(DropoutOp, FollowsInput, Opaque)
CLASSES(CrossEntropyOp, Wide, Opaque)
CLASSES(MseOp, Wide, Opaque)

// Products and ops with a kernel of their own.
CLASSES(MatmulOp, Narrow, Contraction)
CLASSES(Conv2DOp, Narrow, Contraction)
CLASSES(Conv2DGradInputOp, Narrow, Contraction)
CLASSES(Conv2DGradWeightOp, Narrow, Contraction)
CLASSES(MaxPool2DOp, FollowsInput, Opaque)
CLASSES(MaxPool2DGradOp, FollowsInput, Opaque)
CLASSES(EmbeddingOp, FollowsInput, Opaque)
CLASSES(EmbeddingGradOp, FollowsInput, Opaque)
CLASSES(AttentionOp, Narrow, Opaque)
CLASSES(AttentionGradOp, Narrow, Opaque)

PrecisionClass ConstantOp::getPrecisionClass() { return PrecisionClass::FollowsInput; }
/// One repeated value is an immediate of any kernel; other literals are bytes that must be put
/// somewhere.
FusionClass ConstantOp::getFusionClass() {
  return getValue().isSplat() ? FusionClass::Elementwise : FusionClass::Copy;
}

PrecisionClass TransposeOp::getPrecisionClass() { return PrecisionClass::FollowsInput; }
/// Moving only axes of size 1 leaves every byte where it is.
FusionClass TransposeOp::getFusionClass() {
  int64_t last = -1;
  for (int64_t axis : getPermutation()) {
    if (typeOf(getX()).getDimSize(axis) == 1)
      continue;
    if (axis < last)
      return FusionClass::Copy;
    last = axis;
  }
  return FusionClass::View;
}

StringRef MatmulOp::getKernelKind() { return "gemm"; }
StringRef Conv2DOp::getKernelKind() { return "conv"; }
StringRef Conv2DGradInputOp::getKernelKind() { return "conv"; }
StringRef Conv2DGradWeightOp::getKernelKind() { return "conv"; }
StringRef MaxPool2DOp::getKernelKind() { return "pool"; }
StringRef MaxPool2DGradOp::getKernelKind() { return "pool"; }
StringRef EmbeddingOp::getKernelKind() { return "gather"; }
StringRef EmbeddingGradOp::getKernelKind() { return "scatter"; }
StringRef AttentionOp::getKernelKind() { return "attention"; }
StringRef AttentionGradOp::getKernelKind() { return "attention_grad"; }

Contraction MatmulOp::getContraction() {
  RankedTensorType a = typeOf(getA()), b = typeOf(getB());
  Contraction product;
  product.transposeA = getTransposeA();
  product.transposeB = getTransposeB();
  product.m = a.getDimSize(a.getRank() - (product.transposeA ? 1 : 2));
  product.k = a.getDimSize(a.getRank() - (product.transposeA ? 2 : 1));
  product.n = b.getDimSize(b.getRank() - (product.transposeB ? 2 : 1));
  // With one B for all, the rows of every matrix of A lie one after the other: one tall product.
  int64_t leading = ShapedType::getNumElements(a.getShape().drop_back(2));
  (b.getRank() == 2 ? product.m : product.batch) *= leading;
  return product;
}

Value CrossEntropyOp::getRows() { return getLogits(); }
Value MseOp::getRows() { return getPredictions(); }
double CrossEntropyOp::getExpectedWeight() {
  return static_cast<double>(typeOf(getTargets()).getNumElements());
}
double MseOp::getExpectedWeight() {
  return static_cast<double>(typeOf(getPredictions()).getNumElements());
}

OpOperand &EmbeddingOp::getIndexOperand() { return getIndicesMutable(); }
IndexRange EmbeddingOp::getIndexRange() {
  int64_t rows = typeOf(getTable()).getDimSize(0);
  return {-rows, rows, std::nullopt};
}
OpOperand &CrossEntropyOp::getIndexOperand() { return getTargetsMutable(); }
IndexRange CrossEntropyOp::getIndexRange() {
  return {0, typeOf(getLogits()).getShape().back(), static_cast<int64_t>(getIgnoreIndex())};
}
