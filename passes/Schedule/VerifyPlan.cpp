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
#include "passes/Schedule/ByteRange.h"
#include "passes/Schedule/Lifetimes.h"
#include "passes/Schedule/Placement.h"

#include "llvm/ADT/BitVector.h"

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
  LogicalResult verifyStreams(exec::ProgramOp program);

  exec::ArenaOp arena;
};

} // namespace

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

/// Launches of two streams that touch the same bytes are ordered by events. For each launch the set
/// of launches that are complete when it starts is followed, launch by launch.
LogicalResult VerifyPlan::verifyStreams(exec::ProgramOp program) {
  SmallVector<exec::RunOp> runs(program.getBody().getOps<exec::RunOp>());
  if (llvm::all_of(runs, [&](exec::RunOp run) { return run.getStream() == 0; }))
    return success();
  std::vector<llvm::BitVector> complete(runs.size(), llvm::BitVector(runs.size()));
  llvm::DenseMap<int64_t, size_t> lastOf, recordedBy;
  auto follow = [&](size_t number, size_t earlier) {
    complete[number] |= complete[earlier];
    complete[number].set(earlier);
  };
  for (auto [number, run] : llvm::enumerate(runs)) {
    if (run.getStream() > 1)
      return run.emitOpError() << "runs on stream " << run.getStream()
                               << "; there are 0 (compute) and 1 (communication)";
    auto stream = static_cast<int64_t>(run.getStream());
    if (auto last = lastOf.find(stream); last != lastOf.end())
      follow(number, last->second);
    for (int64_t event : run.getWaits().value_or(ArrayRef<int64_t>())) {
      auto recorded = recordedBy.find(event);
      if (recorded == recordedBy.end())
        return run.emitOpError() << "waits for event " << event
                                 << ", which no launch before it records";
      follow(number, recorded->second);
    }
    for (size_t earlier = 0; earlier < number; ++earlier)
      if (!complete[number].test(earlier) && conflict(runs[earlier], run)) {
        InFlightDiagnostic error = run.emitOpError()
                                   << "is launch " << number << " and touches bytes of launch "
                                   << earlier << " on another stream without waiting for it";
        error.attachNote(runs[earlier].getLoc()) << "launch " << earlier << " is here";
        return error;
      }
    lastOf[stream] = number;
    if (run.getRecord() &&
        !recordedBy.try_emplace(static_cast<int64_t>(*run.getRecord()), number).second)
      return run.emitOpError() << "records event " << *run.getRecord()
                               << ", which another launch records";
  }
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
  return verifyStreams(program);
}
