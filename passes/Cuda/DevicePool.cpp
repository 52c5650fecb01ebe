//===- DevicePool.cpp - Max pooling and its gradient on a device ----------===//
//
// NHWC: a thread takes as many neighbouring channels of one pixel as one access moves. Windows are
// clipped to the image before their loops start, so padding is never read and never wins.
//
// The gradient goes to the first maximum of a window in row-major order. A thread owns a pixel of
// dx and visits the windows that hold it, in order: it looks for each window's winner and adds dy
// where that is its own pixel. So nothing is added to memory, and the bits are those of the CPU.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Codegen/TableRows.h"
#include "passes/Cuda/DeviceKernel.h"
#include "passes/Cuda/DeviceKernels.h"
#include "passes/Cuda/DeviceLanes.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t threads = 256;

struct DevicePool {
  DeviceKernel device;
  ImplicitLocOpBuilder b;
  DeviceLanes lanes;
  RankedTensorType image, pooled;
  ArrayRef<int64_t> kernel, strides, padding;
  int64_t width; ///< channels of a thread

  DevicePool(exec::KernelOp kernelOp, ModuleOp target, Value image, Value pooled,
             ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding)
      : device(kernelOp, target), b(kernelOp.getLoc(), kernelOp.getContext()), lanes(b),
        image(cast<RankedTensorType>(image.getType())),
        pooled(cast<RankedTensorType>(pooled.getType())), kernel(kernel), strides(strides),
        padding(padding), width(commonWidth(16 / deviceBytes(element()), {c()})) {}

  int64_t n() const { return image.getShape()[0]; }
  int64_t h() const { return image.getShape()[1]; }
  int64_t w() const { return image.getShape()[2]; }
  int64_t c() const { return image.getShape()[3]; }
  int64_t oh() const { return pooled.getShape()[1]; }
  int64_t ow() const { return pooled.getShape()[2]; }
  Type element() const { return image.getElementType(); }

  Value wide(Value v) { return widenFloat(b, b.getLoc(), v); }
  Value narrow(Value v) { return narrowFloat(b, b.getLoc(), v, element()); }
  Value number(double value) { return lanes.uniform(b.getF32FloatAttr(value), width); }
  Value atLeast0(Value a) { return arith::MaxSIOp::create(b, a, lanes.index(0)); }
  Value atMost(Value a, int64_t most) { return arith::MinSIOp::create(b, a, lanes.index(most)); }
  Value minus(Value a, Value other) { return arith::SubIOp::create(b, a, other); }

  /// The window positions [first, last) that lie in the image, on one axis, and the image position
  /// of window position 0.
  struct Range {
    Value origin, first, last;
  };
  Range clip(Value out, int64_t stride, int64_t pad, int64_t window, int64_t size,
             int64_t outputs) {
    Value origin = lanes.add(lanes.scaled(out, stride), lanes.index(-pad));
    Range range{origin, lanes.index(0), lanes.index(window)};
    if (pad > 0)
      range.first = atLeast0(minus(lanes.index(0), origin));
    if ((outputs - 1) * stride - pad + window > size)
      range.last = atMost(minus(lanes.index(size), origin), window);
    return range;
  }
  Range rowsOf(Value out) { return clip(out, strides[0], padding[0], kernel[0], h(), oh()); }
  Range columnsOf(Value out) { return clip(out, strides[1], padding[2], kernel[1], w(), ow()); }

  /// The outputs [first, last) whose windows hold position `at` on one axis.
  std::pair<Value, Value> outputsAround(Value at, int64_t stride, int64_t pad, int64_t window,
                                        int64_t outputs) {
    Value padded = lanes.add(at, lanes.index(pad));
    // ceil((padded - window + 1) / stride), of a number that the clamp makes non-negative.
    Value first = lanes.div(atLeast0(lanes.add(padded, lanes.index(stride - window))), stride);
    Value last = lanes.add(lanes.div(padded, stride), lanes.index(1));
    return {first, atMost(last, outputs)};
  }

  /// body(offset of the pixel in the image, window position number, carried) over the window, in
  /// row-major order.
  SmallVector<Value> window(Value batch, const Range &rows, const Range &columns,
                            ValueRange carried,
                            llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
    return lanes.loop(rows.first, rows.last, 1, carried, [&](Value i, ValueRange outer) {
      Value line =
          lanes.scaled(lanes.add(lanes.scaled(batch, h()), lanes.add(rows.origin, i)), w());
      return lanes.loop(columns.first, columns.last, 1, outer, [&](Value j, ValueRange inner) {
        Value pixel = lanes.add(line, lanes.add(columns.origin, j));
        return body(lanes.scaled(pixel, c()), lanes.add(lanes.scaled(i, kernel[1]), j), inner);
      });
    });
  }

  /// One thread for `width` channels of each pixel of an [n, height, breadth, c] tensor.
  void
  launch(gpu::GPUFuncOp function, int64_t height, int64_t breadth,
         llvm::function_ref<void(Value batch, Value row, Value column, Value channel, Value offset)>
             body);
  void emitForward();
  void emitGradient();
};

void DevicePool::launch(gpu::GPUFuncOp function, int64_t height, int64_t breadth,
                        llvm::function_ref<void(Value, Value, Value, Value, Value)> body) {
  int64_t chunks = c() / width, items = n() * height * breadth * chunks;
  Value item = lanes.add(lanes.scaled(lanes.block(), threads), lanes.thread());
  lanes.when(items % threads ? lanes.less(item, items) : Value(), [&] {
    SmallVector<Value> at = lanes.indices(item, {n(), height, breadth, chunks});
    body(at[0], at[1], at[2], lanes.scaled(at[3], width), lanes.scaled(item, width));
  });
  gpu::ReturnOp::create(b);
  int64_t blocks = llvm::divideCeil(items, threads);
  device.launch(function, {blocks}, device.operands());
}

void DevicePool::emitForward() {
  gpu::GPUFuncOp function = device.function("", device.operands(), {threads});
  b.setInsertionPointToStart(&function.getBody().front());
  Value x = lanes.flat(function.getArgument(0)), y = lanes.flat(function.getArgument(1));
  launch(
      function, oh(), ow(), [&](Value batch, Value row, Value column, Value channel, Value offset) {
        SmallVector<Value> best = window(
            batch, rowsOf(row), columnsOf(column), number(-std::numeric_limits<double>::infinity()),
            [&](Value pixel, Value, ValueRange carried) {
              Value value = wide(lanes.read(x, lanes.add(pixel, channel), element(), width));
              return SmallVector<Value>{arith::MaximumFOp::create(b, carried[0], value)};
            });
        lanes.write(narrow(best[0]), y, offset, width);
      });
}

void DevicePool::emitGradient() {
  // With no wish ptxas squeezes it into the 32 registers that would fill a multiprocessor, and
  // spills on some chips.
  gpu::GPUFuncOp function =
      device.function("", device.operands(), {threads}, /*blocksPerMultiprocessor=*/5);
  b.setInsertionPointToStart(&function.getBody().front());
  Value dy = lanes.flat(function.getArgument(0)), x = lanes.flat(function.getArgument(1)),
        dx = lanes.flat(function.getArgument(2));
  auto asNumber = [&](Value index) {
    return lanes.spread(arith::IndexCastOp::create(b, b.getI32Type(), index), width);
  };
  launch(
      function, h(), w(), [&](Value batch, Value row, Value column, Value channel, Value offset) {
        auto [firstRow, lastRow] = outputsAround(row, strides[0], padding[0], kernel[0], oh());
        auto [firstColumn, lastColumn] =
            outputsAround(column, strides[1], padding[2], kernel[1], ow());
        // The loops below have one iteration at most where windows do not overlap.
        SmallVector<Value> sums =
            lanes.loop(firstRow, lastRow, 1, number(0), [&](Value outRow, ValueRange outer) {
              Range rows = rowsOf(outRow);
              return lanes.loop(
                  firstColumn, lastColumn, 1, outer, [&](Value outColumn, ValueRange inner) {
                    Range columns = columnsOf(outColumn);
                    // Before any comparison the first position inside the image is the winner,
                    // should all be -inf.
                    Value start =
                        asNumber(lanes.add(lanes.scaled(rows.first, kernel[1]), columns.first));
                    SmallVector<Value> best = window(
                        batch, rows, columns,
                        {number(-std::numeric_limits<double>::infinity()), start},
                        [&](Value pixel, Value position, ValueRange carried) {
                          Value value =
                              wide(lanes.read(x, lanes.add(pixel, channel), element(), width));
                          // A NaN is the maximum, the first one wins: greater, or unordered where
                          // the best so far is a number.
                          Value better = arith::AndIOp::create(
                              b,
                              arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, value,
                                                    carried[0]),
                              arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, carried[0],
                                                    carried[0]));
                          return SmallVector<Value>{
                              arith::SelectOp::create(b, better, value, carried[0]),
                              arith::SelectOp::create(b, better, asNumber(position), carried[1])};
                        });
                    Value here =
                        asNumber(lanes.add(lanes.scaled(minus(row, rows.origin), kernel[1]),
                                           minus(column, columns.origin)));
                    Value out =
                        lanes.add(lanes.scaled(lanes.add(lanes.scaled(batch, oh()), outRow), ow()),
                                  outColumn);
                    Value gradient = wide(lanes.read(dy, lanes.add(lanes.scaled(out, c()), channel),
                                                     element(), width));
                    Value wins = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, here, best[1]);
                    Value added = arith::AddFOp::create(b, inner[0], gradient);
                    return SmallVector<Value>{arith::SelectOp::create(b, wins, added, inner[0])};
                  });
            });
        lanes.write(narrow(sums[0]), dx, offset, width);
      });
}

} // namespace

FailureOr<exec::DeviceKernelOp> emitDevicePool(exec::KernelOp kernel, ModuleOp target,
                                               const CudaTarget &) {
  Operation *op = &kernel.getBody().front().front();
  if (auto pool = dyn_cast<nn::MaxPool2DOp>(op); pool && isAlone(op, kernel)) {
    DevicePool emitter(kernel, target, pool.getX(), pool.getY(), pool.getKernel(),
                       pool.getStrides(), pool.getPadding());
    emitter.emitForward();
    return emitter.device.op();
  }
  if (auto grad = dyn_cast<nn::MaxPool2DGradOp>(op); grad && isAlone(op, kernel)) {
    DevicePool emitter(kernel, target, grad.getX(), grad.getDy(), grad.getKernel(),
                       grad.getStrides(), grad.getPadding());
    emitter.emitGradient();
    return emitter.device.op();
  }
  return kernel.emitError("a kernel of kind \"pool\" holds one op, 'nn.max_pool2d' or "
                          "'nn.max_pool2d_grad', on the kernel's inputs in "
                          "their order"),
         failure();
}

} // namespace descent
