//===- DeviceColumns.cpp - Reductions over leading axes on a device -------===//
//
// [R, C] -> [C] and [O, R, I] -> [O, I], with elementwise producers. A thread
// owns a few neighbouring columns, as many as 16 bytes hold, so that the
// threads of a warp read consecutive chunks of a row; the rows of a block go
// round its groups of threads.
//
//     launch 1: block (kept, part, strip of columns)
//       for each row of the part that is this group's, four at once
//         load, compute, accumulate                      chains of 128 rows at
//         most, then their sums
//       the groups' sums by halves, in shared memory
//       store them as partial sums [kept][part][C]
//     launch 2: block (kept, strip of columns)
//       the same with the parts as rows
//       elementwise ops on the sums, store
//
// Where one launch has enough blocks, or rows are few, it does everything. The
// number of parts follows from the shape alone, and everything is added in a
// fixed order: the bits are the same on every chip.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Codegen/ColumnSweep.h"
#include "passes/Codegen/TensorForm.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t warp = 32, blockThreads = 256;
/// Blocks that keep the largest chips busy; a part more would only be one more
/// partial sum to read.
constexpr int64_t wantedBlocks = 512;
/// Rows that one thread adds up without a sum of sums.
constexpr int64_t longestChain = 128;
constexpr int64_t sharedBytes = 40 << 10;

class DeviceColumns : ColumnSweep {
public:
  DeviceColumns(RowGraph &graph, DeviceLanes &lanes, DeviceKernel &device)
      : ColumnSweep(graph, lanes), lanes(lanes), device(device) {}

  LogicalResult emit(func::FuncOp tensors);

private:
  DeviceLanes &lanes;
  DeviceKernel &device;

  /// How one launch deals out its rows and columns.
  struct Shape {
    int64_t width = 1;  ///< columns of a thread
    int64_t across = 1; ///< threads side by side on a row
    int64_t groups = 1; ///< such groups in a block, each with rows of its own
    int64_t strips = 1; ///< blocks side by side
    int64_t parts = 1;  ///< blocks one below the other
    int64_t partRows = 1;
    int64_t threads() const { return across * groups; }
  };
  Shape shapeFor(int64_t rowCount, int64_t widest, int64_t mostAcross) const;
  int64_t widestAccess() const;

  Value read(Value buffer, Value at, Type element, int64_t stride) override {
    return stride == 0   ? lanes.read(buffer, at, element, 1)
           : stride == 1 ? lanes.read(buffer, at, element, laneCount)
                         : lanes.readStrided(buffer, at, stride, element, laneCount);
  }
  void write(Value value, Value buffer, Value at) override {
    lanes.write(value, buffer, at, laneCount);
  }

  using Row = llvm::function_ref<SmallVector<Value>(Value row, ValueRange carried)>;
  SmallVector<Value> sumRows(const Shape &shape, int64_t rowCount, Value part, Value group,
                             Row row);
  SmallVector<Value> sumGroups(const Shape &shape, gpu::GPUFuncOp function, ValueRange sums,
                               Value across, Value group);
  void emitLaunch(const Shape &shape, int64_t rowCount, ArrayRef<Value> partials, bool reads);
  Value partialOffset(Value part, int64_t parts);
};

/// The most columns that every access to neighbours can be aligned to. What
/// every row reads or writes shall come in pieces of 16 bytes; the rest may
/// take several.
int64_t DeviceColumns::widestAccess() const {
  SmallVector<int64_t> multiples = {columns};
  int64_t largest = 2;
  auto access = [&](Type type, const LinearForm &strides, int64_t base) {
    if (strides.back() != 1)
      return;
    multiples.append(strides.begin(), strides.end() - 1);
    multiples.push_back(base);
    if (llvm::any_of(reduced, [&](unsigned i) { return strides[i] != 0; }))
      largest = std::max(largest, deviceBytes(type));
  };
  for (auto &node : graph.nodes())
    if (node->kind == RowNode::Kind::Load)
      access(node->type, node->strides, node->base);
  for (const RowResult &result : graph.results)
    access(result.type, result.strides, 0);
  return commonWidth(16 / largest, multiples);
}

DeviceColumns::Shape DeviceColumns::shapeFor(int64_t rowCount, int64_t widest,
                                             int64_t mostAcross) const {
  Shape shape;
  int64_t bytes = 0;
  for (RowNode *reduction : reductions)
    bytes += deviceBytes(reduction->type);
  for (shape.width = widest;; shape.width /= 2) {
    shape.across = std::min<int64_t>(mostAcross, llvm::bit_ceil(uint64_t(columns / shape.width)));
    shape.groups =
        std::clamp<int64_t>(llvm::bit_ceil(uint64_t(rowCount)),
                            std::max<int64_t>(1, warp / shape.across), blockThreads / shape.across);
    if (shape.width == 1 || shape.threads() * shape.width * bytes <= sharedBytes)
      break;
  }
  while (shape.groups > 1 && shape.threads() * shape.width * bytes > sharedBytes)
    shape.groups /= 2;
  shape.strips = llvm::divideCeil(columns / shape.width, shape.across);
  shape.partRows = rowCount;
  return shape;
}

/// This thread's sums of the rows of `part`.
SmallVector<Value> DeviceColumns::sumRows(const Shape &shape, int64_t rowCount, Value part,
                                          Value group, Row row) {
  Value from, to;
  if (shape.parts == 1) {
    from = lanes.index(0);
    to = lanes.index(rowCount);
  } else {
    from = lanes.scaled(part, shape.partRows);
    to = lanes.add(from, lanes.index(shape.partRows));
    if (rowCount % shape.partRows)
      to = arith::MinSIOp::create(b, to, lanes.index(rowCount));
  }
  int64_t own = llvm::divideCeil(shape.partRows, shape.groups);
  int64_t unroll = std::min<int64_t>(llvm::bit_floor(uint64_t(own)),
                                     int64_t(reductions.size()) * laneCount > 16 ? 2 : 4);
  auto sum = [&](Value begin, Value end) {
    return lanes.unrolled(lanes.add(begin, group), end, shape.groups, unroll, neutrals(), row);
  };
  if (own <= longestChain)
    return sum(from, to);
  int64_t chunk = longestChain * shape.groups;
  return lanes.loop(from, to, chunk, neutrals(), [&](Value begin, ValueRange carried) {
    Value end = lanes.add(begin, lanes.index(chunk));
    if (rowCount % chunk || shape.partRows % chunk)
      end = arith::MinSIOp::create(b, end, to);
    return combine(carried, sum(begin, end));
  });
}

/// Adds the sums of all groups; those of the block are left with group 0. Each
/// round has memory of its own, so one barrier a round is enough.
SmallVector<Value> DeviceColumns::sumGroups(const Shape &shape, gpu::GPUFuncOp function,
                                            ValueRange sums, Value across, Value group) {
  SmallVector<Value> result(sums), buffers;
  if (shape.groups == 1)
    return result;
  for (RowNode *reduction : reductions)
    buffers.push_back(lanes.shared(function, shape.threads() * laneCount, reduction->type));
  auto place = [&](Value ofGroup) {
    return lanes.scaled(lanes.add(lanes.scaled(ofGroup, shape.across), across), laneCount);
  };
  for (int64_t half = shape.groups / 2; half > 0; half /= 2) {
    Value low = lanes.less(group, half);
    Value high = arith::AndIOp::create(
        b, lanes.less(group, 2 * half),
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, group, lanes.index(half)));
    lanes.when(high, [&] {
      for (auto [value, buffer] : llvm::zip_equal(result, buffers))
        lanes.write(value, buffer, place(group), laneCount);
    });
    lanes.barrier();
    result = lanes.select(
        low,
        [&] {
          SmallVector<Value> others;
          for (auto [reduction, buffer] : llvm::zip_equal(reductions, buffers))
            others.push_back(lanes.read(buffer, place(lanes.add(group, lanes.index(half))),
                                        reduction->type, laneCount));
          return combine(result, others);
        },
        [&] { return result; });
  }
  return result;
}

/// Where the partial sums of a part at keptIndex and column lie.
Value DeviceColumns::partialOffset(Value part, int64_t parts) {
  Value line = part;
  if (keptCount > 1)
    line = lanes.add(lanes.scaled(keptIndex, parts), part);
  return lanes.add(lanes.scaled(line, columns), column);
}

/// `partials` are read where `reads`, and written where there are any and not.
void DeviceColumns::emitLaunch(const Shape &shape, int64_t rowCount, ArrayRef<Value> partials,
                               bool reads) {
  bool last = partials.empty() || reads;
  SmallVector<Value> buffers(device.operands());
  llvm::append_range(buffers, partials);
  gpu::GPUFuncOp function = device.function(partials.empty() ? ""
                                            : reads          ? "sums"
                                                             : "parts",
                                            buffers, {shape.threads()});
  b.setInsertionPointToStart(&function.getBody().front());
  inputs.clear();
  outputs.clear();
  SmallVector<Value> lent;
  for (unsigned i = 0; i < buffers.size(); ++i)
    (i < graph.inputTypes.size()                              ? inputs
     : i < graph.inputTypes.size() + graph.resultTypes.size() ? outputs
                                                              : lent)
        .push_back(lanes.flat(function.getArgument(i)));

  laneCount = shape.width;
  SmallVector<Value> place = lanes.indices(lanes.block(), {keptCount, shape.parts, shape.strips});
  keptIndex = place[0];
  Value part = place[1], strip = place[2];
  SmallVector<Value> own = lanes.indices(lanes.thread(), {shape.groups, shape.across});
  Value group = own[0], across = own[1];
  column = lanes.scaled(lanes.add(lanes.scaled(strip, shape.across), across), laneCount);
  Value inside;
  if (shape.strips * shape.across * laneCount != columns)
    inside = lanes.less(column, columns);

  SmallVector<Value> sums = lanes.select(
      inside,
      [&] {
        if (reads)
          return sumRows(shape, rowCount, part, group, [&](Value row, ValueRange carried) {
            SmallVector<Value> values;
            for (auto [reduction, buffer] : llvm::zip_equal(reductions, lent))
              values.push_back(
                  lanes.read(buffer, partialOffset(row, rowCount), reduction->type, laneCount));
            return combine(carried, values);
          });
        enter();
        prepareSweep();
        return sumRows(shape, rowCount, part, group,
                       [&](Value row, ValueRange carried) { return accumulateRow(row, carried); });
      },
      [&] { return neutrals(); });
  sums = sumGroups(shape, function, sums, across, group);
  Value writes = inside;
  if (shape.groups > 1)
    writes = lanes.both(lanes.equal(group, 0), inside);
  lanes.when(writes, [&] {
    enter();
    if (last)
      return finish(sums);
    for (auto [sum, buffer] : llvm::zip_equal(sums, lent))
      lanes.write(sum, buffer, partialOffset(part, shape.parts), laneCount);
  });
  gpu::ReturnOp::create(b);
  device.launch(function, {keptCount * shape.parts * shape.strips}, buffers);
}

LogicalResult DeviceColumns::emit(func::FuncOp tensors) {
  if (failed(check(tensors)))
    return failure();
  int64_t widest = widestAccess();
  Shape shape = shapeFor(rows, widest, warp);
  int64_t blocks = keptCount * shape.strips;
  if (rows > 16 * shape.groups && blocks < wantedBlocks / 2) {
    int64_t parts =
        std::min(llvm::divideCeil(wantedBlocks, blocks), llvm::divideCeil(rows, 4 * shape.groups));
    shape.partRows = llvm::alignTo(llvm::divideCeil(rows, parts), shape.groups);
    shape.parts = llvm::divideCeil(rows, shape.partRows);
  }
  if (shape.parts == 1) {
    shape.partRows = rows;
    emitLaunch(shape, rows, {}, false);
    return success();
  }
  SmallVector<Value> partials;
  for (RowNode *reduction : reductions)
    partials.push_back(device.workspace(
        MemRefType::get({keptCount * shape.parts * columns}, deviceElement(reduction->type))));
  emitLaunch(shape, rows, partials, false);
  // Strips of 128 bytes: more of them, since now rows are few.
  emitLaunch(shapeFor(shape.parts, commonWidth(4, {widest}), 8), shape.parts, partials, true);
  return success();
}

} // namespace

LogicalResult appendDeviceColumns(exec::KernelOp kernel, DeviceKernel &device) {
  auto tensors = lowerToTensorForm(kernel);
  if (failed(tensors))
    return failure();
  auto graph = RowGraph::build(**tensors);
  if (failed(graph))
    return failure();
  (*graph)->mergeDimensions();
  // With one column, the rows are the last axis.
  unsigned dimensions = (*graph)->sizes.size();
  if (llvm::any_of((*graph)->nodes(), [&](auto &node) {
        return node->kind == RowNode::Kind::Reduce &&
               llvm::is_contained(node->reduced, dimensions - 1);
      }))
    (*graph)->appendUnitDimension();
  ImplicitLocOpBuilder builder(kernel.getLoc(), kernel.getContext());
  DeviceLanes lanes(builder);
  return DeviceColumns(**graph, lanes, device).emit(**tensors);
}

FailureOr<exec::DeviceKernelOp> emitDeviceColumns(exec::KernelOp kernel, ModuleOp target,
                                                  const CudaTarget &) {
  DeviceKernel device(kernel, target);
  if (failed(appendDeviceColumns(kernel, device)))
    return failure();
  return device.op();
}

} // namespace descent
