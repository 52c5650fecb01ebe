//===- RowsKernel.cpp - Elementwise ops and reductions over rows ----------===//
//
// The loop nest of a rows kernel, from its graph (RowGraph.h) and stages (RowSchedule.h):
//
//     for row in the task's rows
//       for each stage
//         scalars of the row that the stage needs
//         for column = 0; column < C; column += W      W lanes: several registers, for
//         instruction-level parallelism
//           load, compute, accumulate, store
//         the ragged rest, masked
//         accumulators to scalars
//       results with one element a row
//
// Nothing is left scalar that runs once per element, and no size is special: a row shorter than W
// is all "rest". Without reductions the columns are cut into tasks too, so that one long row (a
// flat tensor) is shared among threads. Accumulators start anew with each row and lanes are folded
// by halves, so the order of a sum depends on C and on the CPU's vector width, not on tasks or
// threads.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/LoopKernels.h"
#include "passes/Codegen/RowValues.h"

using namespace mlir;

namespace descent {

namespace {

/// Bytes moved by one task: long enough to hide the hand-over between threads, short enough that
/// the last thread does not idle.
constexpr int64_t taskBytes = 32 << 10;
constexpr int64_t leastTaskBytes = 4 << 10;
constexpr int64_t wantedTasks = 16;
/// Additions in a row into one lane; longer sums are added up from parts, which keeps their
/// rounding error down.
constexpr int64_t longestSum = 128;

class RowsEmitter : public RowValues {
public:
  RowsEmitter(RowGraph &graph, RowSchedule &schedule, const CpuTarget &cpu, Lanes &lanes)
      : RowValues(graph, schedule, lanes), cpu(cpu) {}

  FailureOr<func::FuncOp> emit(func::FuncOp tensors, ModuleOp target);

private:
  const CpuTarget &cpu;
  llvm::DenseMap<RowNode *, Value> spills;
  int64_t width = 16; // W
  int64_t rowsPerTask = 1, columnsPerTask = 1, columnTasks = 1;
  Value columnEnd; // null: whole rows

  void chooseWidth();
  void chooseTasks();
  Value loadElement(RowNode *node, Value column, const LaneBlock &block) override;
  Value loadKept(RowNode *node, Value column, const LaneBlock &block) override;
  SmallVector<Value> blockBody(unsigned stage, Value column, const LaneBlock &block,
                               ValueRange accumulators);
  void emitRow(Value rowIndex);
  void emitStage(unsigned stage);
};

/// Four registers in flight hide the latency of arithmetic. Where many streams or a polynomial
/// compete for registers, two do: spilled lanes cost more than the latency.
void RowsEmitter::chooseWidth() {
  unsigned streams = 0;
  bool functions = false;
  for (auto &node : graph.nodes()) {
    streams += node->kind == RowNode::Kind::Load && schedule.varies(node.get());
    if (node->op && schedule.varies(node.get()))
      for (Operation &inner : node->op.getBody()->without_terminator())
        functions |= isa<math::MathDialect>(inner.getDialect()) &&
                     !isa<math::SqrtOp, math::AbsFOp, math::FmaOp>(inner);
  }
  bool crowded =
      cpu.vectorBits >= 512 ? streams + graph.results.size() > 8 : streams > 3 || functions;
  width = cpu.lanes() * (crowded ? 2 : 4);
}

void RowsEmitter::chooseTasks() {
  int64_t rowBytes = elementBytes() * schedule.columns;
  int64_t bytes = std::clamp(rowBytes * schedule.rows / wantedTasks, leastTaskBytes, taskBytes);
  columnsPerTask = schedule.columns;
  rowsPerTask = std::clamp<int64_t>(bytes / rowBytes, 1, schedule.rows);
  if (!graph.hasReductions && rowBytes >= 2 * bytes)
    columnsPerTask = std::min(schedule.columns,
                              static_cast<int64_t>(llvm::alignTo(bytes / elementBytes(), width)));
  columnTasks = llvm::divideCeil(schedule.columns, columnsPerTask);
}

Value RowsEmitter::loadElement(RowNode *node, Value column, const LaneBlock &block) {
  int64_t stride = node->strides.back();
  Value at = lanes.add(loadBases.lookup(node), lanes.scaled(column, stride));
  return stride == 1 ? lanes.load(inputs[node->argument], at, node->type, block)
                     : lanes.loadStrided(inputs[node->argument], at, stride, node->type, block);
}

Value RowsEmitter::loadKept(RowNode *node, Value column, const LaneBlock &block) {
  if (auto it = schedule.reread.find(node); it != schedule.reread.end())
    return lanes.load(outputs[it->second], lanes.add(storeBases[it->second], column), node->type,
                      block);
  return lanes.load(spills[node], column, node->type, block);
}

/// One block of lanes of a stage. Everything is computed before anything is stored, so that a
/// result may lie over an input.
SmallVector<Value> RowsEmitter::blockBody(unsigned stageNumber, Value column,
                                          const LaneBlock &block, ValueRange accumulators) {
  RowStage &stage = schedule.stages[stageNumber];
  BlockValues values;
  SmallVector<Value> next;
  for (auto [reduction, accumulator] : llvm::zip(stage.reductions, accumulators)) {
    Value value = contribution(reduction, stageNumber, column, block, values);
    if (block.mask)
      value = arith::SelectOp::create(b, block.mask, value,
                                      lanes.splat(lanes.neutral(reduction->combiner), block.width));
    next.push_back(lanes.combine(reduction->combiner, accumulator, value));
  }
  SmallVector<Value> kept, stored;
  for (RowNode *node : stage.spills)
    kept.push_back(element(node, stageNumber, column, block, values));
  for (unsigned result : stage.stores)
    stored.push_back(element(graph.results[result].node, stageNumber, column, block, values));
  for (auto [node, value] : llvm::zip(stage.spills, kept))
    lanes.store(value, spills[node], column, block);
  for (auto [result, value] : llvm::zip(stage.stores, stored))
    lanes.when(storeGuards[result], [&, result = result, value = value] {
      lanes.store(value, outputs[result], lanes.add(storeBases[result], column), block);
    });
  return next;
}

void RowsEmitter::emitStage(unsigned stageNumber) {
  RowStage &stage = schedule.stages[stageNumber];
  if (stage.reductions.empty() && stage.stores.empty() && stage.spills.empty())
    return;
  enterStage(stageNumber);

  int64_t ragged = schedule.columns % width, whole = schedule.columns - ragged;
  SmallVector<Value> accumulators;
  if (whole) {
    for (RowNode *reduction : stage.reductions)
      accumulators.push_back(lanes.splat(lanes.neutral(reduction->combiner), width));
    Value from = columnBegin ? columnBegin : lanes.index(0), to = lanes.index(whole);
    if (columnEnd)
      to = ragged ? arith::MinUIOp::create(b, columnEnd, to).getResult() : columnEnd;
    auto sweep = [&](Value begin, Value end, ValueRange start) {
      return lanes.loop(begin, end, width, start, [&](Value column, ValueRange carried) {
        return blockBody(stageNumber, column, LaneBlock{width, width, nullptr}, carried);
      });
    };
    int64_t chunk = longestSum * width;
    if (stage.reductions.empty() || whole <= 2 * chunk) {
      accumulators = sweep(from, to, accumulators);
    } else {
      accumulators =
          lanes.loop(from, to, chunk, accumulators, [&](Value begin, ValueRange carried) {
            Value end = arith::AddIOp::create(b, begin, lanes.index(chunk));
            if (whole % chunk)
              end = arith::MinUIOp::create(b, end, to);
            SmallVector<Value> start;
            for (RowNode *reduction : stage.reductions)
              start.push_back(lanes.splat(lanes.neutral(reduction->combiner), width));
            SmallVector<Value> part = sweep(begin, end, start);
            for (auto [reduction, total, sum] : llvm::zip_equal(stage.reductions, carried, part))
              sum = lanes.combine(reduction->combiner, total, sum);
            return part;
          });
    }
  }
  if (ragged) {
    Value last;
    if (columnEnd)
      last = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, columnEnd,
                                   lanes.index(schedule.columns));
    LaneBlock block = lanes.block(ragged, std::min<int64_t>(width, cpu.lanes()));
    for (auto [i, reduction] : llvm::enumerate(stage.reductions)) {
      if (whole)
        accumulators[i] = lanes.narrow(reduction->combiner, accumulators[i], block.width);
      else
        accumulators.push_back(lanes.splat(lanes.neutral(reduction->combiner), block.width));
    }
    lanes.when(last, [&] {
      accumulators = blockBody(stageNumber, lanes.index(whole), block, accumulators);
    });
  }
  for (auto [reduction, accumulator] : llvm::zip(stage.reductions, accumulators)) {
    finish(reduction, lanes.horizontal(reduction->combiner, accumulator));
  }
}

void RowsEmitter::emitRow(Value rowIndex) {
  enterRow(rowIndex);
  auto shared = uniforms;
  for (unsigned stage = 0; stage < schedule.stages.size(); ++stage)
    emitStage(stage);
  storeRowResults();
  uniforms = std::move(shared);
}

FailureOr<func::FuncOp> RowsEmitter::emit(func::FuncOp tensors, ModuleOp target) {
  if (failed(check(tensors)))
    return failure();
  chooseWidth();
  chooseTasks();
  SmallVector<Type> buffers;
  for (RankedTensorType type : llvm::concat<RankedTensorType>(graph.inputTypes, graph.resultTypes))
    buffers.push_back(bufferType(type));
  int64_t rowTasks = llvm::divideCeil(schedule.rows, rowsPerTask);
  func::FuncOp kernel = createKernelFunction(target, tensors.getLoc(), tensors.getName(), buffers,
                                             rowTasks * columnTasks, schedule.scratchBytes);
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto arguments = kernel.getArguments();
  for (unsigned i = 0; i < buffers.size(); ++i)
    (i < graph.inputTypes.size() ? inputs : outputs).push_back(lanes.flat(arguments[i]));
  Value first = arguments[buffers.size()], last = arguments[buffers.size() + 1],
        scratch = arguments[buffers.size() + 2];
  for (auto &[node, byteOffset] : schedule.spilled)
    spills[node] = lanes.scratchView(scratch, byteOffset, schedule.columns, node->type);
  emitShared();

  auto bounded = [&](Value task, int64_t step, int64_t limit) -> Value {
    Value end = lanes.scaled(task, step);
    return limit % step ? arith::MinUIOp::create(b, end, lanes.index(limit)).getResult() : end;
  };
  if (columnTasks == 1) {
    Value from = lanes.scaled(first, rowsPerTask), to = bounded(last, rowsPerTask, schedule.rows);
    lanes.loop(from, to, 1, {}, [&](Value rowIndex, ValueRange) {
      emitRow(rowIndex);
      return SmallVector<Value>();
    });
  } else if (schedule.rows == 1) {
    columnBegin = lanes.scaled(first, columnsPerTask);
    columnEnd = bounded(last, columnsPerTask, schedule.columns);
    emitRow(lanes.index(0));
  } else {
    lanes.loop(first, last, 1, {}, [&](Value task, ValueRange) {
      Value count = lanes.index(columnTasks), one = lanes.index(1);
      Value rowTask = arith::DivUIOp::create(b, task, count),
            columnTask = arith::RemUIOp::create(b, task, count);
      columnBegin = lanes.scaled(columnTask, columnsPerTask);
      columnEnd =
          bounded(arith::AddIOp::create(b, columnTask, one), columnsPerTask, schedule.columns);
      Value from = lanes.scaled(rowTask, rowsPerTask);
      Value to = bounded(arith::AddIOp::create(b, rowTask, one), rowsPerTask, schedule.rows);
      lanes.loop(from, to, 1, {}, [&](Value rowIndex, ValueRange) {
        emitRow(rowIndex);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  }
  b.setInsertionPointToEnd(&kernel.getBody().front());
  func::ReturnOp::create(b);
  return kernel;
}

} // namespace

FailureOr<func::FuncOp> emitRows(func::FuncOp tensors, ModuleOp target, const CpuTarget &cpu) {
  auto graph = RowGraph::build(tensors);
  if (failed(graph))
    return failure();
  (*graph)->mergeDimensions();
  RowSchedule schedule(**graph);
  ImplicitLocOpBuilder builder(tensors.getLoc(), tensors.getContext());
  Lanes lanes(builder);
  return RowsEmitter(**graph, schedule, cpu, lanes).emit(tensors, target);
}

SmallVector<std::pair<unsigned, unsigned>> reusableRowOperands(func::FuncOp tensors) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  ScopedDiagnosticHandler quiet(tensors.getContext(), [](Diagnostic &) { return success(); });
  auto graph = RowGraph::build(tensors);
  if (failed(graph))
    return pairs;
  (*graph)->mergeDimensions();
  // Devices compute again what CPUs keep in row scratch, and so read inputs in later stages.
  RowSchedule keeping(**graph), recomputing(**graph, /*spillLimit=*/0);
  for (unsigned result = 0; result < (*graph)->results.size(); ++result)
    for (unsigned input = 0; input < (*graph)->inputTypes.size(); ++input)
      if (keeping.reusable(result, input) && recomputing.reusable(result, input))
        pairs.push_back({result, input});
  return pairs;
}

} // namespace descent
