//===- VerifyPlan.cpp - The end of the Schedule phase ---------------------===//
//
// Checks the plan against what programs do, without asking how it was made: places inside the
// arena, aligned, no launch writing bytes that another live buffer or its own other operands hold
// unless the kernel allows that pair, every buffer defined before it is read.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Fusion/KernelRules.h"
#include "passes/Passes.h"
#include "passes/Schedule/Lifetimes.h"
#include "passes/Schedule/Placement.h"

#include "llvm/ADT/TypeSwitch.h"

namespace descent {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/Passes.h.inc"
} // namespace descent

using namespace mlir;
using namespace descent;
using namespace descent::schedule;

namespace {

struct VerifyPlan : descent::impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override {
    auto arenas = getOperation().getOps<exec::ArenaOp>();
    if (!llvm::hasSingleElement(arenas)) {
      getOperation().emitError("a planned module has exactly one exec.arena");
      return signalPassFailure();
    }
    arena = *arenas.begin();
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      if (failed(verifyProgram(program)))
        return signalPassFailure();
  }

private:
  LogicalResult verifyProgram(exec::ProgramOp program);
  LogicalResult verifyRun(exec::RunOp run, int64_t number);

  exec::ArenaOp arena;
};

/// Bytes [begin, end) of the arena.
struct ByteRange {
  int64_t begin, end;
  bool overlaps(const ByteRange &other) const { return begin < other.end && other.begin < end; }
};

} // namespace

static ByteRange rangeOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t bytes = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t offset = llvm::TypeSwitch<Operation *, int64_t>(buffer.getDefiningOp())
                       .Case<exec::BufferOp, exec::GetOp>([](auto op) { return op.getOffset(); });
  return {offset, offset + bytes};
}

LogicalResult VerifyPlan::verifyRun(exec::RunOp run, int64_t number) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(run, run.getKernelAttr());
  auto allowed = reusableOperands(kernel);
  if (std::optional<unsigned> operand = accumulatedOperand(kernel)) {
    allowed.emplace_back(0, *operand);
    if (rangeOf(run.getOutputs()[0]).begin != rangeOf(run.getInputs()[*operand]).begin)
      return run.emitOpError() << "accumulates onto operand " << *operand
                               << " but its result lies elsewhere";
  }
  for (auto [index, output] : llvm::enumerate(run.getOutputs())) {
    ByteRange written = rangeOf(output);
    for (auto [other, input] : llvm::enumerate(run.getInputs()))
      if (written.overlaps(rangeOf(input)) &&
          !(written.begin == rangeOf(input).begin &&
            llvm::is_contained(allowed, std::pair<unsigned, unsigned>(index, other))))
        return run.emitOpError() << "writes result " << index << " over operand " << other
                                 << ", which kernel @" << run.getKernel() << " does not allow";
    for (auto [other, second] : llvm::enumerate(run.getOutputs()))
      if (other != index && written.overlaps(rangeOf(second)))
        return run.emitOpError() << "has results " << index << " and " << other
                                 << " in the same bytes";
  }
  for (Value operand : run->getOperands())
    if (auto buffer = operand.getDefiningOp<exec::BufferOp>())
      if (number < static_cast<int64_t>(buffer.getFirst()) ||
          number > static_cast<int64_t>(buffer.getLast()))
        return run.emitOpError() << "is launch " << number
                                 << " but uses a buffer that lives during [" << buffer.getFirst()
                                 << ", " << buffer.getLast() << "]";
  return success();
}

LogicalResult VerifyPlan::verifyProgram(exec::ProgramOp program) {
  SmallVector<exec::BufferOp> buffers;
  for (Operation &op : program.getBody().front()) {
    if (!isa<exec::BufferOp, exec::GetOp>(op))
      continue;
    ByteRange range = rangeOf(op.getResult(0));
    if (range.begin < 0 || range.end > static_cast<int64_t>(arena.getSize()))
      return op.emitOpError() << "lies at [" << range.begin << ", " << range.end
                              << ") but the arena has " << arena.getSize() << " bytes";
    if (range.begin % alignment)
      return op.emitOpError() << "starts at byte " << range.begin << ", which is not a multiple of "
                              << alignment;
    auto buffer = dyn_cast<exec::BufferOp>(op);
    if (!buffer)
      continue;
    if (range.begin < static_cast<int64_t>(arena.getPersistent()))
      return op.emitOpError("lies in the persistent part of the arena");
    for (exec::BufferOp other : buffers) {
      bool sameTime = buffer.getFirst() <= other.getLast() && other.getFirst() <= buffer.getLast();
      bool samePlace = buffer.getOffset() == other.getOffset() &&
                       buffer.getFirst() == other.getFirst() &&
                       buffer.getLast() == other.getLast(); // two views of one place
      if (sameTime && !samePlace && range.overlaps(rangeOf(other.getBuffer())))
        return buffer.emitOpError()
               << "overlaps a buffer that lives at the same time, at byte " << other.getOffset();
    }
    buffers.push_back(buffer);
  }
  DenseSet<int64_t> defined; // transient places that hold a value
  for (auto [number, run] : llvm::enumerate(program.getBody().getOps<exec::RunOp>())) {
    if (failed(verifyRun(run, static_cast<int64_t>(number))))
      return failure();
    for (auto [index, input] : llvm::enumerate(run.getInputs()))
      if (input.getDefiningOp<exec::BufferOp>() && !defined.contains(rangeOf(input).begin))
        return run.emitOpError() << "reads operand " << index << " before any launch wrote it";
    for (Value output : run.getOutputs())
      defined.insert(rangeOf(output).begin);
  }
  return success();
}
