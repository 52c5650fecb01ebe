//===- GatherKernel.cpp - Embedding and its gradient ----------------------===//
//
// gather: tasks are blocks of indices; each copies rows of the table.
//
// scatter: tasks are blocks of columns. A task clears its columns of the table and then adds the
// rows of dy in the order of the indices, so repeated indices add in one fixed order whatever the
// number of threads, and rows that no index names are exactly 0. A table narrower than f32 is
// summed in scratch and rounded once; the rows of dy may be narrower than the table.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/TableRows.h"

using namespace mlir;

namespace descent {

Value tableRow(Lanes &lanes, Value index, int64_t rows) {
  ImplicitLocOpBuilder &b = lanes.b;
  Value row = arith::IndexCastOp::create(b, b.getIndexType(), index);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, lanes.index(0));
  row = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, row, lanes.index(rows)), row);
  row = arith::MaxSIOp::create(b, row, lanes.index(0));
  return arith::MinSIOp::create(b, row, lanes.index(rows - 1));
}

/// body(column, block) over a row in blocks of `width` lanes and a masked rest.
static void overColumns(Lanes &lanes, int64_t columns, int64_t width, int64_t least,
                        llvm::function_ref<void(Value, const LaneBlock &)> body) {
  int64_t rest = columns % width, whole = columns - rest;
  if (whole)
    lanes.loop(lanes.index(0), lanes.index(whole), width, {}, [&](Value column, ValueRange) {
      body(column, LaneBlock{width, width, nullptr});
      return SmallVector<Value>();
    });
  if (rest)
    body(lanes.index(whole), lanes.block(rest, least));
}

FailureOr<func::FuncOp> emitGatherKernel(exec::KernelOp kernel, ModuleOp target,
                                         const CpuTarget &cpu) {
  auto op = soleOp<nn::EmbeddingOp>(kernel);
  if (failed(op))
    return failure();
  auto indicesType = cast<RankedTensorType>(op->getIndices().getType());
  auto tableType = cast<RankedTensorType>(op->getTable().getType());
  int64_t count = indicesType.getNumElements(), columns = tableType.getShape().back(),
          rows = tableType.getShape().front();
  int64_t bytes = 2 * columns * storageBytes(tableType.getElementType());
  int64_t perTask = std::clamp<int64_t>((16 << 10) / bytes, 1, count),
          tasks = llvm::divideCeil(count, perTask);

  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  Lanes lanes(b);
  SmallVector<Type> buffers = {bufferType(indicesType), bufferType(tableType),
                               bufferType(cast<RankedTensorType>(op->getY().getType()))};
  func::FuncOp function =
      createKernelFunction(target, kernel.getLoc(), kernel.getName(), buffers, tasks, 0);
  b.setInsertionPointToStart(&function.getBody().front());
  Value indices = lanes.flat(function.getArgument(0)), table = lanes.flat(function.getArgument(1)),
        y = lanes.flat(function.getArgument(2));
  Value from = lanes.scaled(function.getArgument(3), perTask),
        to = lanes.scaled(function.getArgument(4), perTask);
  if (count % perTask)
    to = arith::MinUIOp::create(b, to, lanes.index(count));
  lanes.loop(from, to, 1, {}, [&](Value i, ValueRange) {
    Value row = tableRow(lanes, lanes.loadScalar(indices, i, indicesType.getElementType()), rows);
    Value source = lanes.scaled(row, columns), destination = lanes.scaled(i, columns);
    overColumns(lanes, columns, 4 * cpu.lanes(), 4, [&](Value column, const LaneBlock &block) {
      Value value = lanes.load(table, lanes.add(source, column), tableType.getElementType(), block);
      lanes.store(value, y, lanes.add(destination, column), block);
    });
    return SmallVector<Value>();
  });
  func::ReturnOp::create(b);
  return function;
}

FailureOr<func::FuncOp> emitScatterKernel(exec::KernelOp kernel, ModuleOp target,
                                          const CpuTarget &cpu) {
  auto op = soleOp<nn::EmbeddingGradOp>(kernel);
  if (failed(op))
    return failure();
  auto gradType = cast<RankedTensorType>(op->getDy().getType());
  auto indicesType = cast<RankedTensorType>(op->getIndices().getType());
  auto tableType = cast<RankedTensorType>(op->getDtable().getType());
  int64_t count = indicesType.getNumElements(), columns = tableType.getShape().back(),
          rows = tableType.getShape().front();
  Type from = gradType.getElementType(), element = tableType.getElementType();
  bool narrow = !element.isF32();
  // Blocks as wide as leaves some for every thread, but at least a register: a narrower one wastes
  // its cache lines.
  int64_t width = 4 * cpu.lanes();
  while (width > cpu.lanes() && llvm::divideCeil(columns, width) < 8)
    width /= 2;
  int64_t tasks = llvm::divideCeil(columns, width), rest = columns % width;

  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  Lanes lanes(b);
  Type f32 = b.getF32Type();
  SmallVector<Type> buffers = {bufferType(gradType), bufferType(indicesType),
                               bufferType(tableType)};
  func::FuncOp function = createKernelFunction(target, kernel.getLoc(), kernel.getName(), buffers,
                                               tasks, narrow ? rows * width * 4 : 0);
  b.setInsertionPointToStart(&function.getBody().front());
  Value dy = lanes.flat(function.getArgument(0)), indices = lanes.flat(function.getArgument(1)),
        table = lanes.flat(function.getArgument(2));
  Value sums = narrow ? lanes.scratchView(function.getArgument(5), 0, rows * width, f32) : table;
  int64_t pitch = narrow ? width : columns;

  auto emitTask = [&](Value column, const LaneBlock &block) {
    auto at = [&](Value row) {
      return narrow ? lanes.scaled(row, pitch) : lanes.add(lanes.scaled(row, pitch), column);
    };
    Value zero = lanes.splat(b.getF32FloatAttr(0), block.width);
    lanes.loop(lanes.index(0), lanes.index(rows), 1, {}, [&](Value row, ValueRange) {
      lanes.store(zero, sums, at(row), block);
      return SmallVector<Value>();
    });
    lanes.loop(lanes.index(0), lanes.index(count), 1, {}, [&](Value i, ValueRange) {
      Value row = tableRow(lanes, lanes.loadScalar(indices, i, indicesType.getElementType()), rows);
      Value value = widenFloat(
          b, b.getLoc(), lanes.load(dy, lanes.add(lanes.scaled(i, columns), column), from, block));
      Value place = at(row);
      lanes.store(arith::AddFOp::create(b, lanes.load(sums, place, f32, block), value), sums, place,
                  block);
      return SmallVector<Value>();
    });
    if (narrow)
      lanes.loop(lanes.index(0), lanes.index(rows), 1, {}, [&](Value row, ValueRange) {
        Value sum = lanes.load(sums, at(row), f32, block);
        Value rounded = narrowFloat(b, b.getLoc(), sum, element);
        lanes.store(rounded, table, lanes.add(lanes.scaled(row, columns), column), block);
        return SmallVector<Value>();
      });
  };
  lanes.loop(function.getArgument(3), function.getArgument(4), 1, {}, [&](Value task, ValueRange) {
    Value isLast, isFull;
    if (rest && tasks > 1) {
      isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, task, lanes.index(tasks - 1));
      isFull = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, task, lanes.index(tasks - 1));
    }
    if (columns >= width)
      lanes.when(isFull, [&] {
        emitTask(lanes.scaled(task, width), LaneBlock{width, width, nullptr});
      });
    if (rest)
      lanes.when(isLast, [&] { emitTask(lanes.index(columns - rest), lanes.block(rest, 4)); });
    return SmallVector<Value>();
  });
  func::ReturnOp::create(b);
  return function;
}

} // namespace descent
