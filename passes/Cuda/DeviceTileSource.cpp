//===- DeviceTileSource.cpp - Where the operands of a product stand -------===//
//
// Divisions are by sizes known now, which the device's compiler makes multiplications of, and stand
// where the loop over k does not repeat them if the line (or run) is not k.
//
// The input gradient reads the convolution backwards: pixel i under tap t comes from output
// (i + padding - t * dilation) / stride where the division has no rest. Other taps are zeros that
// are multiplied all the same, so with strides above one this product does stride squared times the
// work it must.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceTileSource.h"
#include "passes/Cuda/DeviceLanes.h"

using namespace mlir;

namespace descent {

/// Elements of 16 bytes at most, in which all of `multiples` come.
static int64_t unitOf(Type element, ArrayRef<int64_t> multiples) {
  return commonWidth(16 / deviceBytes(element), multiples);
}

/// Null if all numbers below a multiple of `multiple` exist.
static Value exists(TileOps &e, Index number, int64_t count, int64_t multiple) {
  return count % multiple == 0 ? Value() : e.less(number, count);
}

TileSource matrixSource(Type element, bool depthRuns, int64_t lines, int64_t runs, int64_t ld,
                        Index base, int64_t baseUnit, TileMultiples multiples) {
  TileSource source;
  source.element = element;
  source.depthRuns = depthRuns;
  source.unit = unitOf(element, {runs, lines == 1 ? 0 : ld, baseUnit});
  source.line = [=](TileOps &e, Index line) {
    return TilePlace{e.mul(line, ld), {}, exists(e, line, lines, multiples.line)};
  };
  source.run = [=](TileOps &e, Index run) {
    return TilePlace{run, {}, exists(e, run, runs, multiples.run)};
  };
  source.place = [=](TileOps &e, const TilePlace &line, const TilePlace &run) {
    return TilePlace{
        e.add(e.add(line.offset, base), run.offset), {}, e.both(line.exists, run.exists)};
  };
  return source;
}

namespace {

/// One axis of an image under the taps of a kernel.
struct Axis {
  int64_t size, out, kernel, stride, dilation, pad;

  /// Whether every tap of every output lies in the image.
  bool covered() const { return pad == 0 && (out - 1) * stride + (kernel - 1) * dilation < size; }
};

} // namespace

TileSource imageSource(Type element, bool depthRuns, const ConvolutionProduct &convolution,
                       TileMultiples multiples) {
  const ConvolutionShape &s = convolution.shape;
  Axis y{s.height, s.outHeight, s.kernelHeight, s.strideY, s.dilationY, s.padTop};
  Axis x{s.width, s.outWidth, s.kernelWidth, s.strideX, s.dilationX, s.padLeft};
  bool backwards = convolution.kind == ConvolutionKind::InputGradient;
  int64_t channels = backwards ? s.outChannels : s.inChannels;
  // Lines are pixels of this grid, values come from an image of the other size.
  int64_t gridHeight = backwards ? s.height : s.outHeight,
          gridWidth = backwards ? s.width : s.outWidth;
  int64_t height = backwards ? s.outHeight : s.height, width = backwards ? s.outWidth : s.width;
  int64_t lines = s.images * gridHeight * gridWidth,
          runs = s.kernelHeight * s.kernelWidth * channels;
  TileSource source;
  source.element = element;
  source.depthRuns = depthRuns;
  source.unit = unitOf(element, {channels});
  source.line = [=](TileOps &e, Index line) {
    TilePlace place;
    place.exists = exists(e, line, lines, multiples.line);
    Index image = e.div(line, gridHeight * gridWidth), inside = e.rem(line, gridHeight * gridWidth);
    Index gridY = e.div(inside, gridWidth), gridX = e.rem(inside, gridWidth);
    if (backwards) {
      place.at = {e.add(gridY, y.pad), e.add(gridX, x.pad), e.mul(image, height)};
      return place;
    }
    Index top = e.sub(e.mul(gridY, y.stride), y.pad), left = e.sub(e.mul(gridX, x.stride), x.pad);
    place.at = {top, left};
    place.offset = e.mul(e.add(e.mul(e.add(e.mul(image, height), top), width), left), channels);
    return place;
  };
  source.run = [=](TileOps &e, Index run) {
    TilePlace place;
    place.exists = exists(e, run, runs, multiples.run);
    Index tap = e.div(run, channels), channel = e.rem(run, channels);
    Index down = e.mul(e.div(tap, x.kernel), y.dilation),
          right = e.mul(e.rem(tap, x.kernel), x.dilation);
    place.at = {down, right};
    place.offset =
        backwards ? channel : e.add(e.mul(e.add(e.mul(down, width), right), channels), channel);
    return place;
  };
  source.place = [=](TileOps &e, const TilePlace &line, const TilePlace &run) {
    TilePlace place;
    place.exists = e.both(line.exists, run.exists);
    if (!backwards) {
      if (!y.covered())
        place.exists = e.both(place.exists, e.within(e.add(line.at[0], run.at[0]), height));
      if (!x.covered())
        place.exists = e.both(place.exists, e.within(e.add(line.at[1], run.at[1]), width));
      place.offset = e.add(line.offset, run.offset);
      return place;
    }
    // A negative distance is a huge one without its sign.
    auto locate = [&](unsigned which, const Axis &axis) {
      Index distance = e.sub(line.at[which], run.at[which]);
      place.exists = e.both(place.exists, e.within(e.div(distance, axis.stride), axis.out));
      if (axis.stride != 1)
        place.exists = e.both(place.exists, e.equal(e.rem(distance, axis.stride), 0));
      return e.div(distance, axis.stride);
    };
    Index outY = locate(0, y), outX = locate(1, x);
    place.offset =
        e.add(e.mul(e.add(e.mul(e.add(line.at[2], outY), width), outX), channels), run.offset);
    return place;
  };
  return source;
}

TileSource turnedWeightsSource(Type element, const ConvolutionShape &shape,
                               TileMultiples multiples) {
  int64_t inChannels = shape.inChannels, outChannels = shape.outChannels;
  int64_t runs = shape.kernelHeight * shape.kernelWidth * outChannels;
  TileSource source;
  source.element = element;
  source.depthRuns = true;
  source.unit = unitOf(element, {outChannels});
  source.line = [=](TileOps &e, Index line) {
    return TilePlace{e.mul(line, outChannels), {}, exists(e, line, inChannels, multiples.line)};
  };
  source.run = [=](TileOps &e, Index run) {
    Index tap = e.div(run, outChannels), channel = e.rem(run, outChannels);
    return TilePlace{e.add(e.mul(tap, inChannels * outChannels), channel),
                     {},
                     exists(e, run, runs, multiples.run)};
  };
  source.place = [](TileOps &e, const TilePlace &line, const TilePlace &run) {
    return TilePlace{e.add(line.offset, run.offset), {}, e.both(line.exists, run.exists)};
  };
  return source;
}

} // namespace descent
