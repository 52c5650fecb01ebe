//===- MoveKernelTest.cpp - Copy, gather, scatter and pool kernels --------===//

#include "KernelOracle.h"

using namespace mlir;

namespace descent::testing {
namespace {

void expectCopy(const std::string &text) { expectKernel(text, emitCopyKernel, noise, 0); }

TEST(CopyKernel, TransposesOfEverySize) {
  for (auto [rows, columns] :
       {std::pair{1, 1}, {3, 1}, {3, 5}, {8, 8}, {17, 65}, {65, 100}, {1000, 65}, {300, 520}})
    for (const char *type : {"f32", "bf16", "i32", "i64", "i1"}) {
      std::string from =
          "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + type + ">";
      std::string to =
          "tensor<" + std::to_string(columns) + "x" + std::to_string(rows) + "x" + type + ">";
      expectKernel(
          "exec.kernel @k \"copy\" (%x: " + from + ") -> " + to +
              " { %0 = nn.transpose %x [1, 0] : " + from + " exec.yield %0 : " + to + " }",
          emitCopyKernel,
          [&](unsigned input, size_t k) {
            return StringRef(type) == "i1" ? double(noise(input, k) > 0) : noise(input, k);
          },
          0);
    }
}

TEST(CopyKernel, HeadsOutAndBack) {
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<2x17x3x12xf32>) -> tensor<2x3x17x12xf32> {
    %0 = nn.transpose %x [0, 2, 1, 3] : tensor<2x17x3x12xf32>
    exec.yield %0 : tensor<2x3x17x12xf32>
  })");
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<2x17x36xf32>) -> tensor<2x3x12x17xf32> {
    %0 = nn.reshape %x [2, 17, 3, 12] : tensor<2x17x36xf32>
    %1 = nn.transpose %0 [0, 2, 3, 1] : tensor<2x17x3x12xf32>
    exec.yield %1 : tensor<2x3x12x17xf32>
  })");
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<2x3x17x12xf32>) -> tensor<34x36xf32> {
    %0 = nn.transpose %x [0, 2, 1, 3] : tensor<2x3x17x12xf32>
    %1 = nn.reshape %0 [34, 36] : tensor<2x17x3x12xf32>
    exec.yield %1 : tensor<34x36xf32>
  })");
}

TEST(CopyKernel, SplitsConcatsAndSlices) {
  expectCopy(
      R"(exec.kernel @k "copy" (%x: tensor<5x7x36xf32>) -> (tensor<5x7x12xf32>, tensor<5x7x12xf32>, tensor<5x7x12xf32>) {
    %0, %1, %2 = nn.split %x axis 2 sections 3 : tensor<5x7x36xf32>
    exec.yield %0, %1, %2 : tensor<5x7x12xf32>, tensor<5x7x12xf32>, tensor<5x7x12xf32>
  })");
  expectCopy(
      R"(exec.kernel @k "copy" (%a: tensor<5x7xf32>, %b: tensor<5x1xf32>, %c: tensor<5x65xf32>) -> tensor<5x73xf32> {
    %0 = nn.concat %a, %b, %c axis 1 : tensor<5x7xf32>, tensor<5x1xf32>, tensor<5x65xf32>
    exec.yield %0 : tensor<5x73xf32>
  })");
  expectCopy(
      R"(exec.kernel @k "copy" (%a: tensor<5x7xf32>, %b: tensor<3x7xf32>) -> tensor<7x4xf32> {
    %0 = nn.concat %a, %b axis 0 : tensor<5x7xf32>, tensor<3x7xf32>
    %1 = nn.slice %0 from [1, 0] to [8, 7] by [2, 1] : tensor<8x7xf32>
    %2 = nn.transpose %1 [1, 0] : tensor<4x7xf32>
    exec.yield %2 : tensor<7x4xf32>
  })");
}

TEST(CopyKernel, PadsAroundAndBetween) {
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<3x5xf32>) -> tensor<8x14xf32> {
    %0 = nn.pad %x low [1, 2] high [2, 3] interior [1, 1] : tensor<3x5xf32>
    exec.yield %0 : tensor<8x14xf32>
  })");
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<3x5xf32>) -> tensor<4x3xf32> {
    %0 = nn.pad %x low [1, 2] high [2, 3] interior [1, 2] : tensor<3x5xf32>
    %1 = nn.slice %0 from [0, 1] to [8, 18] by [2, 6] : tensor<8x18xf32>
    exec.yield %1 : tensor<4x3xf32>
  })");
}

TEST(CopyKernel, BroadcastsAndConstants) {
  expectCopy(
      R"(exec.kernel @k "copy" (%x: tensor<3x1xf32>, %c: tensor<17xf32>) -> (tensor<2x3x17xf32>, tensor<3x17xf32>, tensor<33xf32>) {
    %0 = nn.broadcast %x [2, 3, 17] : tensor<3x1xf32>
    %1 = nn.broadcast %c [3, 17] : tensor<17xf32>
    %2 = nn.constant dense<3.5> : tensor<33xf32>
    exec.yield %0, %1, %2 : tensor<2x3x17xf32>, tensor<3x17xf32>, tensor<33xf32>
  })");
  // One long run is many tasks.
  expectCopy(R"(exec.kernel @k "copy" (%x: tensor<300000xf32>) -> tensor<3x100000xf32> {
    %0 = nn.reshape %x [3, 100000] : tensor<300000xf32>
    exec.yield %0 : tensor<3x100000xf32>
  })");
}

TEST(GatherKernel, RowsByIndexFromEitherEnd) {
  for (int columns : {1, 3, 17, 65, 100, 1000})
    for (const char *type : {"i32", "i64"})
      expectKernel(
          replaceAll(
              replaceAll(
                  R"(exec.kernel @k "gather" (%i: tensor<3x7xI>, %t: tensor<11x$Cxf32>) -> tensor<3x7x$Cxf32> {
        %0 = nn.embedding %i, %t : tensor<3x7xI>, tensor<11x$Cxf32>
        exec.yield %0 : tensor<3x7x$Cxf32>
      })",
                  "$C", std::to_string(columns)),
              "xI>", std::string("x") + type + ">"),
          emitGatherKernel,
          [](unsigned input, size_t k) {
            return input ? noise(input, k) : double(int((k * 5) % 22) - 11);
          },
          0);
}

TEST(ScatterKernel, RepeatedIndicesAddInOrder) {
  for (int columns : {1, 3, 17, 65, 100, 1000})
    for (const char *type : {"f32", "bf16"})
      expectKernel(
          replaceAll(
              replaceAll(
                  R"(exec.kernel @k "scatter" (%d: tensor<3x7x$CxT>, %i: tensor<3x7xi32>) -> tensor<11x$CxT> {
        %0 = nn.embedding_grad %d, %i rows 11 : tensor<3x7x$CxT>, tensor<3x7xi32>
        exec.yield %0 : tensor<11x$CxT>
      })",
                  "$C", std::to_string(columns)),
              "xT>", std::string("x") + type + ">"),
          emitScatterKernel,
          [](unsigned input, size_t k) {
            return input != 1 ? noise(input, k) : double(int((k * k) % 9) - 2);
          },
          2e-6);
}

TEST(PoolKernel, WindowsOverlapAndHangOver) {
  struct Case {
    int n, h, w, oh, ow;
    std::string attributes;
  };
  for (const Case &c : {Case{2, 8, 8, 4, 4, "kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0]"},
                        Case{2, 7, 9, 4, 5, "kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1]"},
                        Case{1, 5, 5, 5, 5, "kernel [3, 3] strides [1, 1] padding [1, 1, 1, 1]"}})
    for (int channels : {1, 3, 17, 65, 100})
      for (std::string type : {"f32", "bf16"}) {
        auto tensor = [&](int h, int w) {
          return "tensor<" + std::to_string(c.n) + "x" + std::to_string(h) + "x" +
                 std::to_string(w) + "x" + std::to_string(channels) + "x" + type + ">";
        };
        std::string image = tensor(c.h, c.w), pooled = tensor(c.oh, c.ow);
        // Few distinct values, so that windows have ties.
        auto fill = [](unsigned input, size_t k) { return std::floor(noise(input, k) * 2); };
        expectKernel("exec.kernel @k \"pool\" (%x: " + image + ") -> " + pooled +
                         " { %0 = nn.max_pool2d %x " + c.attributes + " : " + image +
                         " exec.yield %0 : " + pooled + " }",
                     emitPoolKernel, fill, 0);
        expectKernel("exec.kernel @k \"pool\" (%d: " + pooled + ", %x: " + image + ") -> " + image +
                         " { %0 = nn.max_pool2d_grad %d, %x " + c.attributes + " : " + pooled +
                         ", " + image + " exec.yield %0 : " + image + " }",
                     emitPoolKernel, fill, 0);
      }
}

} // namespace
} // namespace descent::testing
