//===- DeviceRows.cpp - Elementwise ops and reductions over rows, on a device ===//
//
// Code of a rows kernel for the layout that DeviceRowLayout.h chose, from its graph (RowGraph.h)
// and stages (RowSchedule.h):
//
//     without reductions        a thread computes one chunk, or a few where scalars that all share
//                               are dear
//     reductions, short rows    a thread's chunks stand side by side, and what it has loaded or
//                               computed stays in registers from stage to stage: memory is read
//                               once
//     reductions, long rows     one loop over a thread's chunks a stage; later stages load again
//
// A sum is taken by each thread over its own chunks, lane by lane, then over its lanes, then over
// the team by shuffles in which lane pairs exchange and both add, and over warps through shared
// memory in the same way: every thread of a team ends with the same bits, in an order that shapes
// alone decide.
//
// A result may lie over an input (reusableOperands): a thread stores only elements whose loads are
// its own and stand before, and the one thread that stores a row's element does so behind a
// barrier of the row's team.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/RowValues.h"
#include "passes/Codegen/TensorForm.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"
#include "passes/Cuda/DeviceRowLayout.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t warp = 32;

class DeviceRows : public RowValues {
public:
  DeviceRows(RowGraph &graph, RowSchedule &schedule, DeviceLanes &lanes)
      : RowValues(graph, schedule, lanes), lanes(lanes),
        layout(DeviceRowLayout::choose(graph, schedule)) {}

  LogicalResult emit(func::FuncOp tensors, DeviceKernel &kernel);

private:
  /// A chunk of a row, or a single element.
  struct Chunk {
    Value column, present; ///< `present` is null where the chunk exists for certain
    int64_t width;
    LaneBlock block() const { return {width, width, nullptr}; }
  };

  DeviceLanes &lanes;
  const DeviceRowLayout layout;
  gpu::GPUFuncOp function;
  Value thread;     ///< in its team
  Value rowPresent; ///< null where the row exists for certain
  Value present;    ///< of the chunk that is being emitted
  llvm::SmallBitVector mayLieOverInput;

  LogicalResult checkReductions();
  Value wholeChunk(Value number);
  Value guarded(Value condition, Type type, function_ref<Value()> load);
  Value loadStream(Value buffer, const LinearForm &strides, Value at, Type type,
                   const LaneBlock &block);
  Value loadElement(RowNode *node, Value column, const LaneBlock &block) override;
  Value loadKept(RowNode *node, Value column, const LaneBlock &block) override;
  Value loadUniform(RowNode *node, Value at) override;

  void emitStores(unsigned stage, const Chunk &chunk, BlockValues &values);
  void accumulate(unsigned stage, const Chunk &chunk, BlockValues &values,
                  SmallVectorImpl<Value> &accumulators);
  void emitFlatChunk(Value rowIndex, const Chunk &chunk);
  void emitFlat();
  SmallVector<Value> neutrals(unsigned stage, int64_t width);
  SmallVector<Value> sweep(unsigned stage);
  void reduceTeam(unsigned stage, ArrayRef<Value> accumulators);
  Value butterfly(Operation *combiner, Value value, int64_t width);
  void emitTeamRow(Value rowIndex);
  void emitTeams();
};

/// Shuffles and the words of shared memory are 32 bits.
LogicalResult DeviceRows::checkReductions() {
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Reduce && !node->type.isF32() && !node->type.isInteger(32))
      return node->op.emitError("reduces ")
             << node->type << ", but device code reduces f32 and i32; cast to one of them first";
  return success();
}

Value DeviceRows::guarded(Value condition, Type type, function_ref<Value()> load) {
  if (!condition)
    return load();
  return lanes
      .select(
          condition, [&] { return SmallVector<Value>{load()}; },
          [&] { return SmallVector<Value>{arith::ConstantOp::create(b, b.getZeroAttr(type))}; })
      .front();
}

Value DeviceRows::loadStream(Value buffer, const LinearForm &strides, Value at, Type type,
                             const LaneBlock &block) {
  Type shaped = block.width == 1 ? type : VectorType::get({block.width}, type);
  return guarded(present, shaped, [&] {
    return block.width == 1 || layout.aligned(graph, strides)
               ? lanes.load(buffer, at, type, block)
               : lanes.loadStrided(buffer, at, strides.back(), type, block);
  });
}

Value DeviceRows::loadElement(RowNode *node, Value column, const LaneBlock &block) {
  Value at = lanes.add(loadBases.lookup(node), lanes.scaled(column, node->strides.back()));
  return loadStream(inputs[node->argument], node->strides, at, node->type, block);
}

Value DeviceRows::loadKept(RowNode *node, Value column, const LaneBlock &block) {
  unsigned result = schedule.reread.lookup(node);
  return loadStream(outputs[result], graph.results[result].strides,
                    lanes.add(storeBases[result], column), node->type, block);
}

Value DeviceRows::loadUniform(RowNode *node, Value at) {
  bool ofRow = llvm::any_of(node->strides, [](int64_t stride) { return stride != 0; });
  return guarded(ofRow ? rowPresent : nullptr, node->type,
                 [&] { return RowValues::loadUniform(node, at); });
}

/// Everything is computed before anything is stored, so that a result may lie over an input.
void DeviceRows::emitStores(unsigned stageNumber, const Chunk &chunk, BlockValues &values) {
  RowStage &stage = schedule.stages[stageNumber];
  SmallVector<Value> stored;
  present = chunk.present;
  for (unsigned result : stage.stores)
    stored.push_back(
        element(graph.results[result].node, stageNumber, chunk.column, chunk.block(), values));
  for (auto [result, value] : llvm::zip(stage.stores, stored))
    lanes.when(both(chunk.present, storeGuards[result]), [&, result = result, value = value] {
      Value at = lanes.add(storeBases[result], chunk.column);
      if (chunk.width == 1 || layout.aligned(graph, graph.results[result].strides)) {
        lanes.store(value, outputs[result], at, chunk.block());
        return;
      }
      Value lane = lanes.widen(value, chunk.width);
      for (int64_t i = 0; i < chunk.width; ++i)
        lanes.storeScalar(lanes.lane(lane, i), outputs[result],
                          i ? lanes.add(at, lanes.index(i)) : at);
    });
}

//===----------------------------------------------------------------------===//
// Without reductions
//===----------------------------------------------------------------------===//

void DeviceRows::emitFlatChunk(Value rowIndex, const Chunk &chunk) {
  auto shared = uniforms;
  enterRow(rowIndex);
  columnBegin = chunk.column;
  enterStage(0);
  BlockValues values;
  emitStores(0, chunk, values);
  storeRowResults();
  uniforms = std::move(shared);
}

void DeviceRows::emitFlat() {
  emitShared();
  int64_t items = schedule.rows * layout.chunks + layout.tail;
  Value first = lanes.add(lanes.scaled(lanes.block(), layout.block), lanes.thread());
  auto emitItem = [&](Value item) {
    if (schedule.rows > 1) {
      emitFlatChunk(
          lanes.div(item, layout.chunks),
          {lanes.scaled(lanes.rem(item, layout.chunks), layout.width), nullptr, layout.width});
      return;
    }
    Value zero = lanes.index(0);
    auto whole = [&] {
      emitFlatChunk(zero, {lanes.scaled(item, layout.width), nullptr, layout.width});
    };
    // A chunk of one element is as good as one of the tail.
    int64_t behind = layout.chunks * (layout.width - 1);
    auto single = [&] { emitFlatChunk(zero, {lanes.add(item, lanes.index(behind)), nullptr, 1}); };
    if (layout.tail == 0)
      return whole();
    if (layout.chunks == 0)
      return single();
    auto branch = scf::IfOp::create(b, lanes.less(item, layout.chunks), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    whole();
    b.setInsertionPointToStart(branch.elseBlock());
    single();
  };
  if (layout.rounds == 1) {
    bool ragged = items % layout.block != 0;
    lanes.when(ragged ? lanes.less(first, items) : Value(), [&] { emitItem(first); });
    return;
  }
  lanes.loop(first, lanes.index(items), layout.grid * layout.block, {},
             [&](Value item, ValueRange) {
               emitItem(item);
               return SmallVector<Value>();
             });
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

SmallVector<Value> DeviceRows::neutrals(unsigned stage, int64_t width) {
  SmallVector<Value> values;
  for (RowNode *reduction : schedule.stages[stage].reductions)
    values.push_back(lanes.splat(lanes.neutral(reduction->combiner), width));
  return values;
}

/// Adds a chunk to the accumulators; where there are none yet, it becomes them.
void DeviceRows::accumulate(unsigned stageNumber, const Chunk &chunk, BlockValues &values,
                            SmallVectorImpl<Value> &accumulators) {
  RowStage &stage = schedule.stages[stageNumber];
  bool first = accumulators.empty();
  present = chunk.present;
  for (auto [i, reduction] : llvm::enumerate(stage.reductions)) {
    Value value = contribution(reduction, stageNumber, chunk.column, chunk.block(), values);
    if (chunk.present)
      value = arith::SelectOp::create(b, chunk.present, value,
                                      lanes.splat(lanes.neutral(reduction->combiner), chunk.width));
    if (first)
      accumulators.push_back(value);
    else
      accumulators[i] = lanes.combine(reduction->combiner, accumulators[i], value);
  }
}

/// A stage of a long row: the thread's chunks one after the other, then what is left over at the
/// row's ends.
SmallVector<Value> DeviceRows::sweep(unsigned stageNumber) {
  RowStage &stage = schedule.stages[stageNumber];
  int64_t width = layout.width, columns = schedule.columns;
  Value head, chunks = lanes.index(layout.chunks);
  if (layout.peeled) {
    // Row r starts r * columns elements behind an aligned address.
    Value start = lanes.rem(lanes.scaled(row, columns % width), width);
    head = lanes.rem(arith::SubIOp::create(b, lanes.index(width), start), width);
    chunks = lanes.div(arith::SubIOp::create(b, lanes.index(columns), head), width);
  }
  SmallVector<Value> totals =
      lanes.loop(thread, chunks, layout.team, neutrals(stageNumber, width),
                 [&](Value number, ValueRange carried) {
                   Chunk chunk{lanes.add(head, lanes.scaled(number, width)), rowPresent, width};
                   SmallVector<Value> accumulators(carried);
                   BlockValues values;
                   accumulate(stageNumber, chunk, values, accumulators);
                   emitStores(stageNumber, chunk, values);
                   return accumulators;
                 });
  for (auto [reduction, total] : llvm::zip_equal(stage.reductions, totals))
    total = lanes.horizontal(reduction->combiner, total);
  if (!layout.peeled)
    return totals;
  // Thread t takes the t-th of the elements outside chunks, which are fewer than a team.
  Value inside = lanes.scaled(chunks, width);
  Value outside = arith::SubIOp::create(b, lanes.index(columns), inside);
  auto takeOne = [&] {
    Value inHead = lanes.less(thread, head);
    Value column = arith::SelectOp::create(b, inHead, thread, lanes.add(thread, inside));
    Chunk chunk{column, rowPresent, 1};
    BlockValues values;
    SmallVector<Value> accumulators(totals);
    accumulate(stageNumber, chunk, values, accumulators);
    emitStores(stageNumber, chunk, values);
    return accumulators;
  };
  return lanes.select(lanes.less(thread, outside), takeOne, [&] { return totals; });
}

/// All lanes of each group of `width` lanes end with the combination of the group's values.
Value DeviceRows::butterfly(Operation *combiner, Value value, int64_t width) {
  for (int64_t distance = width / 2; distance > 0; distance /= 2) {
    Value other = gpu::ShuffleOp::create(b, value, static_cast<int32_t>(distance), warp,
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    value = lanes.combine(combiner, value, other);
  }
  return value;
}

void DeviceRows::reduceTeam(unsigned stageNumber, ArrayRef<Value> accumulators) {
  RowStage &stage = schedule.stages[stageNumber];
  if (stage.reductions.empty())
    return;
  SmallVector<Value> totals;
  for (auto [reduction, accumulator] : llvm::zip_equal(stage.reductions, accumulators))
    totals.push_back(butterfly(reduction->combiner,
                               lanes.horizontal(reduction->combiner, accumulator),
                               std::min(layout.team, warp)));
  if (int64_t warps = layout.team / warp; warps > 1) {
    Value lane = lanes.rem(thread, warp);
    SmallVector<Value> slots;
    for (Value total : totals)
      slots.push_back(lanes.shared(function, warps, total.getType()));
    lanes.when(lanes.equal(lane, 0), [&] {
      Value number = lanes.div(thread, warp);
      for (auto [slot, total] : llvm::zip_equal(slots, totals))
        lanes.storeScalar(total, slot, number);
    });
    lanes.barrier();
    Value number = lanes.rem(lane, warps);
    for (auto [reduction, slot, total] : llvm::zip_equal(stage.reductions, slots, totals))
      total =
          butterfly(reduction->combiner, lanes.loadScalar(slot, number, total.getType()), warps);
  }
  for (auto [reduction, total] : llvm::zip_equal(stage.reductions, totals))
    finish(reduction, total);
}

void DeviceRows::emitTeamRow(Value rowIndex) {
  enterRow(rowIndex);
  SmallVector<Chunk> chunks;
  for (int64_t k = 0; layout.unrolled && k < layout.perThread; ++k) {
    Value number = k ? lanes.add(thread, lanes.index(k * layout.team)) : thread;
    bool always = (k + 1) * layout.team <= layout.chunks;
    chunks.push_back({lanes.scaled(number, layout.width),
                      both(rowPresent, always ? Value() : lanes.less(number, layout.chunks)),
                      layout.width});
  }
  SmallVector<BlockValues> values(chunks.size());
  for (unsigned stageNumber = 0; stageNumber < schedule.stages.size(); ++stageNumber) {
    RowStage &stage = schedule.stages[stageNumber];
    if (stage.reductions.empty() && stage.stores.empty())
      continue;
    enterStage(stageNumber);
    SmallVector<Value> accumulators;
    if (layout.unrolled) {
      for (auto [chunk, own] : llvm::zip_equal(chunks, values)) {
        accumulate(stageNumber, chunk, own, accumulators);
        emitStores(stageNumber, chunk, own);
      }
    } else {
      accumulators = sweep(stageNumber);
    }
    reduceTeam(stageNumber, accumulators);
  }
  bool overlaps = llvm::any_of(schedule.rowResults,
                               [&](unsigned result) { return mayLieOverInput.test(result); });
  Value writes = both(rowPresent, layout.team > 1 ? lanes.equal(thread, 0) : Value());
  storeRowResults(writes, [&] {
    if (!overlaps || layout.team == 1)
      return;
    if (layout.team > warp)
      lanes.barrier();
    else
      NVVM::SyncWarpOp::create(b, arith::ConstantOp::create(b, b.getI32IntegerAttr(-1)));
  });
}

void DeviceRows::emitTeams() {
  emitShared();
  Value block = lanes.block();
  thread = lanes.thread();
  if (layout.team > warp || layout.rowsPerBlock() == 1)
    return emitTeamRow(block);
  Value row = lanes.add(lanes.scaled(block, layout.rowsPerBlock()), lanes.div(thread, layout.team));
  thread = lanes.rem(thread, layout.team);
  Value exists = schedule.rows % layout.rowsPerBlock() ? lanes.less(row, schedule.rows) : Value();
  // A whole warp may leave; part of one stays for the shuffles.
  if (layout.team == warp)
    return lanes.when(exists, [&] { emitTeamRow(row); });
  rowPresent = exists;
  emitTeamRow(row);
}

LogicalResult DeviceRows::emit(func::FuncOp tensors, DeviceKernel &kernel) {
  if (failed(check(tensors)) || failed(checkReductions()))
    return failure();
  mayLieOverInput.resize(graph.results.size());
  for (unsigned result = 0; result < graph.results.size(); ++result)
    for (unsigned input = 0; input < graph.inputTypes.size(); ++input)
      if (schedule.reusable(result, input))
        mayLieOverInput.set(result);
  function = kernel.function("", kernel.operands(), {layout.block});
  // A grid ends behind the last chunk, and a loop's counter one grid behind that.
  if (2 * layout.grid * layout.block * layout.rounds > INT32_MAX)
    kernel.module()->setAttr(index64AttrName, b.getUnitAttr());
  b.setInsertionPointToStart(&function.getBody().front());
  for (unsigned i = 0; i < kernel.operands().size(); ++i)
    (i < graph.inputTypes.size() ? inputs : outputs).push_back(lanes.flat(function.getArgument(i)));
  if (graph.hasReductions)
    emitTeams();
  else
    emitFlat();
  b.setInsertionPointToEnd(&function.getBody().front());
  gpu::ReturnOp::create(b);
  kernel.launch(function, {layout.grid}, kernel.operands());
  return success();
}

} // namespace

FailureOr<exec::DeviceKernelOp> emitDeviceRows(exec::KernelOp kernel, ModuleOp target,
                                               const CudaTarget &cuda) {
  auto tensors = lowerToTensorForm(kernel);
  if (failed(tensors))
    return failure();
  auto graph = RowGraph::build(**tensors);
  if (failed(graph))
    return failure();
  (*graph)->mergeDimensions();
  RowSchedule schedule(**graph, /*spillLimit=*/0);
  DeviceKernel device(kernel, target);
  ImplicitLocOpBuilder builder(kernel.getLoc(), kernel.getContext());
  DeviceLanes lanes(builder);
  if (failed(DeviceRows(**graph, schedule, lanes).emit(**tensors, device)))
    return failure();
  return device.op();
}

} // namespace descent
