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
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/LoopKernels.h"
#include "passes/Codegen/RowValues.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t wantedTasks = 16;
/// Rows of the innermost sums, and sums of the next level: a sum of R values rounds about 32
/// log32(R) times on its way, not R times.
constexpr int64_t branching = 32;

class ColumnsEmitter {
public:
  ColumnsEmitter(RowGraph &graph, const CpuTarget &cpu, ImplicitLocOpBuilder &b)
      : graph(graph), cpu(cpu), b(b), lanes(b) {}

  FailureOr<func::FuncOp> emit(func::FuncOp tensors, ModuleOp target);

private:
  RowGraph &graph;
  const CpuTarget &cpu;
  ImplicitLocOpBuilder &b;
  Lanes lanes;
  SmallVector<Value> inputs, outputs; // flat
  SmallVector<RowNode *> reductions;
  SmallVector<unsigned> kept, reduced; // leading dimensions by what happens to them
  SmallVector<unsigned> rowStores;     // results of every row, written during the sweep
  int64_t keptCount = 1, rows = 1, columns = 1, width = 16, rowsAtOnce = 1;

  Value keptIndex, row, column;
  LaneBlock block;
  llvm::DenseMap<RowNode *, Value> taskValues, rowValues;
  SmallVector<Value> position;

  LogicalResult check(func::FuncOp tensors);
  bool dependsOnRow(const LinearForm &form) const {
    return llvm::any_of(reduced, [&](unsigned i) { return form[i] != 0; });
  }
  void delinearize(Value index, ArrayRef<unsigned> dimensions);
  Value offset(const LinearForm &strides);
  Value loopIndex(const LinearForm &form);
  Value element(RowNode *node);
  void prepare(RowNode *node);
  SmallVector<Value> accumulateRow(Value rowIndex, ValueRange accumulators);
  SmallVector<Value> neutrals();
  SmallVector<Value> sumRange(Value from, Value to, int64_t length);
  SmallVector<Value> accumulateRows(Value from, Value to);
  void emitTask();
};

LogicalResult ColumnsEmitter::check(func::FuncOp tensors) {
  unsigned last = graph.sizes.size() - 1;
  columns = graph.sizes.back();
  for (auto &node : graph.nodes()) {
    if (node->kind != RowNode::Kind::Reduce)
      continue;
    if (llvm::is_contained(node->reduced, last))
      return node->op.emitError(
          "a columns kernel reduces over leading axes; the last one belongs to a rows kernel");
    if (node->level != 1)
      return node->op.emitError(
          "a columns kernel cannot reduce what depends on another of its reductions");
    if (!reductions.empty() && reductions.front()->reduced != node->reduced)
      return node->op.emitError("the reductions of a columns kernel must be over the same axes");
    reductions.push_back(node.get());
  }
  if (reductions.empty())
    return tensors.emitError("a columns kernel holds a reduction over leading axes");
  for (unsigned i = 0; i < last; ++i) {
    bool isReduced = llvm::is_contained(reductions.front()->reduced, i);
    (isReduced ? reduced : kept).push_back(i);
    (isReduced ? rows : keptCount) *= graph.sizes[i];
  }
  for (auto [i, result] : llvm::enumerate(graph.results)) {
    for (auto [dimension, stride] : llvm::enumerate(result.strides)) {
      bool needed = graph.sizes[dimension] != 1 &&
                    (!llvm::is_contained(reduced, dimension) || dependsOnRow(result.node->depends));
      if (needed && (dimension == last ? stride != 1 : stride == 0))
        return tensors.emitError()
               << "result " << i << " of a columns kernel must hold every column, side by side";
    }
    if (dependsOnRow(result.strides)) {
      if (result.node->level != 0)
        return tensors.emitError()
               << "result " << i << " of a columns kernel needs a second sweep over the rows";
      rowStores.push_back(i);
    }
  }
  return success();
}

void ColumnsEmitter::delinearize(Value index, ArrayRef<unsigned> dimensions) {
  int64_t inner = 1;
  for (unsigned k = dimensions.size(); k-- > 0;) {
    unsigned i = dimensions[k];
    Value quotient =
        inner == 1 ? index : arith::DivUIOp::create(b, index, lanes.index(inner)).getResult();
    position[i] =
        k == 0 ? quotient
               : arith::RemUIOp::create(b, quotient, lanes.index(graph.sizes[i])).getResult();
    inner *= graph.sizes[i];
  }
}

Value ColumnsEmitter::offset(const LinearForm &strides) {
  Value sum;
  for (unsigned i = 0; i + 1 < strides.size(); ++i)
    if (strides[i] != 0)
      sum = lanes.add(sum, lanes.scaled(position[i], strides[i]));
  return strides.back() == 0 ? sum : lanes.add(sum, lanes.scaled(column, strides.back()));
}

Value ColumnsEmitter::loopIndex(const LinearForm &form) {
  Value sum = offset(form);
  if (!sum)
    sum = lanes.index(0);
  if (form.back() == 0)
    return sum;
  return lanes.ramp(sum, form.back(), block.width);
}

Value ColumnsEmitter::element(RowNode *node) {
  bool perRow = node->level == 0 && dependsOnRow(node->depends);
  auto &known = perRow ? rowValues : taskValues;
  if (Value value = known.lookup(node))
    return value;
  Value value;
  if (node->kind == RowNode::Kind::Splat) {
    value = arith::ConstantOp::create(b, node->splat);
  } else if (node->kind == RowNode::Kind::Load) {
    Value at = offset(node->strides);
    if (!at || node->base)
      at = lanes.add(at, lanes.index(node->base));
    Value buffer = inputs[node->argument];
    int64_t stride = node->strides.back();
    value = stride == 0   ? lanes.loadScalar(buffer, at, node->type)
            : stride == 1 ? lanes.load(buffer, at, node->type, block)
                          : lanes.loadStrided(buffer, at, stride, node->type, block);
  } else {
    value = emitMap(
        lanes, node, block.width, [&](RowNode *operand) { return element(operand); },
        [&](const LinearForm &form) { return loopIndex(form); });
  }
  known[node] = value;
  return value;
}

/// Computes, before the sweep, what all rows share.
void ColumnsEmitter::prepare(RowNode *node) {
  if (!dependsOnRow(node->depends)) {
    element(node);
    return;
  }
  for (RowNode *operand : node->operands)
    if (operand)
      prepare(operand);
}

SmallVector<Value> ColumnsEmitter::accumulateRow(Value rowIndex, ValueRange accumulators) {
  rowValues.clear();
  delinearize(rowIndex, reduced);
  SmallVector<Value> next, stored;
  for (auto [reduction, accumulator] : llvm::zip_equal(reductions, accumulators)) {
    Value value = emitContribution(
        lanes, reduction, block.width, [&](RowNode *operand) { return element(operand); },
        [&](const LinearForm &form) { return loopIndex(form); });
    next.push_back(lanes.combine(reduction->combiner, accumulator, value));
  }
  for (unsigned result : rowStores)
    stored.push_back(element(graph.results[result].node));
  for (auto [result, value] : llvm::zip(rowStores, stored))
    lanes.store(value, outputs[result], offset(graph.results[result].strides), block);
  return next;
}

SmallVector<Value> ColumnsEmitter::neutrals() {
  SmallVector<Value> values;
  for (RowNode *reduction : reductions)
    values.push_back(lanes.splat(lanes.neutral(reduction->combiner), block.width));
  return values;
}

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
    SmallVector<Value> next = sumRange(at, end, chunk);
    for (auto [reduction, total, sum] : llvm::zip_equal(reductions, carried, next))
      sum = lanes.combine(reduction->combiner, total, sum);
    return next;
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

void ColumnsEmitter::emitTask() {
  taskValues.clear();
  delinearize(keptIndex, kept);
  for (RowNode *reduction : reductions)
    for (RowNode *operand : reduction->operands)
      if (operand)
        prepare(operand);
  for (unsigned result : rowStores)
    prepare(graph.results[result].node);

  SmallVector<Value> sums = sumRange(lanes.index(0), lanes.index(rows), rows);
  for (auto [reduction, sum] : llvm::zip_equal(reductions, sums)) {
    if (RowNode *initial = initialValue(lanes, reduction))
      sum = lanes.combine(reduction->combiner, sum, element(initial));
    taskValues[reduction] = sum;
  }
  SmallVector<std::pair<unsigned, Value>> stored;
  for (auto [i, result] : llvm::enumerate(graph.results))
    if (!llvm::is_contained(rowStores, i))
      stored.push_back({i, element(result.node)});
  for (auto [i, value] : stored) {
    Value at = offset(graph.results[i].strides);
    lanes.store(value, outputs[i], at ? at : lanes.index(0), block);
  }
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
  position.resize(graph.sizes.size());
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
          block = full;
          emitTask();
          return SmallVector<Value>();
        }
        Value end = lanes.index(columnTasks - 1);
        if (columnTasks > 1)
          lanes.when(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, columnTask, end), [&] {
            column = lanes.scaled(columnTask, width);
            block = full;
            emitTask();
          });
        Value last;
        if (columnTasks > 1)
          last = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, columnTask, end);
        lanes.when(last, [&] {
          column = lanes.index(columns - ragged);
          block = lanes.block(ragged, cpu.lanes());
          emitTask();
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
  return ColumnsEmitter(**graph, cpu, builder).emit(tensors, target);
}

} // namespace descent
