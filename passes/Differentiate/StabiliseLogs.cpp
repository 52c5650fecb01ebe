//===- StabiliseLogs.cpp - log of softmax and of sigmoid, without infinity -----===//
//
// A model that takes the logarithm of a probability loses every probability below the smallest
// float: log(softmax([10, 0, -100]))[2] is -infinity where -110 is right. The chain is recognised,
// through a widening or narrowing cast between the two, and becomes
//
//   log(softmax(x))  ->  log_softmax(x)
//   log(sigmoid(x))  ->  min(x, 0) - log(1 + exp(-|x|))
//
// It stands before differentiation, since the gradient of the unstable form divides by the
// probability that underflowed. The softmax or sigmoid stays for its other users.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_STABILISELOGS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

/// log(sigmoid(x)): neither exponential nor logarithm can overflow, and x = -infinity gives
/// -infinity.
Value logSigmoid(nn::Graph &graph, Value x) {
  Value magnitude = nn::AbsOp::create(graph.builder, graph.loc, x);
  Value tail = graph.log(graph.add(graph.exp(graph.neg(magnitude)), 1.0));
  Value low = nn::MinimumOp::create(graph.builder, graph.loc, x, graph.constantLike(0.0, x));
  return graph.sub(low, tail);
}

struct StabiliseLogs : descent::impl::StabiliseLogsBase<StabiliseLogs> {
  void runOnOperation() override {
    SmallVector<nn::LogOp> logs;
    getOperation()->walk([&](nn::LogOp log) { logs.push_back(log); });
    for (nn::LogOp log : logs)
      stabilise(log);
  }

private:
  void stabilise(nn::LogOp log) {
    Operation *producer = log.getX().getDefiningOp();
    auto cast = dyn_cast_or_null<nn::CastOp>(producer);
    if (cast)
      producer = cast.getX().getDefiningOp();
    if (!isa_and_nonnull<nn::SoftmaxOp, nn::SigmoidOp>(producer))
      return;

    OpBuilder builder(log);
    nn::Graph graph{builder, log.getLoc()};
    Value x = producer->getOperand(0), y;
    Type element = nn::Graph::elementOf(log.getY());
    // A cast that widened the probability widens the logits instead; one that narrowed it narrows
    // the logarithm, whose range is small.
    bool widens =
        cast && element.getIntOrFloatBitWidth() > nn::Graph::elementOf(x).getIntOrFloatBitWidth();
    if (widens)
      x = graph.cast(x, element);
    if (auto softmax = dyn_cast<nn::SoftmaxOp>(producer)) {
      y = nn::LogSoftmaxOp::create(builder, log.getLoc(), x, softmax.getAxis());
      ++softmaxes;
    } else {
      y = logSigmoid(graph, x);
      ++sigmoids;
    }
    log.replaceAllUsesWith(graph.cast(y, element));
    log.erase();
    for (Operation *op : {static_cast<Operation *>(cast), producer})
      if (op && op->use_empty())
        op->erase();
  }
};

} // namespace
