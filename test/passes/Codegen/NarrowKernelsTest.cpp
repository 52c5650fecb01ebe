//===- NarrowKernelsTest.cpp - Narrow and wide tensors in one kernel ------===//
//
// The kernels of a mixed-precision step: f32 in and narrow out, narrow in and f32 out, at sizes off
// every boundary. The interpreter does not round between ops, so tolerances are a rounding of the
// result (and of what is rounded on the way).
//
//===----------------------------------------------------------------------===//

#include "KernelOracle.h"

using namespace mlir;

namespace descent::testing {
namespace {

/// R, C and T stand for sizes and the narrow type in `text`.
void expectNarrow(const std::string &text, EmitFunction emit = emitRowsKernel,
                  double tolerance = 1e-5,
                  std::vector<std::pair<int, int>> sizes =
                      {{3, 1}, {5, 3}, {4, 17}, {7, 65}, {33, 100}, {3, 1000}, {1, 1}},
                  std::function<double(unsigned, size_t)> fill = noise) {
  for (std::string type : {"bf16", "f16"})
    for (auto [rows, columns] : sizes)
      expectKernel(replaceAll(replaceAll(replaceAll(text, "$R", std::to_string(rows)), "$C",
                                         std::to_string(columns)),
                              "$T", type),
                   emit, fill, tolerance + (type == "f16" ? 1.0 / 1024 : 0));
}

void expectRowsAt(const std::string &text, double tolerance) {
  for (auto [rows, columns] : {std::pair(3, 1), {5, 3}, {4, 17}, {7, 65}, {3, 1000}})
    expectKernel(
        replaceAll(replaceAll(text, "$R", std::to_string(rows)), "$C", std::to_string(columns)),
        emitRowsKernel, noise, tolerance);
}

TEST(NarrowKernels, NormFromF32) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %g: tensor<$Cxf32>, %b: tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx1xf32>) {
    %wide = nn.cast %b to f32 : tensor<$Cx$T>
    %0 = nn.layer_norm %x, %g, %wide : tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<$Cxf32>
    %1 = nn.cast %0 to $T : tensor<$Rx$Cxf32>
    %2 = nn.reduce_mean %x [1] keep : tensor<$Rx$Cxf32>
    exec.yield %1, %2 : tensor<$Rx$Cx$T>, tensor<$Rx1xf32>
  })",
      emitRowsKernel, 2e-5);
}

TEST(NarrowKernels, NormOfNarrowRows) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%n: tensor<$Rx$Cx$T>, %g: tensor<$Cxf32>, %b: tensor<$Cxf32>) -> tensor<$Rx$Cx$T> {
    %x = nn.cast %n to f32 : tensor<$Rx$Cx$T>
    %0 = nn.layer_norm %x, %g, %b : tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<$Cxf32>
    %1 = nn.cast %0 to $T : tensor<$Rx$Cxf32>
    exec.yield %1 : tensor<$Rx$Cx$T>
  })",
      emitRowsKernel, 2e-5);
}

// f32 parameter and moment, gradient in f32, and the copy that the next step's products read.
TEST(NarrowKernels, UpdateWritesItsWorkingCopy) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%w: tensor<$Rx$Cxf32>, %g: tensor<$Rx$Cxf32>, %m: tensor<$Rx$Cxf32>, %lr: tensor<f32>)
        -> (tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>, tensor<$Rx$Cx$T>) {
    %b = nn.constant dense<0.9> : tensor<f32>
    %0 = nn.mul %m, %b : tensor<$Rx$Cxf32>, tensor<f32>
    %1 = nn.add %0, %g : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %2 = nn.mul %1, %lr : tensor<$Rx$Cxf32>, tensor<f32>
    %3 = nn.sub %w, %2 : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %4 = nn.cast %3 to $T : tensor<$Rx$Cxf32>
    exec.yield %3, %1, %4 : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>, tensor<$Rx$Cx$T>
  })");
}

// A narrow result is no place for an f32 one, whatever lies where.
TEST(NarrowKernels, ResultsLieOverInputsOfTheirTypeOnly) {
  auto module = parseSourceString<ModuleOp>(
      R"(exec.kernel @k "rows" (%x: tensor<37x1000xbf16>, %y: tensor<37x1000xf32>) -> (tensor<37x1000xf32>, tensor<37x1000xbf16>) {
    %0 = nn.cast %x to f32 : tensor<37x1000xbf16>
    %1 = nn.add %0, %y : tensor<37x1000xf32>, tensor<37x1000xf32>
    %2 = nn.cast %1 to bf16 : tensor<37x1000xf32>
    exec.yield %1, %2 : tensor<37x1000xf32>, tensor<37x1000xbf16>
  })",
      &context());
  ASSERT_TRUE(module);
  auto pairs = reusableOperands(*module->getOps<exec::KernelOp>().begin());
  EXPECT_EQ(pairs.size(), 2u);
  for (auto [result, input] : pairs)
    EXPECT_EQ(result, 1 - input);
}

TEST(NarrowKernels, CrossEntropyOfNarrowLogits) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%n: tensor<$Rx$Cx$T>, %d: tensor<$Rx$Cxf32>) -> (tensor<$Rx$Cx$T>, tensor<$Rx1xf32>) {
    %x = nn.cast %n to f32 : tensor<$Rx$Cx$T>
    %m = nn.reduce_max %x [1] keep : tensor<$Rx$Cxf32>
    %0 = nn.sub %x, %m : tensor<$Rx$Cxf32>, tensor<$Rx1xf32>
    %e = nn.exp %0 : tensor<$Rx$Cxf32>
    %s = nn.reduce_sum %e [1] keep : tensor<$Rx$Cxf32>
    %p = nn.div %e, %s : tensor<$Rx$Cxf32>, tensor<$Rx1xf32>
    %g = nn.sub %p, %d : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %y = nn.cast %g to $T : tensor<$Rx$Cxf32>
    %l = nn.log %s : tensor<$Rx1xf32>
    exec.yield %y, %l : tensor<$Rx$Cx$T>, tensor<$Rx1xf32>
  })");
}

TEST(NarrowKernels, BiasGradientInF32) {
  expectNarrow(
      R"(exec.kernel @k "columns" (%n: tensor<$Rx$Cx$T>, %x: tensor<$Rx$Cxf32>) -> (tensor<$Cxf32>, tensor<$Cx$T>) {
    %w = nn.cast %n to f32 : tensor<$Rx$Cx$T>
    %0 = nn.reduce_sum %w [0] : tensor<$Rx$Cxf32>
    %1 = nn.mul %w, %x : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %2 = nn.reduce_sum %1 [0] : tensor<$Rx$Cxf32>
    %3 = nn.cast %2 to $T : tensor<$Cxf32>
    exec.yield %0, %3 : tensor<$Cxf32>, tensor<$Cx$T>
  })",
      emitColumnsKernel, 1e-5,
      {{1, 1}, {3, 1}, {5, 3}, {100, 17}, {7, 65}, {1000, 33}, {3000, 8}, {9, 1000}});
}

// A value for each element, row and column, narrow or not, meet in one expression.
TEST(NarrowKernels, BroadcastsOfBothTypes) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%x: tensor<2x$Rx$Cx$T>, %c: tensor<$Cx$T>, %r: tensor<$Rx1x$T>, %s: tensor<$T>) -> tensor<2x$Rx$Cxf32> {
    %0 = nn.cast %x to f32 : tensor<2x$Rx$Cx$T>
    %1 = nn.cast %c to f32 : tensor<$Cx$T>
    %2 = nn.cast %r to f32 : tensor<$Rx1x$T>
    %3 = nn.cast %s to f32 : tensor<$T>
    %4 = nn.add %0, %1 : tensor<2x$Rx$Cxf32>, tensor<$Cxf32>
    %5 = nn.mul %4, %2 : tensor<2x$Rx$Cxf32>, tensor<$Rx1xf32>
    %6 = nn.sub %5, %3 : tensor<2x$Rx$Cxf32>, tensor<f32>
    exec.yield %6 : tensor<2x$Rx$Cxf32>
  })");
}

TEST(NarrowKernels, NaNAndInfinitySurviveRounding) {
  expectNarrow(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>) -> (tensor<$Rx$Cx$T>, tensor<$Rxf32>) {
    %0 = nn.cast %x to $T : tensor<$Rx$Cxf32>
    %1 = nn.cast %0 to f32 : tensor<$Rx$Cx$T>
    %2 = nn.reduce_max %1 [1] : tensor<$Rx$Cxf32>
    exec.yield %0, %2 : tensor<$Rx$Cx$T>, tensor<$Rxf32>
  })",
      emitRowsKernel, 1.0 / 128, {{3, 65}, {5, 3}}, [](unsigned input, size_t k) {
        return k == 7 ? std::nan("") : k == 4 ? INFINITY : k == 11 ? -INFINITY : noise(input, k);
      });
}

TEST(NarrowKernels, CopiesKeepBits) {
  for (std::string type : {"bf16", "f16"}) {
    expectKernel(
        replaceAll(
            R"(exec.kernel @k "copy" (%x: tensor<5x7x36x$T>) -> (tensor<5x7x12x$T>, tensor<5x7x12x$T>, tensor<5x12x7x$T>) {
      %0, %1, %2 = nn.split %x axis 2 sections 3 : tensor<5x7x36x$T>
      %3 = nn.transpose %2 [0, 2, 1] : tensor<5x7x12x$T>
      exec.yield %0, %1, %3 : tensor<5x7x12x$T>, tensor<5x7x12x$T>, tensor<5x12x7x$T>
    })",
            "$T", type),
        emitCopyKernel, noise, 0);
    expectKernel(
        replaceAll(
            R"(exec.kernel @k "copy" (%x: tensor<3x5x$T>) -> (tensor<8x14x$T>, tensor<33x$T>, tensor<2x3x5x$T>) {
      %0 = nn.pad %x low [1, 2] high [2, 3] interior [1, 1] : tensor<3x5x$T>
      %1 = nn.constant dense<3.5> : tensor<33x$T>
      %2 = nn.broadcast %x [2, 3, 5] : tensor<3x5x$T>
      exec.yield %0, %1, %2 : tensor<8x14x$T>, tensor<33x$T>, tensor<2x3x5x$T>
    })",
            "$T", type),
        emitCopyKernel, noise, 0);
  }
}

TEST(NarrowKernels, GatherAndScatter) {
  auto indices = [](size_t k) { return double(int((k * 5) % 22) - 11); };
  for (std::string type : {"bf16", "f16"})
    for (int columns : {1, 3, 17, 65, 100}) {
      auto fill = [&](std::string text) {
        return replaceAll(replaceAll(text, "$C", std::to_string(columns)), "$T", type);
      };
      expectKernel(
          fill(
              R"(exec.kernel @k "gather" (%i: tensor<3x7xi32>, %t: tensor<11x$Cx$T>) -> tensor<3x7x$Cx$T> {
        %0 = nn.embedding %i, %t : tensor<3x7xi32>, tensor<11x$Cx$T>
        exec.yield %0 : tensor<3x7x$Cx$T>
      })"),
          emitGatherKernel,
          [&](unsigned input, size_t k) { return input ? noise(input, k) : indices(k); }, 0);
      expectKernel(
          fill(
              R"(exec.kernel @k "scatter" (%d: tensor<3x7x$Cx$T>, %i: tensor<3x7xi32>) -> tensor<11x$Cx$T> {
        %0 = nn.embedding_grad %d, %i rows 11 : tensor<3x7x$Cx$T>, tensor<3x7xi32>
        exec.yield %0 : tensor<11x$Cx$T>
      })"),
          emitScatterKernel,
          [&](unsigned input, size_t k) { return input == 1 ? indices(k) : noise(input, k); },
          type == "f16" ? 1.0 / 1024 : 1e-6);
      // The gradient of a parameter in f32.
      expectKernel(
          fill(
              R"(exec.kernel @k "scatter" (%d: tensor<3x7x$Cx$T>, %i: tensor<3x7xi32>) -> tensor<11x$Cxf32> {
        %0 = nn.embedding_grad %d, %i rows 11 {result_type = f32} : tensor<3x7x$Cx$T>, tensor<3x7xi32>
        exec.yield %0 : tensor<11x$Cxf32>
      })"),
          emitScatterKernel,
          [&](unsigned input, size_t k) { return input == 1 ? indices(k) : noise(input, k); },
          2e-6);
    }
}

// What is rounded to 8 bits and read again is off by half a unit of 3 or 2 bits; the kernel's i8
// and its scale are what a quantized product reads.
TEST(NarrowKernels, EightBitCasts) {
  for (auto [type, rounding] : {std::pair("f8E4M3FN", 1.0 / 16), {"f8E5M2", 1.0 / 8}})
    for (int columns : {1, 3, 17, 65, 100, 1000}) {
      auto fill = [&](std::string text) {
        return replaceAll(replaceAll(text, "$C", std::to_string(columns)), "$T", type);
      };
      expectKernel(
          fill(
              R"(exec.kernel @k "rows" (%n: tensor<5x$Cxbf16>, %s: tensor<f32>) -> (tensor<5x$Cx$T>, tensor<5x1xf32>) {
        %x = nn.cast %n to f32 : tensor<5x$Cxbf16>
        %0 = nn.mul %x, %s : tensor<5x$Cxf32>, tensor<f32>
        %1 = nn.cast %0 to $T : tensor<5x$Cxf32>
        %2 = nn.abs %x : tensor<5x$Cxf32>
        %3 = nn.reduce_max %2 [1] keep : tensor<5x$Cxf32>
        exec.yield %1, %3 : tensor<5x$Cx$T>, tensor<5x1xf32>
      })"),
          emitRowsKernel, noise, rounding);
      // Numbers that the format holds.
      auto exact = [](unsigned, size_t k) { return double(int(k % 15) - 7) / 4; };
      expectKernel(
          fill(
              R"(exec.kernel @k "rows" (%n: tensor<5x$Cx$T>) -> (tensor<5x$Cxf32>, tensor<5x$Cxbf16>) {
        %x = nn.cast %n to f32 : tensor<5x$Cx$T>
        %y = nn.cast %n to bf16 : tensor<5x$Cx$T>
        exec.yield %x, %y : tensor<5x$Cxf32>, tensor<5x$Cxbf16>
      })"),
          emitRowsKernel, exact, 0);
      expectKernel(
          fill(
              R"(exec.kernel @k "copy" (%x: tensor<5x$Cx$T>) -> (tensor<$Cx5x$T>, tensor<2x5x$Cx$T>) {
        %0 = nn.transpose %x [1, 0] : tensor<5x$Cx$T>
        %1 = nn.broadcast %x [2, 5, $C] : tensor<5x$Cx$T>
        exec.yield %0, %1 : tensor<$Cx5x$T>, tensor<2x5x$Cx$T>
      })"),
          emitCopyKernel, exact, 0);
    }
}

TEST(NarrowKernels, OtherRoundings) {
  expectRowsAt(R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32> {
    %0 = nn.round_tf32 %x : tensor<$Rx$Cxf32>
    exec.yield %0 : tensor<$Rx$Cxf32>
  })",
               1.0 / 2048);
  expectRowsAt(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %g: tensor<4xi32>) -> (tensor<$Rx$Cxbf16>, tensor<$Rx$Cxbf16>) {
    %u = nn.random %g [$R, $C] id 7
    %0 = nn.round_stochastically %x, %u to bf16 : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %h = nn.constant dense<0.5> : tensor<f32>
    %1 = nn.round_stochastically %x, %h to bf16 : tensor<$Rx$Cxf32>, tensor<f32>
    exec.yield %0, %1 : tensor<$Rx$Cxbf16>, tensor<$Rx$Cxbf16>
  })",
      1e-6);
}

TEST(NarrowKernels, PoolOfHalf) {
  for (int channels : {1, 17, 65}) {
    std::string text = replaceAll(
        R"(exec.kernel @k "pool" (%d: tensor<2x4x5x$Cxf16>, %x: tensor<2x7x9x$Cxf16>) -> tensor<2x7x9x$Cxf16> {
      %0 = nn.max_pool2d_grad %d, %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x4x5x$Cxf16>, tensor<2x7x9x$Cxf16>
      exec.yield %0 : tensor<2x7x9x$Cxf16>
    })",
        "$C", std::to_string(channels));
    expectKernel(
        text, emitPoolKernel,
        [](unsigned input, size_t k) { return std::floor(noise(input, k) * 2); }, 0);
  }
}

} // namespace
} // namespace descent::testing
