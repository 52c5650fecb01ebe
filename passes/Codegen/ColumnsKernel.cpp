//===- ColumnsKernel.cpp - Reductions over leading axes -------------------===//
//
// [R, C] -> [C] and [O, R, I] -> [O, I], with elementwise producers, several results from one sweep
// over the inputs:
//
//     for each task: one index of the kept leading axes, one block of columns
//       for chunks of 32^k rows, ..., of 32 rows          so that the rounding error of a sum grows
//       with log R, not R
//         for row in chunk, several at once               one set of accumulators each, where a
//         block is only one register wide
//           load, compute, accumulate
//         chunk's sums into those of the level above
//       elementwise ops on the sums, store
//
// A task reads a narrow strip of every row. Strips are as wide as leaves enough tasks for the
// threads, at least one register: 32 or 64 bytes, a cache line's share. Nothing is added across
// tasks, so neither their number nor their grouping changes a bit.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/ColumnSweep.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/LoopKernels.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t wantedTasks = 16;
/// Rows of the innermost sums, and sums of the next level: a sum of R values rounds about 32
/// log32(R) times on its way, not R times.
constexpr int64_t branching = 32;

class ColumnsEmitter : ColumnSweep {
public:
  ColumnsEmitter(RowGraph &graph, const CpuTarget &cpu, Lanes &lanes)
      : ColumnSweep(graph, lanes), cpu(cpu) {}

  FailureOr<func::FuncOp> emit(func::FuncOp tensors, ModuleOp target);

private:
  const CpuTarget &cpu;
  int64_t width = 16, rowsAtOnce = 1;
  LaneBlock block;

  Value read(Value buffer, Value at, Type element, int64_t stride) override {
    return stride == 0   ? lanes.loadScalar(buffer, at, element)
           : stride == 1 ? lanes.load(buffer, at, element, block)
                         : lanes.loadStrided(buffer, at, stride, element, block);
  }
  void write(Value value, Value buffer, Value at) override {
    lanes.store(value, buffer, at, block);
  }
  SmallVector<Value> sumRange(Value from, Value to, int64_t length);
  SmallVector<Value> accumulateRows(Value from, Value to);
  void emitTask(const LaneBlock &columnsAtOnce);
};

/// Sums of rows [from, to), at most `length` of them: in `branching` parts or more, each summed on
/// its own, down to a few dozen rows.
SmallVector<Value> ColumnsEmitter::sumRange(Value from, Value to, int64_t length) {
  if (length <= 2 * branching)
    return accumulateRows(from, to);
  int64_t chunk = branching;
  while (chunk * branching < length)
    chunk *= branching;
  return lanes.loop(from, to, chunk, neutrals(), [&](Value at, ValueRange carried) {
    Value end = arith::AddIOp::create(b, at, lanes.index(chunk));
    if (rows % chunk)
      end = arith::MinUIOp::create(b, end, to);
    return combine(carried, sumRange(at, end, chunk));
  });
}

/// Sums of rows [from, to) in one loop.
SmallVector<Value> ColumnsEmitter::accumulateRows(Value from, Value to) {
  bool exact =
      rows % rowsAtOnce == 0; // so are the parts, whose lengths are multiples but for the last
  unsigned count = reductions.size();
  SmallVector<Value> start;
  for (int64_t k = 0; k < rowsAtOnce; ++k)
    llvm::append_range(start, neutrals());
  Value whole = to;
  if (!exact) {
    Value length = arith::SubIOp::create(b, to, from);
    Value rest = arith::RemUIOp::create(b, length, lanes.index(rowsAtOnce));
    whole = arith::SubIOp::create(b, to, rest);
  }
  SmallVector<Value> sums =
      lanes.loop(from, whole, rowsAtOnce, start, [&](Value index, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t k = 0; k < rowsAtOnce; ++k) {
          Value at = k == 0 ? index : arith::AddIOp::create(b, index, lanes.index(k)).getResult();
          llvm::append_range(next, accumulateRow(at, carried.slice(k * count, count)));
        }
        return next;
      });
  if (!exact) {
    SmallVector<Value> rest =
        lanes.loop(whole, to, 1, ArrayRef<Value>(sums).take_front(count),
                   [&](Value index, ValueRange carried) { return accumulateRow(index, carried); });
    llvm::copy(rest, sums.begin());
  }
  for (int64_t step = rowsAtOnce / 2; step > 0; step /= 2)
    for (int64_t k = 0; k < step; ++k)
      for (unsigned i = 0; i < count; ++i)
        sums[k * count + i] = lanes.combine(reductions[i]->combiner, sums[k * count + i],
                                            sums[(k + step) * count + i]);
  sums.resize(count);
  return sums;
}

void ColumnsEmitter::emitTask(const LaneBlock &columnsAtOnce) {
  block = columnsAtOnce;
  laneCount = block.width;
  enter();
  prepareSweep();
  finish(sumRange(lanes.index(0), lanes.index(rows), rows));
}

FailureOr<func::FuncOp> ColumnsEmitter::emit(func::FuncOp tensors, ModuleOp target) {
  if (failed(check(tensors)))
    return failure();
  width = 4 * cpu.lanes();
  while (width > cpu.lanes() && llvm::divideCeil(columns, width) * keptCount < wantedTasks)
    width /= 2;
  // Registers hold accumulators and the row's temporaries: no more than eight of the former.
  rowsAtOnce = std::max<int64_t>(1, 4 * cpu.lanes() / width);
  while (rowsAtOnce > 1 && rowsAtOnce * (width / cpu.lanes()) * reductions.size() > 8)
    rowsAtOnce /= 2;
  rowsAtOnce = std::min<int64_t>(rowsAtOnce, llvm::bit_floor(static_cast<uint64_t>(rows)));
  int64_t columnTasks = llvm::divideCeil(columns, width), ragged = columns % width;

  SmallVector<Type> buffers;
  for (RankedTensorType type : llvm::concat<RankedTensorType>(graph.inputTypes, graph.resultTypes))
    buffers.push_back(bufferType(type));
  func::FuncOp kernel = createKernelFunction(target, tensors.getLoc(), tensors.getName(), buffers,
                                             keptCount * columnTasks, /*scratchBytes=*/0);
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto arguments = kernel.getArguments();
  for (unsigned i = 0; i < buffers.size(); ++i)
    (i < graph.inputTypes.size() ? inputs : outputs).push_back(lanes.flat(arguments[i]));
  lanes.loop(
      arguments[buffers.size()], arguments[buffers.size() + 1], 1, {}, [&](Value task, ValueRange) {
        Value columnTask = task;
        keptIndex = lanes.index(0);
        if (keptCount > 1) {
          keptIndex = arith::DivUIOp::create(b, task, lanes.index(columnTasks));
          columnTask = arith::RemUIOp::create(b, task, lanes.index(columnTasks));
        }
        LaneBlock full{width, width, nullptr};
        if (!ragged) {
          column = lanes.scaled(columnTask, width);
          emitTask(full);
          return SmallVector<Value>();
        }
        Value end = lanes.index(columnTasks - 1);
        if (columnTasks > 1)
          lanes.when(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, columnTask, end), [&] {
            column = lanes.scaled(columnTask, width);
            emitTask(full);
          });
        Value last;
        if (columnTasks > 1)
          last = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, columnTask, end);
        lanes.when(last, [&] {
          column = lanes.index(columns - ragged);
          emitTask(lanes.block(ragged, cpu.lanes()));
        });
        return SmallVector<Value>();
      });
  func::ReturnOp::create(b);
  return kernel;
}

} // namespace

FailureOr<func::FuncOp> emitColumns(func::FuncOp tensors, ModuleOp target, const CpuTarget &cpu) {
  auto graph = RowGraph::build(tensors);
  if (failed(graph))
    return failure();
  (*graph)->mergeDimensions();
  // With one column, the rows are the last axis.
  unsigned dimensions = (*graph)->sizes.size();
  if (dimensions == 0 || llvm::any_of((*graph)->nodes(), [&](auto &node) {
        return node->kind == RowNode::Kind::Reduce && node->reduced.size() == 1 &&
               node->reduced[0] == dimensions - 1;
      }))
    return emitRows(tensors, target, cpu);
  ImplicitLocOpBuilder builder(tensors.getLoc(), tensors.getContext());
  Lanes lanes(builder);
  return ColumnsEmitter(**graph, cpu, lanes).emit(tensors, target);
}

} // namespace descent
