//===- ConvolutionTest.cpp - The three products against naive loops -------===//

#include "passes/Codegen/Convolution.h"
#include "KernelTesting.h"
#include "passes/Codegen/KernelFunction.h"

using namespace mlir;

namespace descent::testing {
namespace {

MemRefType flatFloats(int64_t size) {
  return MemRefType::get({size}, Float32Type::get(&context()));
}

int64_t sizeOfX(const ConvolutionShape &s) { return s.images * s.height * s.width * s.inChannels; }
int64_t sizeOfY(const ConvolutionShape &s) {
  return s.images * s.outHeight * s.outWidth * s.outChannels;
}
int64_t sizeOfW(const ConvolutionShape &s) {
  return s.kernelHeight * s.kernelWidth * s.inChannels * s.outChannels;
}

/// images, height, width, inChannels, outChannels, kernel, stride, dilation, padding before and
/// after on each axis.
ConvolutionShape shapeOf(int64_t n, int64_t h, int64_t w, int64_t ic, int64_t oc,
                         std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                         std::array<int64_t, 2> dilation, std::array<int64_t, 4> pad) {
  auto out = [](int64_t size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                int64_t dilation) {
    return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return {n,
          h,
          w,
          ic,
          out(h, pad[0], pad[1], kernel[0], stride[0], dilation[0]),
          out(w, pad[2], pad[3], kernel[1], stride[1], dilation[1]),
          oc,
          kernel[0],
          kernel[1],
          stride[0],
          stride[1],
          dilation[0],
          dilation[1],
          pad[0],
          pad[2]};
}

std::vector<ConvolutionShape> shapes() {
  return {shapeOf(2, 7, 9, 3, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}),
          shapeOf(1, 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}),
          shapeOf(3, 8, 5, 1, 17, {5, 3}, {1, 1}, {1, 1}, {2, 2, 1, 1}),
          shapeOf(2, 11, 13, 19, 33, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}),
          shapeOf(1, 12, 10, 4, 6, {3, 2}, {2, 3}, {2, 2},
                  {0, 3, 2, 1}), // dilated; uneven strides and padding
          shapeOf(2, 9, 9, 16, 32, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}),
          shapeOf(2, 6, 6, 35, 20, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}),
          shapeOf(1, 3, 2, 2, 3, {5, 5}, {1, 1}, {1, 1},
                  {3, 3, 4, 4})}; // a kernel larger than the image
}

/// The naive sum over every pair of an output pixel and a tap; `visit(x, w, y)` gets the three
/// offsets.
template <typename Visit> void forEachProduct(const ConvolutionShape &s, Visit visit) {
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t oy = 0; oy < s.outHeight; ++oy)
      for (int64_t ox = 0; ox < s.outWidth; ++ox)
        for (int64_t a = 0; a < s.kernelHeight; ++a)
          for (int64_t b = 0; b < s.kernelWidth; ++b) {
            int64_t y = oy * s.strideY + a * s.dilationY - s.padTop,
                    x = ox * s.strideX + b * s.dilationX - s.padLeft;
            if (y < 0 || y >= s.height || x < 0 || x >= s.width)
              continue;
            for (int64_t i = 0; i < s.inChannels; ++i)
              for (int64_t o = 0; o < s.outChannels; ++o)
                visit(((n * s.height + y) * s.width + x) * s.inChannels + i,
                      ((a * s.kernelWidth + b) * s.inChannels + i) * s.outChannels + o,
                      ((n * s.outHeight + oy) * s.outWidth + ox) * s.outChannels + o);
          }
}

enum class Mode { Plain, Accumulate, SmallBlocks, BiasRelu };

void checkConvolutions(ConvolutionKind kind, Mode mode) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
    std::vector<int64_t> tasks, scratch;
    for (const ConvolutionShape &shape : shapes()) {
      ConvolutionSpec spec;
      spec.name = "conv" + std::to_string(tasks.size());
      spec.kind = kind;
      spec.shape = shape;
      bool input = kind == ConvolutionKind::InputGradient,
           weight = kind == ConvolutionKind::WeightGradient;
      spec.first = flatFloats(input ? sizeOfY(shape) : sizeOfX(shape));
      spec.second = flatFloats(weight ? sizeOfY(shape) : sizeOfW(shape));
      spec.epilogue.outputs = {flatFloats(input    ? sizeOfX(shape)
                                          : weight ? sizeOfW(shape)
                                                   : sizeOfY(shape))};
      spec.accumulate = mode == Mode::Accumulate;
      if (mode == Mode::SmallBlocks) {
        int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
        spec.plan = ProductPlan{2 * mr, nr, 20, mr, nr, true, true};
      }
      if (mode == Mode::BiasRelu) {
        spec.epilogue.inputs = {
            *EpilogueInput::broadcast(flatFloats(shape.outChannels),
                                      {sizeOfY(shape) / shape.outChannels, shape.outChannels})};
        spec.epilogue.function = [](OpBuilder &builder, Location loc,
                                    const EpiloguePoint &point) -> SmallVector<Value> {
          Value biased = arith::AddFOp::create(builder, loc, point.product, point.inputs[0]);
          Value zero =
              arith::ConstantOp::create(builder, loc, builder.getZeroAttr(biased.getType()));
          return {arith::MaximumFOp::create(builder, loc, biased, zero)};
        };
      }
      auto function = emitConvolutionKernel(*module, module->getLoc(), spec, target);
      ASSERT_TRUE(succeeded(function));
      tasks.push_back((*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt());
      scratch.push_back((*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt());
    }
    ASSERT_TRUE(succeeded(verify(*module)));
    auto jit = KernelJit::create(*module, target);
    ASSERT_TRUE(succeeded(jit));

    for (auto [number, s] : llvm::enumerate(shapes())) {
      SCOPED_TRACE(::testing::Message() << "shape " << number);
      Buffer x(sizeOfX(s), 1), w(sizeOfW(s), 2), y(sizeOfY(s), 3), bias(s.outChannels, 4);
      Buffer &result = kind == ConvolutionKind::Forward         ? y
                       : kind == ConvolutionKind::InputGradient ? x
                                                                : w;
      Buffer &first = kind == ConvolutionKind::InputGradient ? y : x;
      Buffer &second = kind == ConvolutionKind::WeightGradient ? y : w;
      std::vector<double> expected(result.size, 0.0);
      std::vector<int64_t> depth(result.size, 0);
      if (mode == Mode::Accumulate)
        expected.assign(result.data(), result.data() + result.size);
      forEachProduct(s, [&](int64_t atX, int64_t atW, int64_t atY) {
        int64_t at = kind == ConvolutionKind::Forward         ? atY
                     : kind == ConvolutionKind::InputGradient ? atX
                                                              : atW;
        expected[at] += kind == ConvolutionKind::Forward         ? double(x[atX]) * w[atW]
                        : kind == ConvolutionKind::InputGradient ? double(y[atY]) * w[atW]
                                                                 : double(x[atX]) * y[atY];
        ++depth[at];
      });
      if (mode == Mode::BiasRelu)
        for (size_t i = 0; i < result.size; ++i)
          expected[i] = std::max(0.0, expected[i] + bias[i % s.outChannels]);
      Buffer start = mode == Mode::Accumulate ? result : Buffer(result.size), whole = start;
      std::vector<Buffer *> buffers = {&first, &second};
      if (mode == Mode::BiasRelu)
        buffers.push_back(&bias);
      buffers.push_back(&whole);
      auto kernel = (*jit)->kernel("conv" + std::to_string(number));
      ASSERT_NE(kernel, nullptr);
      runKernel(kernel, buffers, tasks[number], scratch[number], tasks[number]);
      for (size_t i = 0; i < result.size; ++i)
        ASSERT_TRUE(std::abs(whole[i] - expected[i]) <= sumTolerance(depth[i] + 1))
            << i << ": " << whole[i] << ", not " << expected[i];
      for (int64_t grouping : {1, 3}) {
        Buffer again = start;
        buffers.back() = &again;
        runKernel(kernel, buffers, tasks[number], scratch[number], grouping);
        ASSERT_EQ(std::memcmp(again.data(), whole.data(), whole.size * 4), 0)
            << "grouping " << grouping << " changes bits";
      }
    }
  }
}

TEST(Convolution, Forward) { checkConvolutions(ConvolutionKind::Forward, Mode::Plain); }
TEST(Convolution, InputGradient) { checkConvolutions(ConvolutionKind::InputGradient, Mode::Plain); }
TEST(Convolution, WeightGradient) {
  checkConvolutions(ConvolutionKind::WeightGradient, Mode::Plain);
}
TEST(Convolution, ForwardWithBiasAndRelu) {
  checkConvolutions(ConvolutionKind::Forward, Mode::BiasRelu);
}
TEST(Convolution, WeightGradientAccumulates) {
  checkConvolutions(ConvolutionKind::WeightGradient, Mode::Accumulate);
}
TEST(Convolution, BlocksThatCutTapsAndChannels) {
  checkConvolutions(ConvolutionKind::Forward, Mode::SmallBlocks);
  checkConvolutions(ConvolutionKind::InputGradient, Mode::SmallBlocks);
  checkConvolutions(ConvolutionKind::WeightGradient, Mode::SmallBlocks);
}

TEST(Convolution, RefusesOperandsThatDoNotFit) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  ConvolutionSpec spec;
  spec.name = "c";
  spec.shape = shapes()[0];
  spec.first = flatFloats(sizeOfX(spec.shape));
  spec.second = flatFloats(7);
  EXPECT_TRUE(failed(emitConvolutionKernel(*module, module->getLoc(), spec, targets()[0])));
  EXPECT_EQ(message, "convolution 'c' has a second operand of type 'memref<7xf32>'; it needs 135 "
                     "elements of f32, of "
                     "bf16 or f16 stored as i16, or of f8E4M3FN or f8E5M2 stored as i8");
  spec.shape.strideX = 0;
  EXPECT_TRUE(failed(emitConvolutionKernel(*module, module->getLoc(), spec, targets()[0])));
  EXPECT_EQ(message, "convolution 'c' needs sizes, strides and dilations of at least one");
}

} // namespace
} // namespace descent::testing
