//===- PoolKernel.cpp - Max pooling and its gradient ----------------------===//
//
// NHWC, vectors over the channels. The window is clipped to the image before its loops start, so
// padding is never read and never wins.
//
// The gradient goes to the first maximum of a window in row-major order. Windows overlap where the
// stride is smaller than the kernel, so a task owns whole images for a block of channels: it clears
// its part of dx, then visits the windows in order, each twice, once to find the winner and once to
// add dy there.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/TableRows.h"

using namespace mlir;

namespace descent {

namespace {

struct PoolEmitter {
  const CpuTarget &cpu;
  ImplicitLocOpBuilder b;
  Lanes lanes;
  RankedTensorType image, pooled;
  ArrayRef<int64_t> kernel, strides, padding;

  PoolEmitter(Operation *op, const CpuTarget &cpu, Value image, Value pooled,
              ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding)
      : cpu(cpu), b(op->getLoc(), op->getContext()), lanes(b),
        image(cast<RankedTensorType>(image.getType())),
        pooled(cast<RankedTensorType>(pooled.getType())), kernel(kernel), strides(strides),
        padding(padding) {}

  int64_t n() const { return image.getShape()[0]; }
  int64_t h() const { return image.getShape()[1]; }
  int64_t w() const { return image.getShape()[2]; }
  int64_t c() const { return image.getShape()[3]; }
  int64_t oh() const { return pooled.getShape()[1]; }
  int64_t ow() const { return pooled.getShape()[2]; }
  Type element() const { return image.getElementType(); }

  Value wide(Value v) {
    if (element().isF32())
      return v;
    return arith::ExtFOp::create(b, cast<VectorType>(v.getType()).clone(b.getF32Type()), v);
  }
  Value narrow(Value v) {
    if (element().isF32())
      return v;
    return arith::TruncFOp::create(b, cast<VectorType>(v.getType()).clone(element()), v);
  }

  /// The window positions [first, last) that lie in the image, on one axis, and the image position
  /// of window position 0.
  struct Range {
    Value origin, first, last;
  };
  Range clip(Value out, int64_t stride, int64_t pad, int64_t window, int64_t size) {
    Value origin = arith::SubIOp::create(b, lanes.scaled(out, stride), lanes.index(pad));
    Value zero = lanes.index(0);
    Value first = arith::MaxSIOp::create(b, arith::SubIOp::create(b, zero, origin), zero);
    Value last = arith::MinSIOp::create(b, arith::SubIOp::create(b, lanes.index(size), origin),
                                        lanes.index(window));
    return {origin, first, last};
  }

  /// body(offset of (row, column) in the image, window position number, carried) over the window,
  /// in row-major order.
  SmallVector<Value> window(Value batch, const Range &rows, const Range &columns,
                            ValueRange carried,
                            llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
    return lanes.loop(rows.first, rows.last, 1, carried, [&](Value i, ValueRange outer) {
      Value row = arith::AddIOp::create(b, rows.origin, i);
      Value line = lanes.scaled(lanes.add(lanes.scaled(batch, h()), row), w());
      return lanes.loop(columns.first, columns.last, 1, outer, [&](Value j, ValueRange inner) {
        Value column = arith::AddIOp::create(b, columns.origin, j);
        Value offset = lanes.scaled(lanes.add(line, column), c());
        return body(offset, lanes.add(lanes.scaled(i, kernel[1]), j), inner);
      });
    });
  }

  void overChannels(llvm::function_ref<void(Value, const LaneBlock &)> body) {
    int64_t width = std::min<int64_t>(
        4 * cpu.lanes(), std::max<int64_t>(4, llvm::bit_floor(static_cast<uint64_t>(c()))));
    int64_t rest = c() % width, whole = c() - rest;
    if (whole)
      lanes.loop(lanes.index(0), lanes.index(whole), width, {}, [&](Value channel, ValueRange) {
        body(channel, LaneBlock{width, width, nullptr});
        return SmallVector<Value>();
      });
    if (rest)
      body(lanes.index(whole), lanes.block(rest, 4));
  }

  func::FuncOp emitForward(exec::KernelOp kernelOp, ModuleOp target);
  func::FuncOp emitGradient(exec::KernelOp kernelOp, ModuleOp target);
};

func::FuncOp PoolEmitter::emitForward(exec::KernelOp kernelOp, ModuleOp target) {
  int64_t lines = n() * oh();
  int64_t bytes =
      std::max<int64_t>(1, ow() * c() * storageBytes(element()) * (1 + kernel[0] * kernel[1]));
  int64_t perTask = std::clamp<int64_t>((32 << 10) / bytes, 1, lines),
          tasks = llvm::divideCeil(lines, perTask);
  func::FuncOp function = createKernelFunction(target, b.getLoc(), kernelOp.getName(),
                                               {bufferType(image), bufferType(pooled)}, tasks, 0);
  b.setInsertionPointToStart(&function.getBody().front());
  Value x = lanes.flat(function.getArgument(0)), y = lanes.flat(function.getArgument(1));
  Value from = lanes.scaled(function.getArgument(2), perTask),
        to = lanes.scaled(function.getArgument(3), perTask);
  if (lines % perTask)
    to = arith::MinUIOp::create(b, to, lanes.index(lines));
  lanes.loop(from, to, 1, {}, [&](Value line, ValueRange) {
    Value batch = arith::DivUIOp::create(b, line, lanes.index(oh())),
          row = arith::RemUIOp::create(b, line, lanes.index(oh()));
    Range rows = clip(row, strides[0], padding[0], kernel[0], h());
    return lanes.loop(lanes.index(0), lanes.index(ow()), 1, {}, [&](Value column, ValueRange) {
      Range columns = clip(column, strides[1], padding[2], kernel[1], w());
      Value out = lanes.scaled(lanes.add(lanes.scaled(line, ow()), column), c());
      overChannels([&](Value channel, const LaneBlock &block) {
        Value least = lanes.splat(
            b.getFloatAttr(b.getF32Type(), -std::numeric_limits<float>::infinity()), block.width);
        SmallVector<Value> best =
            window(batch, rows, columns, least, [&](Value offset, Value, ValueRange carried) {
              Value value = wide(lanes.load(x, lanes.add(offset, channel), element(), block));
              auto flags = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::nsz);
              return SmallVector<Value>{arith::MaximumFOp::create(b, carried[0], value, flags)};
            });
        lanes.store(narrow(best[0]), y, lanes.add(out, channel), block);
      });
      return SmallVector<Value>();
    });
  });
  func::ReturnOp::create(b);
  return function;
}

func::FuncOp PoolEmitter::emitGradient(exec::KernelOp kernelOp, ModuleOp target) {
  int64_t width = std::min<int64_t>(
      2 * cpu.lanes(), std::max<int64_t>(4, llvm::bit_ceil(static_cast<uint64_t>(c()))));
  int64_t channelTasks = llvm::divideCeil(c(), width), rest = c() % width;
  // Narrow gradients are summed in scratch and rounded once.
  bool rounds = !element().isF32();
  int64_t scratch = rounds ? h() * w() * width * 4 : 0;
  func::FuncOp function = createKernelFunction(
      target, b.getLoc(), kernelOp.getName(),
      {bufferType(pooled), bufferType(image), bufferType(image)}, n() * channelTasks, scratch);
  b.setInsertionPointToStart(&function.getBody().front());
  Value dy = lanes.flat(function.getArgument(0)), x = lanes.flat(function.getArgument(1)),
        dx = lanes.flat(function.getArgument(2));
  Type f32 = b.getF32Type();
  Value sums = rounds ? lanes.scratchView(function.getArgument(5), 0, h() * w() * width, f32) : dx;

  auto emitTask = [&](Value batch, Value channel, const LaneBlock &block) {
    Value base = lanes.scaled(batch, h() * w() * c());
    auto positionType = VectorType::get({block.width}, b.getI32Type());
    // From an offset of x to the place of its sum.
    auto place = [&](Value offset) -> Value {
      if (!rounds)
        return lanes.add(offset, channel);
      Value pixel =
          arith::DivUIOp::create(b, arith::SubIOp::create(b, offset, base), lanes.index(c()));
      return lanes.scaled(pixel, width);
    };
    Value zero = lanes.splat(b.getF32FloatAttr(0), block.width);
    lanes.loop(lanes.index(0), lanes.index(h() * w()), 1, {}, [&](Value pixel, ValueRange) {
      lanes.store(zero, sums, place(lanes.add(base, lanes.scaled(pixel, c()))), block);
      return SmallVector<Value>();
    });
    lanes.loop(lanes.index(0), lanes.index(oh()), 1, {}, [&](Value row, ValueRange) {
      Range rows = clip(row, strides[0], padding[0], kernel[0], h());
      return lanes.loop(lanes.index(0), lanes.index(ow()), 1, {}, [&](Value column, ValueRange) {
        Range columns = clip(column, strides[1], padding[2], kernel[1], w());
        Value out =
            lanes.add(lanes.scaled(lanes.add(lanes.scaled(batch, oh()), row), ow()), column);
        Value gradient =
            wide(lanes.load(dy, lanes.add(lanes.scaled(out, c()), channel), element(), block));
        auto asLanes = [&](Value index) -> Value {
          return vector::BroadcastOp::create(b, positionType,
                                             arith::IndexCastOp::create(b, b.getI32Type(), index));
        };
        // Before any comparison the first position inside the image is the winner, should all be
        // -inf.
        Value start = asLanes(lanes.add(lanes.scaled(rows.first, kernel[1]), columns.first));
        Value least =
            lanes.splat(b.getFloatAttr(f32, -std::numeric_limits<float>::infinity()), block.width);
        SmallVector<Value> best = window(
            batch, rows, columns, {least, start},
            [&](Value offset, Value number, ValueRange carried) {
              Value value = wide(lanes.load(x, lanes.add(offset, channel), element(), block));
              // A NaN is the maximum, the first one wins: greater, or unordered where the best so
              // far is a number.
              Value notLess =
                  arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, value, carried[0]);
              Value isNumber =
                  arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, carried[0], carried[0]);
              Value better = arith::AndIOp::create(b, notLess, isNumber);
              Value next = arith::SelectOp::create(b, better, value, carried[0]);
              Value winner = arith::SelectOp::create(b, better, asLanes(number), carried[1]);
              return SmallVector<Value>{next, winner};
            });
        window(batch, rows, columns, {}, [&](Value offset, Value number, ValueRange) {
          Value wins = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, asLanes(number), best[1]);
          Value at = place(offset), sum = lanes.load(sums, at, f32, block);
          Value added = arith::AddFOp::create(b, sum, gradient);
          lanes.store(arith::SelectOp::create(b, wins, added, sum), sums, at, block);
          return SmallVector<Value>();
        });
        return SmallVector<Value>();
      });
    });
    if (rounds)
      lanes.loop(lanes.index(0), lanes.index(h() * w()), 1, {}, [&](Value pixel, ValueRange) {
        Value offset = lanes.add(base, lanes.scaled(pixel, c()));
        lanes.store(narrow(lanes.load(sums, place(offset), f32, block)), dx,
                    lanes.add(offset, channel), block);
        return SmallVector<Value>();
      });
  };

  lanes.loop(function.getArgument(3), function.getArgument(4), 1, {}, [&](Value task, ValueRange) {
    Value batch = arith::DivUIOp::create(b, task, lanes.index(channelTasks));
    Value channelTask = arith::RemUIOp::create(b, task, lanes.index(channelTasks));
    Value isLast, isFull;
    if (rest && channelTasks > 1) {
      isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, channelTask,
                                     lanes.index(channelTasks - 1));
      isFull = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, channelTask,
                                     lanes.index(channelTasks - 1));
    }
    if (c() >= width)
      lanes.when(isFull, [&] {
        emitTask(batch, lanes.scaled(channelTask, width), LaneBlock{width, width, nullptr});
      });
    if (rest)
      lanes.when(isLast, [&] { emitTask(batch, lanes.index(c() - rest), lanes.block(rest, 4)); });
    return SmallVector<Value>();
  });
  func::ReturnOp::create(b);
  return function;
}

} // namespace

FailureOr<func::FuncOp> emitPoolKernel(exec::KernelOp kernel, ModuleOp target,
                                       const CpuTarget &cpu) {
  Operation *op = &kernel.getBody().front().front();
  bool alone = isAlone(op, kernel);
  if (auto pool = dyn_cast<nn::MaxPool2DOp>(op); pool && alone)
    return PoolEmitter(op, cpu, pool.getX(), pool.getY(), pool.getKernel(), pool.getStrides(),
                       pool.getPadding())
        .emitForward(kernel, target);
  if (auto grad = dyn_cast<nn::MaxPool2DGradOp>(op); grad && alone)
    return PoolEmitter(op, cpu, grad.getX(), grad.getDy(), grad.getKernel(), grad.getStrides(),
                       grad.getPadding())
        .emitGradient(kernel, target);
  return kernel.emitError("a kernel of kind \"pool\" holds one op, 'nn.max_pool2d' or "
                          "'nn.max_pool2d_grad', on the kernel's inputs in "
                          "their order"),
         failure();
}

} // namespace descent
