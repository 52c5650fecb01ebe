//===- BindBatch.cpp - A number for '?' -----------------------------------===//
//
// Every compile is for one batch size: it makes every address and every loop bound a constant. The
// inputs' leading '?' becomes the batch, then all result types are inferred again in order. That
// second inference is where a model that only fits some batch sizes is refused (a reshape that does
// not come out even), by the rule and the message of the op itself.
//
// Rejected: no batch to bind, a batch other than the one the model is written for, an input without
// a leading batch axis, instances (inline-modules goes first). Left in the IR: no '?' anywhere, and
// `train.batch` on the module.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

namespace descent {
#define GEN_PASS_DEF_BINDBATCH
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct BindBatch : descent::impl::BindBatchBase<BindBatch> {
  using BindBatchBase::BindBatchBase;
  void runOnOperation() override;

private:
  FailureOr<int64_t> chooseBatch(nn::ModelOp model);
  LogicalResult bindArguments(nn::ModelOp model, int64_t size);
  LogicalResult inferAgain(Operation &op);
};

} // namespace

/// The option, the module's attribute, or, in a model without '?', the size that is written.
FailureOr<int64_t> BindBatch::chooseBatch(nn::ModelOp model) {
  auto attribute = getOperation()->getAttrOfType<IntegerAttr>("train.batch");
  int64_t recorded = attribute ? attribute.getInt() : 0;
  if (batch < 0 || recorded < 0)
    return model.emitError() << "batch size " << (batch < 0 ? batch : recorded)
                             << "; it must be at least 1";
  if (batch > 0 && recorded > 0 && batch != recorded)
    return model.emitError() << "asked to bind a batch of " << batch
                             << " but the module's train.batch is " << recorded
                             << "; give one of them";
  if (int64_t size = batch > 0 ? batch : recorded)
    return size;
  for (Type type : model.getArgumentTypes())
    if (auto tensor = cast<RankedTensorType>(type); tensor.getRank() > 0 && !tensor.isDynamicDim(0))
      return tensor.getDimSize(0);
  return model.emitError()
         << "the batch '?' has no size; set batch.size in the recipe, train.batch on the "
            "module, or the pass's option batch";
}

LogicalResult BindBatch::bindArguments(nn::ModelOp model, int64_t size) {
  SmallVector<Type> types;
  for (BlockArgument argument : model.getBody().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    StringRef role = model.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "nn.role");
    if (role != "rng") {
      if (type.getRank() == 0)
        return emitError(argument.getLoc()) << "input " << argument.getArgNumber() << " is " << type
                                            << "; inputs lead with the batch axis";
      if (!type.isDynamicDim(0) && type.getDimSize(0) != size)
        return emitError(argument.getLoc())
               << "input " << argument.getArgNumber() << " is " << type
               << ", written for a batch of " << type.getDimSize(0) << ", but the batch is " << size
               << "; write '?' for the batch";
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = size;
      type = RankedTensorType::get(shape, type.getElementType());
      argumentsBound += argument.getType() != type;
      argument.setType(type);
    }
    types.push_back(type);
  }
  model.setFunctionType(FunctionType::get(&getContext(), types, {}));
  return success();
}

LogicalResult BindBatch::inferAgain(Operation &op) {
  if (isa<nn::InstantiateOp>(op))
    return op.emitOpError("is still here; run inline-modules first");
  if (auto infer = dyn_cast<InferTypeOpInterface>(op)) {
    SmallVector<Type> types;
    if (failed(infer.inferReturnTypes(&getContext(), op.getLoc(), op.getOperands(),
                                      op.getRawDictionaryAttrs(), op.getPropertiesStorage(),
                                      op.getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op.getResults(), types)) {
      typesRefined += result.getType() != type;
      result.setType(type);
    }
  }
  for (Type type : op.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
      return op.emitOpError() << "has a result of type " << type
                              << " that does not follow from the batch";
  return success();
}

void BindBatch::runOnOperation() {
  for (auto model : getOperation().getOps<nn::ModelOp>()) {
    FailureOr<int64_t> size = chooseBatch(model);
    if (failed(size) || failed(bindArguments(model, *size)))
      return signalPassFailure();
    for (Operation &op : model.getBody().front())
      if (failed(inferAgain(op)))
        return signalPassFailure();
    getOperation()->setAttr("train.batch", Builder(&getContext()).getI64IntegerAttr(*size));
  }
}
