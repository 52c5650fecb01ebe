//===- DeviceGather.cpp - Rows of a table by index on a device ------------===//
//
// A thread copies as many neighbours of a row as one access moves; the threads
// of a row read its index from the same address.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/TableRows.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"

using namespace mlir;

namespace descent {

FailureOr<exec::DeviceKernelOp> emitDeviceGather(exec::KernelOp kernel, ModuleOp target,
                                                 const CudaTarget &) {
  auto op = soleOp<nn::EmbeddingOp>(kernel);
  if (failed(op))
    return failure();
  constexpr int64_t threads = 256;
  auto indicesType = cast<RankedTensorType>(op->getIndices().getType());
  auto tableType = cast<RankedTensorType>(op->getTable().getType());
  Type element = tableType.getElementType();
  int64_t rows = tableType.getShape().front(), columns = tableType.getShape().back();
  int64_t width = commonWidth(16 / deviceBytes(element), {columns}), chunks = columns / width;
  int64_t items = indicesType.getNumElements() * chunks;

  DeviceKernel device(kernel, target);
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  DeviceLanes lanes(b);
  gpu::GPUFuncOp function = device.function("", device.operands(), {threads});
  b.setInsertionPointToStart(&function.getBody().front());
  Value indices = lanes.flat(function.getArgument(0)), table = lanes.flat(function.getArgument(1)),
        y = lanes.flat(function.getArgument(2));
  Value item = lanes.add(lanes.scaled(lanes.block(), threads), lanes.thread());
  lanes.when(items % threads ? lanes.less(item, items) : Value(), [&] {
    SmallVector<Value> at = lanes.indices(item, {items / chunks, chunks});
    Value index = lanes.read(indices, at[0], indicesType.getElementType(), 1);
    Value from =
        lanes.add(lanes.scaled(tableRow(lanes, index, rows), columns), lanes.scaled(at[1], width));
    lanes.write(lanes.read(table, from, element, width), y, lanes.scaled(item, width), width);
  });
  gpu::ReturnOp::create(b);
  int64_t blocks = llvm::divideCeil(items, threads);
  device.launch(function, {blocks}, device.operands());
  return device.op();
}

} // namespace descent
