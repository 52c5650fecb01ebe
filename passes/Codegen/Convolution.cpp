//===- Convolution.cpp - Kernels of two-dimensional convolutions ----------===//
//
// Implicit matrix products: the matrix whose rows are pixels and whose columns are taps times
// channels never exists as a whole. Packing gathers the block it needs of that matrix into a small
// buffer, row by row, and packs the buffer like any other matrix. In NHWC all channels of a tap are
// contiguous, and without horizontal dilation so are all taps of a kernel row; a row of the block
// is therefore a few contiguous runs, clipped where the kernel hangs over the border, with zeros
// for what is cut off.
//
// The input gradient gathers from dy: pixel (i, j) under tap (a, b) comes from output ((i + pad - a
// * dilation) / stride, ...) where the division has no rest. Other taps are zeros that are
// multiplied all the same, so with strides above one this product does stride squared times the
// work it must.
//
// Tasks cut the rows first, unlike those of plain products: the gathered operand is the expensive
// one to pack, and columns of tasks would gather it again.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Convolution.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/Codegen/Lanes.h"
#include <algorithm>

using namespace mlir;

namespace descent {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The matrix product that a convolution is.
struct Sizes {
  int64_t m, n, k;
};

Sizes sizesOf(const ConvolutionSpec &spec) {
  const ConvolutionShape &s = spec.shape;
  int64_t taps = s.kernelHeight * s.kernelWidth;
  int64_t outPixels = s.images * s.outHeight * s.outWidth;
  switch (spec.kind) {
  case ConvolutionKind::Forward:
    return {outPixels, s.outChannels, taps * s.inChannels};
  case ConvolutionKind::InputGradient:
    return {s.images * s.height * s.width, s.inChannels, taps * s.outChannels};
  case ConvolutionKind::WeightGradient:
    return {taps * s.inChannels, s.outChannels, outPixels};
  }
  return {};
}

/// The name of a helper that works on `element` as it is stored.
std::string helperName(StringRef name, Type element) {
  std::string text = name.str();
  if (!element.isF32())
    llvm::raw_string_ostream(text) << "_" << element;
  return text;
}

/// (source, sourceOffset, destination, destinationOffset, count): copies numbers of the stored type
/// `element`. Runs are often shorter than a vector (few channels), so the rest goes by fours and
/// ones instead of a masked store, which is slow on AVX2 machines.
func::FuncOp getOrCreateCopy(ModuleOp module, Type element, const CpuTarget &target) {
  Type index = IndexType::get(module.getContext()), flat = flatType(element);
  int64_t whole = target.vectorBits / element.getIntOrFloatBitWidth();
  return getOrCreateHelper(
      module, helperName("descent_copy", element), {flat, index, flat, index, index},
      [&](Emitter &e, ValueRange arguments) {
        Index from = arguments[1], to = arguments[3], done = 0;
        for (int64_t width : {whole, int64_t(4), int64_t(1)}) {
          Index end = width == 1 ? Index(arguments[4]) : e.roundDown(arguments[4], width);
          e.loop(done, end, width, [&](Index i) {
            if (width == 1)
              e.store(e.load(arguments[0], e.add(from, i)), arguments[2], e.add(to, i));
            else
              e.storeVector(e.loadVector(arguments[0], e.add(from, i), width), arguments[2],
                            e.add(to, i));
          });
          done = end;
        }
      });
}

/// (destination, offset, count): writes zeros.
func::FuncOp getOrCreateZero(ModuleOp module, Type element, const CpuTarget &target) {
  Type index = IndexType::get(module.getContext()), flat = flatType(element);
  int64_t whole = target.vectorBits / element.getIntOrFloatBitWidth();
  return getOrCreateHelper(
      module, helperName("descent_zero", element), {flat, index, index},
      [&](Emitter &e, ValueRange arguments) {
        Index done = 0;
        for (int64_t width : {whole, int64_t(1)}) {
          Index end = width == 1 ? Index(arguments[2]) : e.roundDown(arguments[2], width);
          Type type = width == 1 ? element : Type(VectorType::get({width}, element));
          Value zero = arith::ConstantOp::create(e.builder, e.loc, e.builder.getZeroAttr(type));
          e.loop(done, end, width, [&](Index i) {
            Index at = e.add(arguments[1], i);
            if (width == 1)
              e.store(zero, arguments[0], at);
            else
              e.storeVector(zero, arguments[0], at);
          });
          done = end;
        }
      });
}

/// (image, block, pixel, pixels, column, columns): writes block[p][c], the implicit matrix at row
/// pixel + p and column `column` + c, where columns run over taps and, inside, channels of the
/// image (x, or dy for the input gradient).
func::FuncOp createGather(ModuleOp module, const ConvolutionSpec &spec, const CpuTarget &target) {
  MLIRContext *context = module.getContext();
  // Narrow numbers are gathered as they are stored; packing the block widens them.
  Type stored = spec.first.type.getElementType();
  Type index = IndexType::get(context), flat = flatType(stored);
  func::FuncOp copy = getOrCreateCopy(module, stored, target),
               zero = getOrCreateZero(module, stored, target);
  const ConvolutionShape &s = spec.shape;
  bool backwards = spec.kind == ConvolutionKind::InputGradient;
  // Rows are pixels of this grid, values come from an image of this size.
  int64_t gridHeight = backwards ? s.height : s.outHeight,
          gridWidth = backwards ? s.width : s.outWidth;
  int64_t height = backwards ? s.outHeight : s.height, width = backwards ? s.outWidth : s.width;
  int64_t channels = backwards ? s.outChannels : s.inChannels;
  // Taps side by side in the image make one run.
  int64_t tapsPerRun = !backwards && s.dilationX == 1 ? s.kernelWidth : 1;
  int64_t runsPerRow = s.kernelWidth / tapsPerRun, run = tapsPerRun * channels;

  return getOrCreateHelper(
      module, spec.name + ".gather", {flat, flat, index, index, index, index},
      [&](Emitter &e, ValueRange arguments) {
        Value image = arguments[0], block = arguments[1];
        Index column0 = arguments[4], columns = arguments[5], columnEnd = e.add(column0, columns);
        auto both = [&](Value a, Value b) -> Value {
          return arith::AndIOp::create(e.builder, e.loc, a, b);
        };
        // The place in the image, on one axis, and whether it exists.
        auto locate = [&](Index grid, Index tap, int64_t stride, int64_t dilation, int64_t pad,
                          int64_t size) {
          if (!backwards) {
            Index at = e.sub(e.add(e.mul(grid, stride), e.mul(tap, dilation)), pad);
            return std::pair<Index, Value>(at, both(e.less(-1, at), e.less(at, size)));
          }
          Index scaled = e.sub(e.add(grid, pad), e.mul(tap, dilation));
          Index at = e.div(scaled, stride);
          Value exists = both(e.less(-1, scaled), e.less(at, size));
          if (stride != 1)
            exists = both(exists, e.equal(e.rem(scaled, stride), 0));
          return std::pair<Index, Value>(at, exists);
        };
        e.loop(0, arguments[3], 1, [&](Index p) {
          Index pixel = e.add(arguments[2], p), row = e.mul(p, columns);
          Index number = e.div(pixel, gridHeight * gridWidth),
                inside = e.rem(pixel, gridHeight * gridWidth);
          Index gridY = e.div(inside, gridWidth), gridX = e.rem(inside, gridWidth);
          Index firstRun = e.div(column0, run), endRun = e.add(e.div(e.sub(columnEnd, 1), run), 1);
          e.loop(firstRun, endRun, 1, [&](Index r) {
            Index start = e.mul(r, run), low = e.max(column0, start),
                  high = e.min(columnEnd, e.add(start, run));
            Index tapY = e.div(r, runsPerRow), tapX = e.mul(e.rem(r, runsPerRow), tapsPerRun);
            auto [y, hasY] = locate(gridY, tapY, s.strideY, s.dilationY, s.padTop, height);
            auto [x, hasX] = locate(gridX, tapX, s.strideX, s.dilationX, s.padLeft, width);
            Index from = low, to = high;
            Value exists = hasY;
            if (backwards) {
              exists = both(hasY, hasX);
            } else {
              // The run starts at x, which may lie left of the image, and ends at most at its right
              // border.
              from = e.max(low, e.add(start, e.mul(e.max(0, e.sub(0, x)), channels)));
              to = e.min(high, e.add(start, e.mul(e.sub(width, x), channels)));
            }
            from = e.select(exists, e.min(from, high), high);
            to = e.select(exists, e.max(to, from), high);
            Index place = e.sub(row, column0);
            Index origin = e.mul(e.add(e.mul(e.add(e.mul(number, height), y), width), x), channels);
            e.call(zero, {block, e.value(e.add(place, low)), e.value(e.sub(from, low))});
            e.call(copy, {image, e.value(e.add(origin, e.sub(from, start))), block,
                          e.value(e.add(place, from)), e.value(e.sub(to, from))});
            e.call(zero, {block, e.value(e.add(place, to)), e.value(e.sub(high, to))});
          });
        });
      });
}

/// Elements and description of what the operands and sizes must be.
LogicalResult check(Location loc, const ConvolutionSpec &spec) {
  const ConvolutionShape &s = spec.shape;
  auto refuse = [&](const Twine &what) {
    return emitError(loc) << "convolution '" << spec.name << "' " << what;
  };
  for (int64_t size :
       {s.images, s.height, s.width, s.inChannels, s.outHeight, s.outWidth, s.outChannels,
        s.kernelHeight, s.kernelWidth, s.strideY, s.strideX, s.dilationY, s.dilationX})
    if (size < 1)
      return refuse("needs sizes, strides and dilations of at least one");
  if (s.padTop < 0 || s.padLeft < 0)
    return refuse("needs padding of at least zero");
  int64_t x = s.images * s.height * s.width * s.inChannels,
          y = s.images * s.outHeight * s.outWidth * s.outChannels;
  int64_t w = s.kernelHeight * s.kernelWidth * s.inChannels * s.outChannels;
  for (auto [position, operand, elements] :
       {std::tuple("first", spec.first, spec.kind == ConvolutionKind::InputGradient ? y : x),
        std::tuple("second", spec.second, spec.kind == ConvolutionKind::WeightGradient ? y : w)})
    if (failed(checkOperand(loc, "convolution '" + spec.name + "' has a " + position + " operand",
                            operand, elements)))
      return failure();
  return success();
}

} // namespace

ProductPlan planConvolution(const ConvolutionSpec &spec, const CpuTarget &target) {
  auto [m, n, k] = sizesOf(spec);
  ProductPlan plan =
      planProduct(1, m, n, k, stepsFor(spec.first.element, spec.second.element, target), target);
  if (m < 1 || n < 1 || k < 1)
    return plan;
  int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
  int64_t rowTiles = ceilDiv(m, mr);
  int64_t wanted = std::clamp<int64_t>(2.0 * m * n * k / 1e6, 1, 64);
  plan.taskColumns = ceilDiv(n, nr) * nr;
  plan.taskRows = ceilDiv(rowTiles, std::min(rowTiles, wanted)) * mr;
  if (spec.kind == ConvolutionKind::WeightGradient) {
    // The gathered block is [depth, rows] as a whole; both short, so that it stays in L2 beside its
    // packed form.
    plan.depth = std::min<int64_t>(k, 256);
    plan.rows = std::min(plan.rows, ceilDiv(128, mr) * mr);
  }
  return plan;
}

FailureOr<func::FuncOp> emitConvolutionKernel(ModuleOp module, Location loc,
                                              const ConvolutionSpec &spec,
                                              const CpuTarget &target) {
  if (failed(check(loc, spec)))
    return failure();
  auto [m, n, k] = sizesOf(spec);
  ProductSpec product;
  product.name = spec.name;
  product.m = m, product.n = n, product.k = k;
  product.operands = {spec.first, spec.second};
  product.epilogue = spec.epilogue;
  product.accumulate = spec.accumulate;
  TileSteps steps = product.steps = stepsFor(spec.first.element, spec.second.element, target);
  product.plan = spec.plan ? *spec.plan : planConvolution(spec, target);
  product.plan.packA = product.plan.packB = true;

  const ConvolutionShape &s = spec.shape;
  ConvolutionKind kind = spec.kind;
  int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
  int64_t inChannels = s.inChannels, outChannels = s.outChannels;
  Type storedA = spec.first.type.getElementType(), storedB = spec.second.type.getElementType();
  // A pair holds neighbours in k; where k leaves a tap (or a block) in the middle of a pair, the
  // weights of the input gradient are lined up first.
  bool lineUp = kind == ConvolutionKind::InputGradient && steps == TileSteps::Bf16Pairs &&
                (outChannels % 2 || product.plan.depth % 2);
  int64_t gathered = kind == ConvolutionKind::WeightGradient ? product.plan.rows : mr;
  product.workspaceBytes =
      product.plan.depth *
      std::max(gathered * storageBytes(storedA), lineUp ? nr * storageBytes(storedB) : int64_t(0));
  product.sources = [=, &target](Emitter &e, ValueRange operands, Value bytes) {
    Value first = e.flatten(operands[0]), second = e.flatten(operands[1]);
    Value workspace = e.carve(bytes, 0, storedA);
    func::FuncOp gather = createGather(module, spec, target);
    func::FuncOp packRows = getOrCreatePack(module, mr, kind != ConvolutionKind::WeightGradient,
                                            target, {spec.first.element, steps});
    func::FuncOp packColumns = getOrCreatePack(module, nr, kind == ConvolutionKind::InputGradient,
                                               target, {spec.second.element, steps});
    ProductSources sources;
    if (kind == ConvolutionKind::WeightGradient) {
      // Rows of A are columns of the gathered block, k its pixels.
      sources.a.pack = [=](Emitter &e, Index, Index start, Index extent, Index at, Index depth,
                           Value destination, Index offset) {
        e.call(gather,
               {first, workspace, e.value(at), e.value(depth), e.value(start), e.value(extent)});
        e.call(packRows, {workspace, e.value(0), e.value(extent), destination, e.value(offset),
                          e.value(depth), e.value(extent)});
      };
    } else {
      // One panel at a time, so that the gathered rows stay in L1.
      sources.a.pack = [=](Emitter &e, Index, Index start, Index extent, Index at, Index depth,
                           Value destination, Index offset) {
        e.loop(0, extent, mr, [&](Index r) {
          Index rows = e.min(e.sub(extent, r), mr);
          e.call(gather, {first, workspace, e.value(e.add(start, r)), e.value(rows), e.value(at),
                          e.value(depth)});
          e.call(packRows, {workspace, e.value(0), e.value(depth), destination,
                            e.value(e.add(offset, e.mul(r, packedSteps(e, depth, steps)))),
                            e.value(depth), e.value(rows)});
        });
      };
    }
    if (kind == ConvolutionKind::InputGradient) {
      // Weights of one tap are [ic, oc], and k runs over taps and oc: a panel is packed tap by tap.
      auto forEachTap = [=](Emitter &e, Index at, Index end,
                            llvm::function_ref<void(Index tap, Index from, Index to)> body) {
        e.loop(e.div(at, outChannels), e.add(e.div(e.sub(end, 1), outChannels), 1), 1,
               [&](Index tap) {
                 body(tap, e.max(at, e.mul(tap, outChannels)),
                      e.min(end, e.mul(e.add(tap, 1), outChannels)));
               });
      };
      auto sourceOf = [=](Emitter &e, Index column, Index tap, Index from) {
        Index row = e.add(e.mul(tap, inChannels), column);
        return e.add(e.mul(row, outChannels), e.sub(from, e.mul(tap, outChannels)));
      };
      sources.b.pack = [=](Emitter &e, Index, Index start, Index extent, Index at, Index depth,
                           Value destination, Index offset) {
        Index end = e.add(at, depth), panelSteps = packedSteps(e, depth, steps);
        e.loop(0, extent, nr, [&](Index j) {
          Index columns = e.min(e.sub(extent, j), nr), panel = e.add(offset, e.mul(j, panelSteps));
          if (!lineUp)
            return forEachTap(e, at, end, [&](Index tap, Index from, Index to) {
              Index put = e.add(panel, e.mul(packedSteps(e, e.sub(from, at), steps), nr));
              e.call(packColumns, {second, e.value(sourceOf(e, e.add(start, j), tap, from)),
                                   e.value(outChannels), destination, e.value(put),
                                   e.value(e.sub(to, from)), e.value(columns)});
            });
          Value lines = e.carve(bytes, 0, storedB);
          func::FuncOp copy = getOrCreateCopy(module, storedB, target);
          e.loop(0, columns, 1, [&](Index c) {
            Index column = e.add(e.add(start, j), c), line = e.mul(c, depth);
            forEachTap(e, at, end, [&](Index tap, Index from, Index to) {
              e.call(copy, {second, e.value(sourceOf(e, column, tap, from)), lines,
                            e.value(e.add(line, e.sub(from, at))), e.value(e.sub(to, from))});
            });
          });
          e.call(packColumns, {lines, e.value(0), e.value(depth), destination, e.value(panel),
                               e.value(depth), e.value(columns)});
        });
      };
    } else {
      sources.b.pack = [=](Emitter &e, Index, Index start, Index extent, Index at, Index depth,
                           Value destination, Index offset) {
        e.call(packColumns,
               {second, e.value(e.add(e.mul(at, outChannels), start)), e.value(outChannels),
                destination, e.value(offset), e.value(depth), e.value(extent)});
      };
    }
    return sources;
  };
  return emitProductKernel(module, loc, product, target);
}

} // namespace descent
