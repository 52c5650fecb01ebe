//===- NNCost.cpp - What one execution of an op costs ---------------------===//
//
// Counts for the plan, not for a cycle model: a multiply-add is two, exp and its like one, moving
// an element nothing. Gradients of products count what they multiply, so that the plan's flops can
// be set against a machine's peak.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

static double elements(Value value) { return static_cast<double>(typeOf(value).getNumElements()); }

double descent::defaultFlops(Operation *op) {
  double total = 0;
  for (Value result : op->getResults())
    total += elements(result);
  return total;
}

double descent::defaultBytes(Operation *op) {
  double bits = 0;
  auto add = [&](Value value) {
    // Booleans take a byte in memory.
    unsigned width = std::max(8u, typeOf(value).getElementTypeBitWidth());
    bits += elements(value) * width;
  };
  for (Value operand : op->getOperands())
    add(operand);
  for (Value result : op->getResults())
    add(result);
  return bits / 8;
}

/// Operations a result element, for ops whose count is a multiple of their size.
#define FLOPS(OP, PER_ELEMENT)                                                                     \
  double OP::getFlops() { return PER_ELEMENT * elements(getOperation()->getResult(0)); }

FLOPS(NegOp, 1)
FLOPS(AbsOp, 1)
FLOPS(ExpOp, 1)
FLOPS(LogOp, 1)
FLOPS(SqrtOp, 1)
FLOPS(RsqrtOp, 1)
FLOPS(SinOp, 1)
FLOPS(CosOp, 1)
FLOPS(TanhOp, 1)
FLOPS(ErfOp, 1)
FLOPS(SigmoidOp, 4) // 1 / (1 + exp(-x))
FLOPS(ReluOp, 1)
FLOPS(SiluOp, 4) // x / (1 + exp(-x))
FLOPS(AddOp, 1)
FLOPS(SubOp, 1)
FLOPS(MulOp, 1)
FLOPS(DivOp, 1)
FLOPS(MaximumOp, 1)
FLOPS(MinimumOp, 1)
FLOPS(PowOp, 1)
FLOPS(CompareOp, 1)
FLOPS(WhereOp, 1)
FLOPS(CastOp, 1)
FLOPS(RoundTf32Op, 1)
FLOPS(RoundStochasticallyOp, 1)
FLOPS(IotaOp, 0)
FLOPS(RandomOp, 62) // Ten rounds of two 32 by 32 multiplications and four exclusive ors, and the
                    // scaling to [0, 1).
FLOPS(ReshapeOp, 0)
FLOPS(TransposeOp, 0)
FLOPS(BroadcastOp, 0)
FLOPS(SliceOp, 0)
FLOPS(PadOp, 0)
FLOPS(ConcatOp, 0)
FLOPS(SplitOp, 0)
FLOPS(SoftmaxOp, 5)    // maximum, subtract, exp, add, multiply
FLOPS(LogSoftmaxOp, 5) // maximum, subtract, exp, add, subtract
FLOPS(LayerNormOp, 7)  // add; subtract, square, add; scale, gain, bias
FLOPS(DropoutOp, 64)   // the random number, compare, scale
FLOPS(EmbeddingOp, 0)

// erf: x * 0.5 * (1 + erf(x * c)); tanh: x * 0.5 * (1 + tanh(c * (x + d * x^3))). The derivatives
// add the inner derivative.
double GeluOp::getFlops() { return (getForm() == GeluForm::erf ? 5 : 9) * elements(getY()); }
double GeluGradOp::getFlops() { return (getForm() == GeluForm::erf ? 10 : 18) * elements(getY()); }

// One addition or comparison an element; the mean's division is one a result.
double ReduceSumOp::getFlops() { return elements(getX()); }
double ReduceMeanOp::getFlops() { return elements(getX()) + elements(getY()); }
double ReduceMaxOp::getFlops() { return elements(getX()); }

double CrossEntropyOp::getFlops() { return 5 * elements(getLogits()); }
double MseOp::getFlops() { return 3 * elements(getPredictions()); }

double MatmulOp::getFlops() {
  Contraction product = getContraction();
  return 2.0 * product.batch * product.m * product.n * product.k;
}

/// Multiply-adds of a convolution with weights [KH, KW, IC, OC] and outputs [N, OH, OW, OC]; its
/// two gradients do the same ones.
static double convolutionFlops(ArrayRef<int64_t> kernel, RankedTensorType output) {
  return 2.0 * kernel[0] * kernel[1] * kernel[2] * output.getNumElements();
}
double Conv2DOp::getFlops() { return convolutionFlops(typeOf(getW()).getShape(), typeOf(getY())); }
double Conv2DGradInputOp::getFlops() {
  return convolutionFlops(typeOf(getW()).getShape(), typeOf(getDy()));
}
double Conv2DGradWeightOp::getFlops() {
  return convolutionFlops(getKernelShape(), typeOf(getDy()));
}

// A comparison an element of every window.
double MaxPool2DOp::getFlops() { return getKernel()[0] * getKernel()[1] * elements(getY()); }
double MaxPool2DGradOp::getFlops() {
  return (getKernel()[0] * getKernel()[1] + 1) * elements(getDy());
}

double EmbeddingGradOp::getFlops() { return elements(getDy()); }

/// Pairs of a query and a key it sees, over batch and heads, times the width of a head: what one of
/// attention's products multiplies.
static double attentionPairs(Value q, bool causal) {
  RankedTensorType type = typeOf(q);
  double time = type.getDimSize(1);
  double pairs = causal ? time * (time + 1) / 2 : time * time;
  return type.getDimSize(0) * pairs * type.getDimSize(2);
}
// Forward: q k^T and p v. Backward: q k^T again, dp = do v^T, and the three gradients. The
// softmax's share is 5 (8) a pair and head.
double AttentionOp::getFlops() {
  double pairs = attentionPairs(getQ(), getCausal());
  return 2 * 2 * pairs + 5 * pairs * getHeads() / typeOf(getQ()).getDimSize(2);
}
double AttentionGradOp::getFlops() {
  double pairs = attentionPairs(getQ(), getCausal());
  return 5 * 2 * pairs + 8 * pairs * getHeads() / typeOf(getQ()).getDimSize(2);
}
