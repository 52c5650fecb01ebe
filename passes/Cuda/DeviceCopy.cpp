//===- DeviceCopy.cpp - Kernels that move elements on a device ------------===//
//
// The pieces of a copy kernel (CopyPieces.h) number their blocks one after the other, so that one
// launch moves them all. A piece is moved in one of two ways:
//   - element by element: a thread takes as many neighbours of the destination as 16 bytes hold and
//     alignment allows, and reads them as one access where they are neighbours at the source too.
//     Runs whose length alone is in the way are cut, the rest is a piece of its own. Constants and
//     broadcasts are such pieces without a source, or with strides of 0;
//   - a run that is strided at the source where another loop is contiguous there (a transpose): by
//     tiles in shared memory, whose lines are 128 bytes on either side and padded so that neither
//     reading nor writing a column of a tile meets the same bank more often than needed.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Codegen/CopyPieces.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t threads = 256;
/// Blocks that keep the largest chips busy; beyond them a thread takes several accesses.
constexpr int64_t wantedBlocks = 1024;
/// Loops shorter than this are no sides of tiles.
constexpr int64_t shortestSide = 8;
constexpr unsigned piecesPerLaunch = 24;

class DeviceCopy {
public:
  DeviceCopy(DeviceKernel &device, DeviceLanes &lanes) : device(device), b(lanes.b), lanes(lanes) {}

  LogicalResult emit(exec::KernelOp kernel);

private:
  DeviceKernel &device;
  ImplicitLocOpBuilder &b;
  DeviceLanes &lanes;
  SmallVector<Value> inputs, outputs;
  llvm::MapVector<Attribute, std::string> tables; ///< literals of several values, as globals
  llvm::MapVector<Type, Value> tiles;             ///< shared memory by type of element

  struct Plan {
    CopyPiece piece;
    int run = -1;                          ///< loop with destination stride 1, or -1
    int across = -1;                       ///< loop with source stride 1 of a transpose, or -1
    int64_t readWidth = 1, writeWidth = 1; ///< elements of an access
    int64_t items = 1, perThread = 1;      ///< accesses, where not by tiles
    int64_t blocks = 1;
  };
  static void plan(CopyPiece piece, std::vector<Plan> &plans);
  void declareTable(DenseElementsAttr table, StringRef kernel);
  Value sourceOf(const CopyPiece &piece);
  void emitPlan(const Plan &plan, gpu::GPUFuncOp function, Value block);
  void emitItems(const Plan &plan, Value block);
  void emitTiles(const Plan &plan, gpu::GPUFuncOp function, Value block);
  void emitLaunch(ArrayRef<Plan> plans, unsigned number, bool alone);
};

int64_t tileSide(Type element) { return std::max<int64_t>(32, 128 / deviceBytes(element)); }

int64_t tilePitch(Type element) {
  return tileSide(element) + std::max<int64_t>(1, 4 / deviceBytes(element));
}

/// Offsets that neighbours along `loop` are added to.
SmallVector<int64_t> otherOffsets(const CopyPiece &piece, ArrayRef<int64_t> strides, int64_t base,
                                  int loop) {
  SmallVector<int64_t> offsets = {base};
  for (auto [i, stride] : llvm::enumerate(strides))
    if (static_cast<int>(i) != loop)
      offsets.push_back(stride);
  return offsets;
}

void DeviceCopy::plan(CopyPiece piece, std::vector<Plan> &plans) {
  Plan plan;
  for (unsigned i = 0; i < piece.sizes.size(); ++i)
    if (piece.to[i] == 1)
      plan.run = i;
  if (plan.run >= 0 && piece.readsMemory() && piece.from[plan.run] > 1 &&
      piece.sizes[plan.run] >= shortestSide)
    for (unsigned i = 0; i < piece.sizes.size(); ++i)
      if (piece.from[i] == 1 && piece.sizes[i] >= shortestSide)
        plan.across = i;
  int64_t most = 16 / deviceBytes(piece.element);
  if (plan.across >= 0) {
    SmallVector<int64_t> reads = otherOffsets(piece, piece.from, piece.fromBase, plan.across),
                         writes = otherOffsets(piece, piece.to, piece.toBase, plan.run);
    reads.push_back(piece.sizes[plan.across]);
    writes.push_back(piece.sizes[plan.run]);
    plan.readWidth = commonWidth(most, reads);
    plan.writeWidth = commonWidth(most, writes);
    int64_t side = tileSide(piece.element);
    plan.blocks = llvm::divideCeil(piece.sizes[plan.across], side) *
                  llvm::divideCeil(piece.sizes[plan.run], side) * piece.count() /
                  (piece.sizes[plan.across] * piece.sizes[plan.run]);
    plan.piece = std::move(piece);
    plans.push_back(std::move(plan));
    return;
  }
  if (plan.run >= 0) {
    SmallVector<int64_t> offsets = otherOffsets(piece, piece.to, piece.toBase, plan.run);
    bool together = piece.readsMemory() && piece.from[plan.run] == 1;
    if (together)
      offsets.append(otherOffsets(piece, piece.from, piece.fromBase, plan.run));
    int64_t width = commonWidth(most, offsets), size = piece.sizes[plan.run], rest = size % width;
    if (rest && size >= 8 * width) {
      CopyPiece end = piece;
      end.sizes[plan.run] = rest;
      end.toBase += size - rest;
      end.fromBase += (size - rest) * piece.from[plan.run];
      piece.sizes[plan.run] = size - rest;
      DeviceCopy::plan(std::move(piece), plans);
      DeviceCopy::plan(std::move(end), plans);
      return;
    }
    plan.writeWidth = commonWidth(width, {size});
    plan.readWidth = together ? plan.writeWidth : 1;
  }
  plan.items = piece.count() / plan.writeWidth;
  while (plan.perThread < 4 && plan.items >= 2 * plan.perThread * threads * wantedBlocks)
    plan.perThread *= 2;
  plan.blocks = llvm::divideCeil(plan.items, threads * plan.perThread);
  plan.piece = std::move(piece);
  plans.push_back(std::move(plan));
}

/// Puts a literal into the device's constant data, in the form in which buffers store its elements.
void DeviceCopy::declareTable(DenseElementsAttr table, StringRef kernel) {
  if (!table || tables.contains(table))
    return;
  Type element = table.getElementType();
  DenseElementsAttr flat = table.reshape(table.getType().clone({table.getNumElements()}));
  if (element.isInteger(1))
    flat = flat.mapValues(deviceElement(element), [](const APInt &bit) { return bit.zext(8); });
  auto type = MemRefType::get({table.getNumElements()}, deviceElement(element));
  std::string name = (kernel + ".constant" + Twine(tables.size())).str();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(device.module().getBody());
  memref::GlobalOp::create(b, name, b.getStringAttr("private"), type, flat,
                           /*constant=*/true, b.getI64IntegerAttr(16));
  tables[table] = name;
}

/// The flat buffer that a piece reads; null for a fill.
Value DeviceCopy::sourceOf(const CopyPiece &piece) {
  if (piece.input >= 0)
    return inputs[piece.input];
  if (!piece.table)
    return Value();
  auto type =
      MemRefType::get({piece.table.getNumElements()}, deviceElement(piece.table.getElementType()));
  return memref::GetGlobalOp::create(b, type, tables[piece.table]);
}

void DeviceCopy::emitItems(const Plan &plan, Value block) {
  const CopyPiece &piece = plan.piece;
  Value target = outputs[piece.result], source = sourceOf(piece);
  SmallVector<int64_t> sizes(piece.sizes);
  int64_t step = plan.run < 0 ? 0 : piece.from[plan.run];
  if (plan.run >= 0)
    sizes[plan.run] /= plan.writeWidth;
  auto places = [&](Value item) {
    Value to = lanes.index(piece.toBase), from = lanes.index(piece.fromBase);
    for (auto [loop, at] : llvm::enumerate(lanes.indices(item, sizes))) {
      if (static_cast<int>(loop) == plan.run)
        at = lanes.scaled(at, plan.writeWidth);
      to = lanes.add(to, lanes.scaled(at, piece.to[loop]));
      if (piece.from[loop])
        from = lanes.add(from, lanes.scaled(at, piece.from[loop]));
    }
    return std::pair(to, from);
  };
  auto load = [&](Value from) -> Value {
    if (!source)
      return lanes.constant(piece.fill);
    if (step == 0)
      return lanes.read(source, from, piece.element, 1);
    return step == 1 ? lanes.read(source, from, piece.element, plan.writeWidth)
                     : lanes.readStrided(source, from, step, piece.element, plan.writeWidth);
  };
  Value begin = lanes.scaled(block, threads * plan.perThread),
        first = lanes.add(begin, lanes.thread());
  auto whole = [&] {
    SmallVector<std::pair<Value, Value>> values;
    for (int64_t k = 0; k < plan.perThread; ++k) {
      auto [to, from] = places(k == 0 ? first : lanes.add(first, lanes.index(k * threads)));
      values.push_back({to, load(from)});
    }
    for (auto [to, value] : values)
      lanes.write(value, target, to, plan.writeWidth);
    return SmallVector<Value>();
  };
  if (plan.items % (threads * plan.perThread) == 0) {
    whole();
    return;
  }
  auto some = [&] {
    Value end = lanes.index(plan.items);
    if (plan.perThread > 1)
      lanes.loop(first, end, threads, {}, [&](Value item, ValueRange) {
        auto [to, from] = places(item);
        lanes.write(load(from), target, to, plan.writeWidth);
        return SmallVector<Value>();
      });
    else
      lanes.when(lanes.less(first, end), [&] { whole(); });
    return SmallVector<Value>();
  };
  if (plan.perThread == 1) {
    some();
    return;
  }
  lanes.select(lanes.less(begin, plan.items - threads * plan.perThread + 1), whole, some);
}

void DeviceCopy::emitTiles(const Plan &plan, gpu::GPUFuncOp function, Value block) {
  const CopyPiece &piece = plan.piece;
  int64_t side = tileSide(piece.element), pitch = tilePitch(piece.element);
  Value &tile = tiles[piece.element];
  if (!tile)
    tile = lanes.shared(function, side * pitch, piece.element);
  Value target = outputs[piece.result], source = sourceOf(piece);
  int64_t runSize = piece.sizes[plan.run], acrossSize = piece.sizes[plan.across];

  // The block's tile: outer loops, then tiles along the two sides.
  SmallVector<int64_t> sizes;
  SmallVector<unsigned> outer;
  for (unsigned i = 0; i < piece.sizes.size(); ++i)
    if (static_cast<int>(i) != plan.run && static_cast<int>(i) != plan.across) {
      outer.push_back(i);
      sizes.push_back(piece.sizes[i]);
    }
  sizes.push_back(llvm::divideCeil(acrossSize, side));
  sizes.push_back(llvm::divideCeil(runSize, side));
  SmallVector<Value> at = lanes.indices(block, sizes);
  Value runStart = lanes.scaled(at.pop_back_val(), side),
        acrossStart = lanes.scaled(at.pop_back_val(), side);
  Value to = lanes.index(piece.toBase), from = lanes.index(piece.fromBase);
  for (auto [loop, position] : llvm::zip_equal(outer, at)) {
    to = lanes.add(to, lanes.scaled(position, piece.to[loop]));
    if (piece.from[loop])
      from = lanes.add(from, lanes.scaled(position, piece.from[loop]));
  }
  // body(line of the tile, first place in it): threads side by side on lines.
  auto lines = [&](int64_t width, llvm::function_ref<void(Value, Value)> body) {
    int64_t perLine = side / width;
    SmallVector<Value> own = lanes.indices(lanes.thread(), {threads / perLine, perLine});
    Value place = lanes.scaled(own[1], width);
    lanes.loop(own[0], lanes.index(side), threads / perLine, {}, [&](Value line, ValueRange) {
      body(line, place);
      return SmallVector<Value>();
    });
  };
  auto inside = [&](Value run, Value across) {
    Value condition;
    if (runSize % side)
      condition = lanes.less(run, runSize);
    if (acrossSize % side)
      condition = lanes.both(condition, lanes.less(across, acrossSize));
    return condition;
  };
  lines(plan.readWidth, [&](Value line, Value place) {
    Value run = lanes.add(runStart, line), across = lanes.add(acrossStart, place);
    lanes.when(inside(run, across), [&] {
      Value value = lanes.read(
          source, lanes.add(lanes.add(from, lanes.scaled(run, piece.from[plan.run])), across),
          piece.element, plan.readWidth);
      Value here = lanes.add(lanes.scaled(line, pitch), place);
      for (int64_t k = 0; k < plan.readWidth; ++k)
        lanes.write(lanes.lane(value, k), tile, k == 0 ? here : lanes.add(here, lanes.index(k)), 1);
    });
  });
  lanes.barrier();
  lines(plan.writeWidth, [&](Value line, Value place) {
    Value across = lanes.add(acrossStart, line), run = lanes.add(runStart, place);
    lanes.when(inside(run, across), [&] {
      Value value = lanes.readStrided(tile, lanes.add(lanes.scaled(place, pitch), line), pitch,
                                      piece.element, plan.writeWidth);
      lanes.write(value, target,
                  lanes.add(lanes.add(to, lanes.scaled(across, piece.to[plan.across])), run),
                  plan.writeWidth);
    });
  });
}

void DeviceCopy::emitLaunch(ArrayRef<Plan> plans, unsigned number, bool alone) {
  gpu::GPUFuncOp function =
      device.function(alone ? "" : "pieces" + std::to_string(number), device.operands(), {threads});
  b.setInsertionPointToStart(&function.getBody().front());
  inputs.clear();
  outputs.clear();
  tiles.clear();
  for (auto [i, argument] : llvm::enumerate(function.getArguments()))
    (i < device.op().getInputs() ? inputs : outputs).push_back(lanes.flat(argument));
  Value block = lanes.block();
  int64_t start = 0;
  for (const Plan &plan : plans) {
    int64_t end = start + plan.blocks;
    Value own;
    if (start > 0)
      own = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, block, lanes.index(start));
    if (&plan != &plans.back())
      own = lanes.both(own, lanes.less(block, end));
    lanes.when(own, [&] {
      Value relative = start == 0 ? block : lanes.add(block, lanes.index(-start));
      plan.across >= 0 ? emitTiles(plan, function, relative) : emitItems(plan, relative);
    });
    start = end;
  }
  gpu::ReturnOp::create(b);
  device.launch(function, {start}, device.operands());
}

LogicalResult DeviceCopy::emit(exec::KernelOp kernel) {
  auto pieces = copyPieces(kernel);
  if (failed(pieces))
    return failure();
  std::vector<Plan> plans;
  for (CopyPiece &piece : *pieces) {
    declareTable(piece.table, kernel.getName());
    plan(piece, plans);
  }
  ArrayRef<Plan> rest = plans;
  for (unsigned number = 0; !rest.empty(); ++number) {
    size_t count = std::min<size_t>(rest.size(), piecesPerLaunch);
    emitLaunch(rest.take_front(count), number, plans.size() <= piecesPerLaunch);
    rest = rest.drop_front(count);
  }
  return success();
}

} // namespace

FailureOr<exec::DeviceKernelOp> emitDeviceCopy(exec::KernelOp kernel, ModuleOp target,
                                               const CudaTarget &) {
  DeviceKernel device(kernel, target);
  ImplicitLocOpBuilder builder(kernel.getLoc(), kernel.getContext());
  DeviceLanes lanes(builder);
  if (failed(DeviceCopy(device, lanes).emit(kernel)))
    return failure();
  return device.op();
}

} // namespace descent
