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
#include "passes/Codegen/Lanes.h"
#include "passes/Codegen/LoopKernels.h"
#include "passes/Codegen/RowSchedule.h"

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

using BlockValues = llvm::DenseMap<RowNode *, Value>;

class RowsEmitter {
public:
  RowsEmitter(RowGraph &graph, RowSchedule &schedule, const CpuTarget &cpu, ImplicitLocOpBuilder &b)
      : graph(graph), schedule(schedule), cpu(cpu), b(b), lanes(b) {}

  FailureOr<func::FuncOp> emit(func::FuncOp tensors, ModuleOp target);

private:
  RowGraph &graph;
  RowSchedule &schedule;
  const CpuTarget &cpu;
  ImplicitLocOpBuilder &b;
  Lanes lanes;
  SmallVector<Value> inputs, outputs; // flat
  llvm::DenseMap<RowNode *, Value> spills;
  int64_t width = 16; // W
  int64_t rowsPerTask = 1, columnsPerTask = 1, columnTasks = 1;

  // Valid within one row.
  Value row;
  SmallVector<Value> position; // index of each dimension but the last, null where not yet computed
  llvm::DenseMap<RowNode *, Value> uniforms, loadBases;
  SmallVector<Value> storeBases, storeGuards;
  Value columnBegin, columnEnd; // null: whole rows

  LogicalResult check(func::FuncOp tensors);
  void chooseWidth();
  void chooseTasks();
  int64_t elementBytes() const;

  unsigned leading() const { return graph.sizes.empty() ? 0 : graph.sizes.size() - 1; }
  Value dimension(unsigned i);
  Value offset(const LinearForm &strides);
  Value guard(const RowResult &result);
  Value uniform(RowNode *node);
  Value loopIndex(const LinearForm &form, Value column, int64_t blockWidth);
  Value element(RowNode *node, unsigned stage, Value column, const LaneBlock &block,
                BlockValues &values);
  SmallVector<Value> blockBody(unsigned stage, Value column, const LaneBlock &block,
                               ValueRange accumulators);
  void emitRow(Value rowIndex);
  void emitStage(unsigned stage);
};

LogicalResult RowsEmitter::check(func::FuncOp tensors) {
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Reduce &&
        (node->reduced.size() != 1 || node->reduced[0] != graph.sizes.size() - 1))
      return node->op.emitError("a rows kernel reduces over the last axis only (or over axes that "
                                "are one run in every buffer)");
  for (auto [i, result] : llvm::enumerate(graph.results))
    if (!result.strides.empty() && result.strides.back() > 1)
      return tensors.emitError()
             << "result " << i
             << " of a rows kernel is not contiguous along the kernel's last axis";
  return success();
}

int64_t RowsEmitter::elementBytes() const {
  int64_t bytes = 0;
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Load && schedule.varies(node.get()))
      bytes += storageBytes(node->type);
  for (const RowResult &result : graph.results)
    if (!result.strides.empty() && result.strides.back() != 0)
      bytes += storageBytes(result.type);
  return std::max<int64_t>(bytes, 1);
}

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

Value RowsEmitter::dimension(unsigned i) {
  if (leading() == 1)
    return row;
  if (!position[i]) {
    int64_t inner = 1;
    for (unsigned k = i + 1; k < leading(); ++k)
      inner *= graph.sizes[k];
    Value quotient =
        inner == 1 ? row : arith::DivUIOp::create(b, row, lanes.index(inner)).getResult();
    position[i] =
        i == 0 ? quotient
               : arith::RemUIOp::create(b, quotient, lanes.index(graph.sizes[i])).getResult();
  }
  return position[i];
}

/// The part of an address that a row fixes; null if it is 0.
Value RowsEmitter::offset(const LinearForm &strides) {
  Value sum;
  // Most buffers hold whole rows one behind the other: one product instead of a division per
  // dimension.
  bool whole = leading() > 0;
  for (unsigned i = leading(); i-- > 1;)
    whole &= strides[i - 1] == strides[i] * graph.sizes[i];
  if (whole && strides[leading() - 1] != 0)
    return lanes.scaled(row, strides[leading() - 1]);
  for (unsigned i = 0; i < leading(); ++i)
    if (strides[i] != 0)
      sum = lanes.add(sum, lanes.scaled(dimension(i), strides[i]));
  return sum;
}

/// Where a result lacks dimensions, one row writes it. Null: every row does.
Value RowsEmitter::guard(const RowResult &result) {
  Value all;
  for (unsigned i : schedule.missing(result)) {
    Value at = i < leading() ? dimension(i) : columnBegin;
    if (!at)
      continue;
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at, lanes.index(0));
    all = all ? arith::AndIOp::create(b, all, first).getResult() : first;
  }
  return all;
}

Value RowsEmitter::loopIndex(const LinearForm &form, Value column, int64_t blockWidth) {
  Value sum = offset(form);
  int64_t step = form.empty() ? 0 : form.back();
  if (step == 0)
    return sum ? sum : lanes.index(0);
  sum = lanes.add(sum, lanes.scaled(column, step));
  SmallVector<int64_t> steps;
  for (int64_t i = 0; i < blockWidth; ++i)
    steps.push_back(i * step);
  auto type = VectorType::get({blockWidth}, b.getIndexType());
  Value ramp = arith::ConstantOp::create(b, DenseElementsAttr::get(type, [&] {
                                           SmallVector<APInt> values;
                                           for (int64_t s : steps)
                                             values.push_back(APInt(64, s));
                                           return values;
                                         }()));
  return arith::AddIOp::create(b, lanes.widen(sum, blockWidth), ramp);
}

Value RowsEmitter::uniform(RowNode *node) {
  if (Value known = uniforms.lookup(node))
    return known;
  Value value;
  switch (node->kind) {
  case RowNode::Kind::Load: {
    Value at = offset(node->strides);
    if (!at || node->base)
      at = lanes.add(at, lanes.index(node->base));
    value = lanes.loadScalar(inputs[node->argument], at, node->type);
    break;
  }
  case RowNode::Kind::Splat:
    value = arith::ConstantOp::create(b, node->splat);
    break;
  case RowNode::Kind::Map: {
    SmallVector<Value> operands;
    for (RowNode *operand : node->operands)
      operands.push_back(operand ? uniform(operand) : Value());
    auto yield = cast<linalg::YieldOp>(node->op.getBody()->getTerminator());
    value = lanes.payload(
        node->op, operands, node->captures, 1,
        [&](unsigned loop) { return loopIndex(node->loops[loop], nullptr, 1); }, nullptr,
        yield.getOperand(node->resultNumber));
    break;
  }
  case RowNode::Kind::Reduce:
    llvm_unreachable("a stage defines its reductions before later ones read them");
  }
  uniforms[node] = value;
  return value;
}

Value RowsEmitter::element(RowNode *node, unsigned stage, Value column, const LaneBlock &block,
                           BlockValues &values) {
  if (!schedule.varies(node))
    return uniform(node);
  if (Value known = values.lookup(node))
    return known;
  Value value;
  if (schedule.comesFromMemory(node, stage)) {
    if (auto it = schedule.reread.find(node); it != schedule.reread.end())
      value = lanes.load(outputs[it->second], lanes.add(storeBases[it->second], column), node->type,
                         block);
    else
      value = lanes.load(spills[node], column, node->type, block);
  } else if (node->kind == RowNode::Kind::Load) {
    int64_t stride = node->strides.back();
    Value at = lanes.add(loadBases.lookup(node), lanes.scaled(column, stride));
    value = stride == 1 ? lanes.load(inputs[node->argument], at, node->type, block)
                        : lanes.loadStrided(inputs[node->argument], at, stride, node->type, block);
  } else {
    SmallVector<Value> operands;
    for (RowNode *operand : node->operands)
      operands.push_back(operand ? element(operand, stage, column, block, values) : Value());
    auto yield = cast<linalg::YieldOp>(node->op.getBody()->getTerminator());
    value = lanes.payload(
        node->op, operands, node->captures, block.width,
        [&](unsigned loop) { return loopIndex(node->loops[loop], column, block.width); }, nullptr,
        yield.getOperand(node->resultNumber));
  }
  values[node] = value;
  return value;
}

/// One block of lanes of a stage. Everything is computed before anything is stored, so that a
/// result may lie over an input.
SmallVector<Value> RowsEmitter::blockBody(unsigned stageNumber, Value column,
                                          const LaneBlock &block, ValueRange accumulators) {
  RowStage &stage = schedule.stages[stageNumber];
  BlockValues values;
  SmallVector<Value> next;
  for (auto [reduction, accumulator] : llvm::zip(stage.reductions, accumulators)) {
    SmallVector<Value> operands;
    unsigned inputsOnly = reduction->op.getNumDpsInputs();
    for (auto [i, operand] : llvm::enumerate(reduction->operands))
      operands.push_back(operand && (i < inputsOnly || i >= reduction->op->getNumOperands())
                             ? element(operand, stageNumber, column, block, values)
                             : Value());
    Value own = reduction->op.getRegionOutputArgs()[reduction->resultNumber];
    Value contribution =
        reduction->combiner->getOperand(reduction->combiner->getOperand(0) == own ? 1 : 0);
    Value value = lanes.payload(
        reduction->op, operands, reduction->captures, block.width,
        [&](unsigned loop) { return loopIndex(reduction->loops[loop], column, block.width); },
        reduction->combiner, contribution);
    value = lanes.widen(value, block.width);
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
  // What the whole row shares stands before the column loop.
  for (RowNode *node : stage.uniform)
    uniform(node);
  for (RowNode *node : stage.visited)
    if (node->kind == RowNode::Kind::Load && !loadBases.contains(node))
      loadBases[node] = offset(node->strides);
  if (graph.usesIndices)
    for (unsigned i = 0; i < leading(); ++i)
      dimension(i);
  for (unsigned result : stage.stores) {
    storeBases[result] = offset(graph.results[result].strides);
    storeGuards[result] = guard(graph.results[result]);
  }

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
    Value value = lanes.horizontal(reduction->combiner, accumulator);
    RowNode *initial =
        reduction->operands[reduction->op.getNumDpsInputs() + reduction->resultNumber];
    TypedAttr neutral = lanes.neutral(reduction->combiner);
    if (initial && !(initial->kind == RowNode::Kind::Splat && initial->splat == neutral))
      value = lanes.combine(reduction->combiner, value, uniform(initial));
    uniforms[reduction] = value;
  }
}

void RowsEmitter::emitRow(Value rowIndex) {
  row = rowIndex;
  position.assign(leading(), nullptr);
  loadBases.clear();
  auto shared = uniforms;
  for (unsigned stage = 0; stage < schedule.stages.size(); ++stage)
    emitStage(stage);
  SmallVector<Value> values;
  for (unsigned result : schedule.rowResults)
    values.push_back(uniform(graph.results[result].node));
  for (auto [result, value] : llvm::zip(schedule.rowResults, values)) {
    Value at = offset(graph.results[result].strides);
    lanes.when(guard(graph.results[result]), [&, result = result, value = value] {
      lanes.storeScalar(value, outputs[result], at ? at : lanes.index(0));
    });
  }
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
  storeBases.resize(outputs.size());
  storeGuards.resize(outputs.size());

  // What no dimension changes and no reduction feeds is computed once per call: an optimizer's bias
  // corrections, say.
  for (RowStage &stage : schedule.stages)
    for (RowNode *node : stage.uniform)
      if (node->level == 0 && llvm::all_of(node->depends, [](int64_t d) { return d == 0; }))
        uniform(node);

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
  return RowsEmitter(**graph, schedule, cpu, builder).emit(tensors, target);
}

SmallVector<std::pair<unsigned, unsigned>> reusableRowOperands(func::FuncOp tensors) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  ScopedDiagnosticHandler quiet(tensors.getContext(), [](Diagnostic &) { return success(); });
  auto graph = RowGraph::build(tensors);
  if (failed(graph))
    return pairs;
  (*graph)->mergeDimensions();
  RowSchedule schedule(**graph);
  for (unsigned result = 0; result < (*graph)->results.size(); ++result)
    for (unsigned input = 0; input < (*graph)->inputTypes.size(); ++input)
      if (schedule.reusable(result, input))
        pairs.push_back({result, input});
  return pairs;
}

} // namespace descent
