//===- DeviceContraction.cpp - Kernels of products for a device -----------===//
//
// Reads the kernel, plans its tile, says where the operands stand, and emits one function: a block
// computes a tile and hands each element through the epilogue. Where k is cut, blocks leave partial
// sums in the workspace instead, and a second function adds them in order and has the epilogue.
//
// The epilogue works on sums that lie in shared memory: a thread takes neighbours in a row, as many
// as 16 bytes of the widest result hold, so that results are stored, and other inputs read, in
// accesses of 16 bytes, whichever thread summed them. Its code stands in a loop, once, after the
// sums have left the registers. Every input of an element is read before a result of it is stored,
// by the same thread, so results may lie over inputs of their type.
//
// Convolutions are implicit matrix products: the matrix whose rows are pixels and whose columns are
// taps and channels is gathered tile by tile as it is copied to shared memory. There is no cuDNN
// behind them, by decision: it is a second set of eight libraries of half a gigabyte whose engines
// differ from version to version, for three ops; it would fix neither epilogues nor the order of
// sums; and in NHWC the gather costs a tile a few integer operations for 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceContraction.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/Codegen/ContractionBody.h"
#include "passes/Cuda/DeviceLanes.h"
#include "passes/Cuda/DeviceTile.h"
#include "passes/Fusion/LibraryForm.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

namespace {

/// A kernel's product as the generator sees it.
class ContractionEmitter {
public:
  ContractionEmitter(exec::KernelOp kernel, DeviceKernel &device)
      : kernel(kernel), device(device) {}

  LogicalResult emit(const CudaTarget &cuda);

private:
  exec::KernelOp kernel;
  DeviceKernel &device;
  ContractionBody body;
  std::optional<ConvolutionProduct> convolution;
  Contraction matrices; ///< where it is no convolution
  ProductSizes sizes;
  DeviceTilePlan plan;
  SmallVector<EpilogueInput> inputs;
  int64_t lanes = 1; ///< of the epilogue

  LogicalResult read();
  Type operandElement(unsigned which) {
    return cast<RankedTensorType>(kernel.getArgumentTypes()[which]).getElementType();
  }
  bool index64() { return device.module()->hasAttr(index64AttrName); }
  TileSource source(TileOps &e, unsigned which, Index batch);
  void tileFunction(Value partials, const CudaTarget &cuda);
  void sumFunction(Value partials);
  /// Reads the inputs of the elements from (row, column) on and stores their results. `row` counts
  /// through the batch, `buffers` are the kernel's operands without those of the product.
  void epilogue(DeviceLanes &l, Value sum, Index row, Index column, ValueRange buffers);
};

LogicalResult ContractionEmitter::read() {
  FailureOr<ContractionBody> read = ContractionBody::read(kernel);
  if (failed(read))
    return failure();
  body = *read;
  FailureOr<SmallVector<EpilogueInput>> others = body.inputs(kernel, deviceBufferType);
  if (failed(others))
    return failure();
  inputs = *others;
  convolution = ConvolutionProduct::of(body.product);
  if (convolution) {
    const ConvolutionShape &s = convolution->shape;
    int64_t taps = s.kernelHeight * s.kernelWidth;
    int64_t outPixels = s.images * s.outHeight * s.outWidth;
    switch (convolution->kind) {
    case ConvolutionKind::Forward:
      sizes = {1, outPixels, s.outChannels, taps * s.inChannels};
      break;
    case ConvolutionKind::InputGradient:
      sizes = {1, s.images * s.height * s.width, s.inChannels, taps * s.outChannels};
      break;
    case ConvolutionKind::WeightGradient:
      sizes = {1, taps * s.inChannels, s.outChannels, outPixels};
      break;
    }
    return success();
  }
  auto contraction = dyn_cast<ContractionOp>(body.product);
  if (!contraction)
    return body.product->emitOpError("has no generator of device code among the products (kernel @")
           << kernel.getSymName() << ")";
  matrices = contraction.getContraction();
  sizes = {matrices.batch, matrices.m, matrices.n, matrices.k};
  return success();
}

TileSource ContractionEmitter::source(TileOps &e, unsigned which, Index batch) {
  Type element = operandElement(which);
  auto multiples = [&](bool depthRuns) {
    int64_t extent = which == 0 ? plan.rows : plan.columns;
    return depthRuns ? TileMultiples{extent, plan.depth} : TileMultiples{plan.depth, extent};
  };
  auto matrix = [&](bool depthRuns, int64_t extent) {
    int64_t lines = depthRuns ? extent : sizes.k, runs = depthRuns ? sizes.k : extent;
    bool batched = sizes.batch > 1;
    return matrixSource(element, depthRuns, lines, runs, runs,
                        batched ? e.mul(batch, lines * runs) : Index(0), batched ? lines * runs : 0,
                        multiples(depthRuns));
  };
  if (!convolution)
    return which == 0 ? matrix(!matrices.transposeA, sizes.m)
                      : matrix(matrices.transposeB, sizes.n);
  const ConvolutionShape &s = convolution->shape;
  bool weightGradient = convolution->kind == ConvolutionKind::WeightGradient;
  if (which == 0) {
    // Without gaps and borders the pixels are a matrix as they are.
    bool pointwise = s.kernelHeight == 1 && s.kernelWidth == 1 && s.strideY == 1 &&
                     s.strideX == 1 && s.height == s.outHeight && s.width == s.outWidth;
    if (pointwise && s.padTop == 0 && s.padLeft == 0)
      return matrix(!weightGradient, sizes.m);
    return imageSource(element, !weightGradient, *convolution, multiples(!weightGradient));
  }
  if (convolution->kind == ConvolutionKind::InputGradient)
    return turnedWeightsSource(element, s, multiples(true));
  return matrix(false, sizes.n);
}

void ContractionEmitter::epilogue(DeviceLanes &l, Value sum, Index row, Index column,
                                  ValueRange buffers) {
  Emitter e(l.b, l.b.getLoc());
  SmallVector<Value> read;
  for (auto [input, buffer, type] : llvm::zip_equal(inputs, buffers.take_front(inputs.size()),
                                                    kernel.getArgumentTypes().drop_front(2))) {
    Index counted = e.div(row, input.rowDivisor);
    // The period may end with the rows.
    if (input.rowPeriod == 1)
      counted = 0;
    else if (input.rowPeriod * input.rowDivisor < sizes.batch * sizes.m)
      counted = e.rem(counted, input.rowPeriod);
    Index offset = e.add(e.mul(counted, input.rowStride), e.mul(column, input.columnStride));
    Value values =
        l.read(l.flat(buffer), e.value(offset), cast<RankedTensorType>(type).getElementType(),
               input.columnStride ? lanes : 1);
    read.push_back(l.spread(values, lanes));
  }
  SmallVector<Value> results = body.emit(l.b, l.b.getLoc(), kernel, sum, read);
  Value offset = e.value(e.add(e.mul(row, sizes.n), column));
  for (auto [result, buffer] : llvm::zip_equal(results, buffers.drop_front(inputs.size())))
    l.write(result, l.flat(buffer), offset, lanes);
}

void ContractionEmitter::tileFunction(Value partials, const CudaTarget &cuda) {
  SmallVector<Value> buffers;
  if (partials)
    buffers = {device.input(0), device.input(1), partials};
  else
    llvm::append_range(buffers, device.operands());
  gpu::GPUFuncOp function = device.function(partials ? "part" : "", buffers, {plan.threads()});
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  TileOps e(b, kernel.getLoc(), index64());
  DeviceLanes l(b);

  int64_t across = llvm::divideCeil(sizes.n, plan.columns),
          down = llvm::divideCeil(sizes.m, plan.rows);
  Index number = e.block(), tile = number;
  if (sizes.batch * plan.splits > 1) {
    tile = e.rem(number, across * down);
    number = e.div(number, across * down);
  } else {
    number = 0;
  }
  // Neighbouring blocks, which run together, share what they read: down a few tiles, then across.
  constexpr int64_t bandRows = 8;
  Index row = 0, column = 0;
  if (across == 1) {
    row = tile;
  } else if (down <= bandRows) {
    row = e.rem(tile, down);
    column = e.div(tile, down);
  } else {
    Index band = e.div(tile, bandRows * across), inBand = e.rem(tile, bandRows * across);
    Index height = bandRows; // less in the last band
    if (down % bandRows)
      height = e.min(e.sub(down, e.mul(band, bandRows)), bandRows);
    row = e.add(e.mul(band, bandRows), e.rem(inBand, height));
    column = e.div(inBand, height);
  }
  row = e.mul(row, plan.rows);
  column = e.mul(column, plan.columns);
  Index split = e.rem(number, plan.splits), batch = e.div(number, plan.splits);
  int64_t steps = llvm::divideCeil(sizes.k, plan.depth);
  Index from = e.mul(split, plan.splitSteps), to = steps;
  if (partials)
    to = e.min(e.add(from, plan.splitSteps), steps);

  Value shared = LLVM::AddressOfOp::create(b, device.dynamicShared());
  TileSource sourceA = source(e, 0, batch), sourceB = source(e, 1, batch);
  ValueRange arguments = function.getArguments();
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(static_cast<int32_t>(DeviceTile::blocksPerMultiprocessor(
                        plan, sourceA, sourceB, cuda.capability, body.epilogue.size()))));
  DeviceTile sum(e, plan, sourceA, sourceB);
  sum.emit(shared, e.globalPointer(arguments[0]), e.globalPointer(arguments[1]), row, column, from,
           to);

  int64_t pieces = plan.columns / lanes;
  e.loop(e.thread(), plan.rows * pieces, plan.threads(), [&](Index piece) {
    Index inRow = e.div(piece, pieces), inColumn = e.mul(e.rem(piece, pieces), lanes);
    Index globalRow = e.add(row, inRow), globalColumn = e.add(column, inColumn);
    Value exists;
    if (sizes.m % plan.rows)
      exists = e.less(globalRow, sizes.m);
    if (sizes.n % plan.columns)
      exists = e.both(exists, e.less(globalColumn, sizes.n));
    l.when(exists, [&] {
      Value sums = sum.sums(shared, inRow, inColumn, lanes);
      globalRow = e.add(globalRow, e.mul(batch, sizes.m));
      if (!partials)
        return epilogue(l, sums, globalRow, globalColumn, arguments.drop_front(2));
      Index place = e.add(e.mul(split, sizes.batch * sizes.m), globalRow);
      l.write(sums, l.flat(arguments[2]), e.value(e.add(e.mul(place, sizes.n), globalColumn)),
              lanes);
    });
  });
  gpu::ReturnOp::create(b);
  device.launch(function, {sizes.batch * plan.splits * down * across}, buffers, plan.sharedBytes());
}

void ContractionEmitter::sumFunction(Value partials) {
  constexpr int64_t threads = 256, loadsUnderWay = 4;
  SmallVector<Value> buffers = {partials};
  llvm::append_range(buffers, device.operands().drop_front(2));
  gpu::GPUFuncOp function = device.function("sum", buffers, {threads});
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  Emitter e(b, kernel.getLoc());
  DeviceLanes l(b);

  ValueRange arguments = function.getArguments();
  int64_t elements = sizes.batch * sizes.m * sizes.n, pieces = elements / lanes;
  Index piece = e.add(e.mul(l.block(), threads), l.thread());
  l.when(pieces % threads ? e.less(piece, pieces) : Value(), [&] {
    Value place = e.value(e.mul(piece, lanes)), flat = l.flat(arguments[0]);
    Type f32 = b.getF32Type();
    Value zero = l.uniform(cast<TypedAttr>(b.getZeroAttr(f32)), lanes);
    Value sum = l.unrolled(e.value(0), e.value(plan.splits), 1, loadsUnderWay, zero,
                           [&](Value split, ValueRange carried) -> SmallVector<Value> {
                             Value at = e.value(e.add(e.mul(split, elements), place));
                             Value part = l.read(flat, at, f32, lanes);
                             return {arith::AddFOp::create(b, carried.front(), part)};
                           })
                    .front();
    Index row = e.div(piece, sizes.n / lanes), column = e.mul(e.rem(piece, sizes.n / lanes), lanes);
    epilogue(l, sum, row, column, arguments.drop_front());
  });
  gpu::ReturnOp::create(b);
  device.launch(function, {static_cast<int64_t>(llvm::divideCeil(pieces, threads))}, buffers);
}

LogicalResult ContractionEmitter::emit(const CudaTarget &cuda) {
  if (failed(read()))
    return failure();
  auto compute = kernel->getAttrOfType<StringAttr>(fusion::computeAttrName);
  TileMath math = tileMathFor(operandElement(0), operandElement(1),
                              /*rounded=*/compute && compute.getValue() == "tf32");
  auto wanted = body.product->getAttrOfType<DenseI64ArrayAttr>(fusion::tileAttrName);
  if (wanted && !wanted.empty()) {
    llvm::Expected<DeviceTilePlan> chosen = wantedDeviceTile(math, sizes, wanted);
    if (!chosen)
      return body.product->emitOpError() << llvm::toString(chosen.takeError());
    plan = *chosen;
  } else {
    plan = planDeviceTile(math, sizes);
    plan.useShared(cuda);
  }
  if (plan.sharedBytes() + cuda.sharedReserved > cuda.sharedPerMultiprocessor ||
      plan.sharedBytes() > cuda.sharedPerBlock)
    return kernel.emitOpError("@") << kernel.getSymName() << ": its tile needs "
                                   << plan.sharedBytes() << " bytes of shared memory, " << cuda.chip
                                   << " lets a block have " << cuda.sharedPerBlock;
  int64_t widest = 1;
  for (Type type : kernel.getResultTypes())
    widest = std::max(widest, deviceBytes(cast<RankedTensorType>(type).getElementType()));
  lanes = commonWidth(std::min<int64_t>(16 / widest, 8), {sizes.n});
  if (plan.splits == 1) {
    tileFunction(nullptr, cuda);
    return success();
  }
  // Partial sums are f32, whatever the results.
  lanes = std::min<int64_t>(lanes, 4);
  Value partials = device.workspace(MemRefType::get({plan.splits * sizes.batch * sizes.m * sizes.n},
                                                    Float32Type::get(kernel.getContext())));
  tileFunction(partials, cuda);
  sumFunction(partials);
  return success();
}

} // namespace

LogicalResult appendDeviceContraction(exec::KernelOp kernel, DeviceKernel &device,
                                      const CudaTarget &cuda) {
  return ContractionEmitter(kernel, device).emit(cuda);
}

FailureOr<exec::DeviceKernelOp> emitDeviceContraction(exec::KernelOp kernel, ModuleOp target,
                                                      const CudaTarget &cuda) {
  DeviceKernel device(kernel, target);
  if (failed(appendDeviceContraction(kernel, device, cuda)))
    return failure();
  return device.op();
}

} // namespace descent
