//===- AttachRowWeights.cpp - Hidden inputs of the step -------------------===//
//
// The last batch of an epoch may be short. It is padded, and the padding must count nothing: not in
// the loss, not in the weight it is divided by, not in a gradient. So every loss weighs its rows by
// a hidden input, 1 for a real row and 0 for padding. For the same reason the loss may depend on
// the data through such ops alone; a sum of the model's own would count padding.
//
// Dropout draws from a counter-based generator: one hidden input holds its key, and an id tells the
// ops apart, so that no two share a mask.
//
// Rejected: losses whose leading axis is not the batch, losses with weights already, a loss that
// reaches the data around a loss op. Left in the IR: `row_weights : tensor<Bxf32>` as an input of
// every model, and `rng : tensor<4xi32>` where something is random.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_ATTACHROWWEIGHTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct AttachRowWeights : descent::impl::AttachRowWeightsBase<AttachRowWeights> {
  void runOnOperation() override;

private:
  LogicalResult attachWeights(nn::ModelOp model);
  void attachRandom(nn::ModelOp model);
};

} // namespace

static BlockArgument appendInput(nn::ModelOp model, RankedTensorType type, StringRef role) {
  Builder builder(model.getContext());
  unsigned number = model.getNumArguments();
  auto attributes =
      builder.getDictionaryAttr({builder.getNamedAttr("nn.name", builder.getStringAttr(role)),
                                 builder.getNamedAttr("nn.role", builder.getStringAttr(role))});
  (void)model.insertArgument(number, type, attributes, model.getLoc());
  return model.getArgument(number);
}

/// Walks back from the loss to the inputs; loss ops are where the walk may end.
static LogicalResult verifyOnlyLossesReduce(nn::ModelOp model) {
  nn::LossOp loss = model.getLoss();
  SmallVector<Value> pending{loss.getSum(), loss.getWeight()};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto input = dyn_cast<BlockArgument>(value))
      return loss.emitOpError() << "depends on input " << input.getArgNumber()
                                << " other than through a loss op; the padding rows of a last, "
                                   "smaller batch would count: "
                                   "compute sum and weight with nn.cross_entropy or nn.mse";
    Operation *op = value.getDefiningOp();
    if (!isa<RowWeightedOp>(op))
      llvm::append_range(pending, op->getOperands());
  }
  return success();
}

LogicalResult AttachRowWeights::attachWeights(nn::ModelOp model) {
  if (failed(verifyOnlyLossesReduce(model)))
    return failure();
  RankedTensorType weightsType;
  for (auto [number, type] : llvm::enumerate(model.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    auto role = model.getArgAttrOfType<StringAttr>(number, "nn.role");
    if (role.getValue() != "data")
      continue;
    if (!tensor.hasStaticShape() || tensor.getRank() == 0)
      return model.emitError() << "input " << number << " is " << tensor
                               << "; run bind-batch first";
    weightsType =
        RankedTensorType::get({tensor.getDimSize(0)}, Float32Type::get(model.getContext()));
    break;
  }
  int64_t batch = weightsType.getDimSize(0);
  SmallVector<RowWeightedOp> losses;
  WalkResult walk = model.walk([&](RowWeightedOp op) {
    auto rows = cast<RankedTensorType>(op.getRows().getType());
    if (rows.getDimSize(0) != batch) {
      op->emitOpError()
          << "has " << rows.getDimSize(0) << " rows (" << rows << ") but the batch is " << batch
          << "; keep the batch as the leading axis, so that padding rows can be left out";
      return WalkResult::interrupt();
    }
    if (!op.getRowWeightsMutable().empty()) {
      op->emitOpError("has row_weights already; a model file leaves them to this pass");
      return WalkResult::interrupt();
    }
    losses.push_back(op);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  BlockArgument weights = appendInput(model, weightsType, "row_weights");
  for (RowWeightedOp op : losses)
    op.getRowWeightsMutable().assign(weights);
  lossesWeighted += losses.size();
  return success();
}

void AttachRowWeights::attachRandom(nn::ModelOp model) {
  SmallVector<RandomizedOp> ops;
  model.walk([&](RandomizedOp op) { ops.push_back(op); });
  if (ops.empty())
    return;
  Builder builder(model.getContext());
  BlockArgument rng = appendInput(model, RankedTensorType::get({4}, builder.getI32Type()), "rng");
  for (auto [id, op] : llvm::enumerate(ops)) {
    op.getRngMutable().assign(rng);
    op.setIdAttr(builder.getI64IntegerAttr(id));
  }
  opsSeeded += ops.size();
}

void AttachRowWeights::runOnOperation() {
  for (auto model : getOperation().getOps<nn::ModelOp>()) {
    if (failed(attachWeights(model)))
      return signalPassFailure();
    attachRandom(model);
  }
}
