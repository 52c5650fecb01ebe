//===- BoundInputs.cpp - Ranges of integer inputs -------------------------===//
//
// A token outside the vocabulary must be an error that names it, never a read beyond a table.
// Kernels do not check: the batch is checked once, where it enters. So every integer that selects
// something must be an input, seen through ops that only move elements, or be known now (nn.iota,
// nn.constant); the tightest range of all its uses is recorded on the input as nn.range = [low,
// high) and, where every use ignores one value, nn.ignore_index.
//
// Rejected: computed indices, known ones out of range, uses that no value satisfies.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace descent {
#define GEN_PASS_DEF_BOUNDINPUTS
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;

namespace {

struct BoundInputs : descent::impl::BoundInputsBase<BoundInputs> {
  void runOnOperation() override;
};

} // namespace

/// Through reshapes, transposes, slices and splits to where the integers come from.
static Value findOrigin(Value value) {
  while (auto fusible = value.getDefiningOp<FusibleOp>()) {
    FusionClass kind = fusible.getFusionClass();
    if ((kind != FusionClass::View && kind != FusionClass::Copy) ||
        fusible->getNumOperands() != 1 || isa<nn::PadOp>(fusible))
      break;
    value = fusible->getOperand(0);
  }
  return value;
}

static bool holds(const IndexRange &range, int64_t value) {
  return (range.low <= value && value < range.high) || range.ignored == value;
}

/// Checks integers known now. Returns false where `origin` is not of that kind.
static FailureOr<bool> checkKnown(IndexingOp op, Value origin, const IndexRange &range) {
  auto report = [&](int64_t value) {
    return op->emitOpError() << "indexes with " << value << ", outside of [" << range.low << ", "
                             << range.high << ")";
  };
  if (auto iota = origin.getDefiningOp<nn::IotaOp>()) {
    int64_t last = iota.getShape()[iota.getAxis()] - 1;
    if (!holds(range, last) || !holds(range, 0))
      return report(last);
    return true;
  }
  if (auto constant = origin.getDefiningOp<nn::ConstantOp>()) {
    if (auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue()))
      for (const APInt &value : values)
        if (!holds(range, value.getSExtValue()))
          return report(value.getSExtValue());
    return true;
  }
  return false;
}

static LogicalResult boundModel(nn::ModelOp model, Pass::Statistic &count) {
  llvm::MapVector<BlockArgument, IndexRange> ranges;
  WalkResult walk = model.walk([&](IndexingOp op) {
    IndexRange range = op.getIndexRange();
    Value origin = findOrigin(op.getIndexOperand().get());
    auto input = dyn_cast<BlockArgument>(origin);
    if (!input) {
      FailureOr<bool> known = checkKnown(op, origin, range);
      if (succeeded(known) && !*known) {
        InFlightDiagnostic error = op->emitOpError(
            "indexes with computed integers, whose range cannot be checked before the "
            "step; they must be an input of the model, at most reshaped, transposed, "
            "sliced or split");
        error.attachNote(origin.getLoc()) << "computed here";
        known = failure();
      }
      return failed(known) ? WalkResult::interrupt() : WalkResult::advance();
    }
    auto [entry, isNew] = ranges.try_emplace(input, range);
    if (isNew)
      return WalkResult::advance();
    IndexRange &sum = entry->second;
    sum.low = std::max(sum.low, range.low);
    sum.high = std::min(sum.high, range.high);
    if (sum.ignored != range.ignored)
      sum.ignored = std::nullopt;
    if (sum.low < sum.high)
      return WalkResult::advance();
    op->emitOpError() << "takes integers in [" << range.low << ", " << range.high << ") from input "
                      << input.getArgNumber() << ", of which its other uses allow none";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  Builder builder(model.getContext());
  for (auto &[input, range] : ranges) {
    model.setArgAttr(input.getArgNumber(), "nn.range",
                     builder.getDenseI64ArrayAttr({range.low, range.high}));
    if (range.ignored)
      model.setArgAttr(input.getArgNumber(), "nn.ignore_index",
                       builder.getI64IntegerAttr(*range.ignored));
    ++count;
  }
  return success();
}

void BoundInputs::runOnOperation() {
  for (auto model : getOperation().getOps<nn::ModelOp>())
    if (failed(boundModel(model, inputsBounded)))
      return signalPassFailure();
}
