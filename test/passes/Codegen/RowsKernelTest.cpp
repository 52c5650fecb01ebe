//===- RowsKernelTest.cpp - Rows and columns kernels against the interpreter ===//

#include "KernelOracle.h"

using namespace mlir;

namespace descent::testing {
namespace {

/// R and C stand for sizes in `text`.
void expectRows(const std::string &text, double tolerance = 4e-6,
                std::vector<std::pair<int, int>> sizes =
                    {{3, 1}, {5, 3}, {4, 17}, {7, 65}, {65, 100}, {33, 1000}, {1, 1}, {300, 64}},
                EmitFunction emit = emitRowsKernel) {
  for (auto [rows, columns] : sizes)
    expectKernel(
        replaceAll(replaceAll(text, "$R", std::to_string(rows)), "$C", std::to_string(columns)),
        emit, noise, tolerance);
}

TEST(RowsKernel, ElementwiseChainOfEverySize) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %y: tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32> {
    %0 = nn.gelu %x tanh : tensor<$Rx$Cxf32>
    %1 = nn.mul %0, %y : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    exec.yield %1 : tensor<$Rx$Cxf32>
  })");
}

TEST(RowsKernel, BroadcastsAlongRowsColumnsAndLeadingAxes) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<2x$Rx$Cxf32>, %c: tensor<$Cxf32>, %r: tensor<$Rx1xf32>, %t: tensor<$Rx$Cxf32>, %s: tensor<f32>) -> tensor<2x$Rx$Cxf32> {
    %0 = nn.add %x, %c : tensor<2x$Rx$Cxf32>, tensor<$Cxf32>
    %1 = nn.mul %0, %r : tensor<2x$Rx$Cxf32>, tensor<$Rx1xf32>
    %2 = nn.add %1, %t : tensor<2x$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %3 = nn.sub %2, %s : tensor<2x$Rx$Cxf32>, tensor<f32>
    exec.yield %3 : tensor<2x$Rx$Cxf32>
  })");
}

TEST(RowsKernel, Softmax) {
  expectRows(R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32> {
    %0 = nn.softmax %x axis 1 : tensor<$Rx$Cxf32>
    exec.yield %0 : tensor<$Rx$Cxf32>
  })");
}

TEST(RowsKernel, LayerNormWithItsStatistics) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %g: tensor<$Cxf32>, %b: tensor<$Cxf32>) -> (tensor<$Rx$Cxf32>, tensor<$Rx1xf32>, tensor<$Rxf32>) {
    %0 = nn.layer_norm %x, %g, %b : tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<$Cxf32>
    %1 = nn.reduce_mean %x [1] keep : tensor<$Rx$Cxf32>
    %2 = nn.reduce_max %x [1] : tensor<$Rx$Cxf32>
    exec.yield %0, %1, %2 : tensor<$Rx$Cxf32>, tensor<$Rx1xf32>, tensor<$Rxf32>
  })",
      2e-5);
}

TEST(RowsKernel, FullSumAndScalarArithmetic) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = nn.reduce_sum %x [0, 1] : tensor<$Rx$Cxf32>
    %1 = nn.cos %s : tensor<f32>
    %2 = nn.mul %0, %1 : tensor<f32>, tensor<f32>
    exec.yield %0, %2 : tensor<f32>, tensor<f32>
  })",
      1e-5);
}

TEST(RowsKernel, CrossEntropyGradientMayLieOverItsLogits) {
  std::string text =
      R"(exec.kernel @k "rows" (%x: tensor<33x65xf32>, %d: tensor<33x65xf32>) -> (tensor<33x65xf32>, tensor<33xf32>) {
    %m = nn.reduce_max %x [1] keep : tensor<33x65xf32>
    %0 = nn.sub %x, %m : tensor<33x65xf32>, tensor<33x1xf32>
    %e = nn.exp %0 : tensor<33x65xf32>
    %s = nn.reduce_sum %e [1] keep : tensor<33x65xf32>
    %p = nn.div %e, %s : tensor<33x65xf32>, tensor<33x1xf32>
    %g = nn.sub %p, %d : tensor<33x65xf32>, tensor<33x65xf32>
    %l = nn.log %s : tensor<33x1xf32>
    %r = nn.reshape %l [33] : tensor<33x1xf32>
    exec.yield %g, %r : tensor<33x65xf32>, tensor<33xf32>
  })";
  auto module = parseSourceString<ModuleOp>(text, &context());
  auto pairs = reusableOperands(*module->getOps<exec::KernelOp>().begin());
  EXPECT_EQ(pairs.size(), 2u) << "over the logits and over the targets' distribution";
  expectKernel(text, emitRowsKernel, noise, 4e-6);
}

TEST(RowsKernel, UpdateInPlaceOverFlatState) {
  std::string text =
      R"(exec.kernel @k "rows" (%w: tensor<37x1000xf32>, %g: tensor<37x1000xf32>, %m: tensor<37x1000xf32>, %lr: tensor<f32>) -> (tensor<37x1000xf32>, tensor<37x1000xf32>) {
    %b = nn.constant dense<0.9> : tensor<f32>
    %0 = nn.mul %m, %b : tensor<37x1000xf32>, tensor<f32>
    %1 = nn.add %0, %g : tensor<37x1000xf32>, tensor<37x1000xf32>
    %2 = nn.mul %1, %lr : tensor<37x1000xf32>, tensor<f32>
    %3 = nn.sub %w, %2 : tensor<37x1000xf32>, tensor<37x1000xf32>
    exec.yield %3, %1 : tensor<37x1000xf32>, tensor<37x1000xf32>
  })";
  auto module = parseSourceString<ModuleOp>(text, &context());
  auto pairs = reusableOperands(*module->getOps<exec::KernelOp>().begin());
  EXPECT_EQ(pairs.size(), 6u) << "either result over any full input";
  expectKernel(text, emitRowsKernel, noise, 1e-6);
}

TEST(RowsKernel, BooleansAndIntegers) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %i: tensor<$Rx1xi32>) -> (tensor<$Rx$Cxi1>, tensor<$Rx$Cxf32>, tensor<$Rx$Cxi32>) {
    %z = nn.constant dense<0.0> : tensor<f32>
    %0 = nn.compare gt %x, %z : tensor<$Rx$Cxf32>, tensor<f32>
    %1 = nn.where %0, %x, %z : tensor<$Rx$Cxi1>, tensor<$Rx$Cxf32>, tensor<f32>
    %2 = nn.iota [$R, $C] axis 1 i32
    %3 = nn.add %2, %i : tensor<$Rx$Cxi32>, tensor<$Rx1xi32>
    exec.yield %0, %1, %3 : tensor<$Rx$Cxi1>, tensor<$Rx$Cxf32>, tensor<$Rx$Cxi32>
  })",
      0);
}

TEST(RowsKernel, DropoutMasksByPosition) {
  expectRows(
      R"(exec.kernel @k "rows" (%x: tensor<$Rx$Cxf32>, %g: tensor<4xi32>) -> tensor<$Rx$Cxf32> {
    %0 = nn.random %g [$R, $C] id 7
    %1 = nn.add %0, %x : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    exec.yield %1 : tensor<$Rx$Cxf32>
  })",
      1e-6);
}

TEST(RowsKernel, NarrowFloats) {
  for (std::string type : {"bf16", "f16"})
    expectRows(
        replaceAll(
            R"(exec.kernel @k "rows" (%x: tensor<$Rx$CxT>, %b: tensor<$CxT>) -> tensor<$Rx$CxT> {
      %0 = nn.add %x, %b : tensor<$Rx$CxT>, tensor<$CxT>
      %1 = nn.silu %0 : tensor<$Rx$CxT>
      exec.yield %1 : tensor<$Rx$CxT>
    })",
            "CxT>", "Cx" + type + ">"),
        1e-2, {{3, 1}, {4, 17}, {7, 65}, {5, 1000}});
}

TEST(RowsKernel, NaNReachesTheResult) {
  expectKernel(R"(exec.kernel @k "rows" (%x: tensor<3x65xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = nn.reduce_max %x [1] : tensor<3x65xf32>
    %1 = nn.reduce_sum %x [1] : tensor<3x65xf32>
    exec.yield %0, %1 : tensor<3xf32>, tensor<3xf32>
  })",
               emitRowsKernel,
               [](unsigned input, size_t k) {
                 return k == 70 ? std::nan("") : k == 131 ? -INFINITY : noise(input, k);
               },
               1e-5);
}

TEST(ColumnsKernel, SeveralSumsShareTheirLoads) {
  expectRows(
      R"(exec.kernel @k "columns" (%dy: tensor<$Rx$Cxf32>, %x: tensor<$Rx$Cxf32>, %mu: tensor<$Rx1xf32>) -> (tensor<$Cxf32>, tensor<1x$Cxf32>, tensor<$Cxf32>) {
    %0 = nn.sub %x, %mu : tensor<$Rx$Cxf32>, tensor<$Rx1xf32>
    %1 = nn.mul %0, %dy : tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>
    %2 = nn.reduce_sum %1 [0] : tensor<$Rx$Cxf32>
    %3 = nn.reduce_mean %dy [0] keep : tensor<$Rx$Cxf32>
    %4 = nn.reduce_max %x [0] : tensor<$Rx$Cxf32>
    exec.yield %2, %3, %4 : tensor<$Cxf32>, tensor<1x$Cxf32>, tensor<$Cxf32>
  })",
      1e-5,
      {{1, 1}, {3, 1}, {5, 3}, {100, 17}, {7, 65}, {65, 100}, {1000, 33}, {5000, 8}, {9, 1000}},
      emitColumnsKernel);
}

TEST(ColumnsKernel, MiddleAxisAndLeadingAxes) {
  for (const char *axes : {"[1]", "[0]", "[0, 1]"}) {
    std::string type = StringRef(axes) == "[1]"   ? "3x$Cxf32"
                       : StringRef(axes) == "[0]" ? "$Rx$Cxf32"
                                                  : "$Cxf32";
    expectRows(
        replaceAll(replaceAll(R"(exec.kernel @k "columns" (%x: tensor<3x$Rx$Cxf32>) -> tensor<T> {
      %0 = nn.mul %x, %x : tensor<3x$Rx$Cxf32>, tensor<3x$Rx$Cxf32>
      %1 = nn.reduce_sum %0 AXES : tensor<3x$Rx$Cxf32>
      exec.yield %1 : tensor<T>
    })",
                              "AXES", axes),
                   "<T>", "<" + type + ">"),
        1e-5, {{1, 1}, {3, 1}, {5, 3}, {100, 17}, {65, 65}}, emitColumnsKernel);
  }
}

TEST(ColumnsKernel, RoundingErrorDoesNotGrowWithTheRows) {
  // 65536 equal values whose naive f32 sum is off by far more than a few units in the last place.
  expectKernel(R"(exec.kernel @k "columns" (%x: tensor<65536x8xf32>) -> tensor<8xf32> {
    %0 = nn.reduce_sum %x [0] : tensor<65536x8xf32>
    exec.yield %0 : tensor<8xf32>
  })",
               emitColumnsKernel, [](unsigned, size_t) { return 0.1; }, 1e-6);
}

} // namespace
} // namespace descent::testing
