//===- ProductsTest.cpp - Every product the runtime asks cuBLASLt for -------------------------===//
//
// The runtime's own calls, on the emulated library. The emulator multiplies column-major matrices
// as cuBLASLt describes them, the loops in ProductRig.h row-major ones as exec.device_product does:
// that both agree is the proof of the mapping between the two.
//
//===------------------------------------------------------------------------------------------===//

#include "ProductRig.h"

using namespace descent;
using namespace descent::test;

namespace {

struct Types {
  int32_t operands, result;
};
constexpr Types allTypes[] = {{DESCENT_F32, DESCENT_F32},
                              {DESCENT_BF16, DESCENT_BF16},
                              {DESCENT_BF16, DESCENT_F32},
                              {DESCENT_F16, DESCENT_F16},
                              {DESCENT_F16, DESCENT_F32}};

// Each of the sixteen epilogues with each of the four transpositions, in each combination of types.
TEST(Products, EveryTranspositionAndEpilogue) {
  for (auto [operands, result] : allTypes)
    for (int epilogue = 0; epilogue <= DESCENT_EPILOGUE_BGRAD_B; ++epilogue)
      for (int transposed = 0; transposed < 4; ++transposed) {
        Case test(9, 16, 12, operands, result, epilogue, transposed & 1, transposed & 2);
        Rig(test).all();
        if (HasFailure())
          return;
      }
}

// Sizes that are no multiples of anything, and rows that are parts of longer ones, at places that
// are aligned to no more than an element.
TEST(Products, OddSizesAndViews) {
  for (auto [operands, result] : allTypes)
    for (int transposed = 0; transposed < 4; ++transposed)
      for (int64_t gap : {0, 3}) {
        Case test(7, 5, 3, operands, result, DESCENT_EPILOGUE_BIAS, transposed & 1, transposed & 2,
                  1, gap);
        test.product.a.offset = test.buffers[A].offset = bytesOf(operands);
        test.product.b.offset = test.buffers[B].offset = 2 * bytesOf(operands);
        test.product.d.offset = test.buffers[D].offset = 3 * bytesOf(result);
        Rig(test).all();
      }
  for (int64_t size : {1, 2, 17}) {
    Case one(size, 1, 33, DESCENT_BF16, DESCENT_BF16);
    Rig(one).all();
    Case row(1, size, 1, DESCENT_F32, DESCENT_F32, DESCENT_EPILOGUE_RELU_BIAS);
    Rig(row).all();
  }
}

TEST(Products, Batches) {
  for (int transposed = 0; transposed < 4; ++transposed)
    for (int epilogue : {DESCENT_EPILOGUE_NONE, DESCENT_EPILOGUE_GELU_AUX_BIAS,
                         DESCENT_EPILOGUE_DGELU, DESCENT_EPILOGUE_RELU_AUX}) {
      Case test(6, 8, 5, DESCENT_BF16, DESCENT_BF16, epilogue, transposed & 1, transposed & 2, 3,
                2);
      Rig(test).all();
    }
  // One B for all.
  Case shared(6, 8, 5, DESCENT_F32, DESCENT_F32, DESCENT_EPILOGUE_NONE, false, false, 3);
  shared.product.stride_b = 0;
  Rig(shared).all();
}

// Gradients of weights are added onto f32, whatever the operands are; twice is twice.
TEST(Products, Accumulate) {
  for (auto [operands, result] : {Types{DESCENT_BF16, DESCENT_F32}, {DESCENT_F32, DESCENT_F32}}) {
    Case test(24, 16, 40, operands, result, DESCENT_EPILOGUE_NONE, true);
    test.product.accumulate = 1;
    Rig rig(test);
    rig.all();
    test.buffers[D].data = rig.download(D);
    rig.run();
    rig.compare();
  }
}

// A result that is written, not added to, is not read: it may hold NaN, or nothing yet.
TEST(Products, OverwritesWhateverWasThere) {
  Case test(8, 8, 8, DESCENT_F32, DESCENT_F32);
  std::ranges::fill(test.buffers[D].data, static_cast<char>(0xff));
  Rig(test).all();
}

TEST(Products, Tf32TakesTenBitsOfEachOperand) {
  Case test(8, 8, 16, DESCENT_F32, DESCENT_F32, DESCENT_EPILOGUE_BIAS, true);
  test.product.compute = DESCENT_COMPUTE_TF32;
  Rig rig(test);
  rig.choose();
  rig.place();
  rig.run();
  // The loops agree only once their operands are rounded too.
  for (Role role : {A, B})
    for (size_t i = 0; i < test.buffers[role].data.size(); i += 4) {
      uint32_t bits;
      std::memcpy(&bits, &test.buffers[role].data[i], 4);
      bits = (bits + 0x1000) & ~0x1fffu;
      std::memcpy(&test.buffers[role].data[i], &bits, 4);
    }
  rig.compare();
}

TEST(Products, EightBitsWithScales) {
  for (int32_t result : {DESCENT_BF16, DESCENT_F32}) {
    // Both operands lie along k.
    Case test(32, 16, 48, DESCENT_F8E4M3, result, DESCENT_EPILOGUE_BIAS, false, true);
    test.buffers[A].dtype = test.product.a.dtype = DESCENT_F8E5M2;
    test.buffers[Bias].dtype = test.product.bias.dtype = DESCENT_BF16;
    test.buffers[Bias].data.resize(32);
    test.product.bias.bytes = 32;
    std::mt19937 random(1);
    test.fill(Bias, random);
    test.addScale(ScaleA, 0.25f);
    test.addScale(ScaleB, 3);
    Rig(test).all();
  }
}

// What hardware has no instructions for, or the library no kernels.
TEST(Products, HasNoAlgorithm) {
  auto none = [](Case test, const char *why) {
    descent_command other = {};
    test.product.otherwise = &other;
    test.product.otherwise_count = 1;
    Rig rig(test);
    rig.choose();
    EXPECT_FALSE(rig.products().isAvailable(test.product)) << describe(test.product);
    EXPECT_NE(emulator::libraryMessage().find(why), std::string::npos)
        << emulator::libraryMessage();
    ASSERT_EQ(rig.products().notes().size(), 1u);
    bool isSum = test.product.epilogue == DESCENT_EPILOGUE_BGRAD_A ||
                 test.product.epilogue == DESCENT_EPILOGUE_BGRAD_B;
    EXPECT_NE(rig.products().notes()[0].find(std::string("kernel gemm_test ") +
                                             (isSum ? "adds up an operand" : "runs") +
                                             " by generated code"),
              std::string::npos)
        << rig.products().notes()[0];
  };
  none(Case(32, 32, 32, DESCENT_F8E4M3, DESCENT_BF16), "do not lie along k");
  none(Case(32, 32, 24, DESCENT_F8E4M3, DESCENT_BF16, 0, false, true), "multiples of 16");
  none(Case(32, 32, 32, DESCENT_F8E5M2, DESCENT_BF16, 0, false, true), "two E5M2");
  Case odd(8, 12, 8, DESCENT_BF16, DESCENT_BF16, DESCENT_EPILOGUE_GELU_AUX);
  odd.product.ld_aux = 12;
  none(odd, "leading dimension of 12");
  Case types(8, 8, 8, DESCENT_BF16, DESCENT_BF16);
  types.buffers[B].dtype = types.product.b.dtype = DESCENT_F16;
  none(types, "types");
  // A library as old as the manual allows.
  Variable strict("DESCENT_EMULATOR_CUBLASLT", "strict");
  none(Case(8, 8, 8, DESCENT_BF16, DESCENT_F32, DESCENT_EPILOGUE_GELU), "f32 result of narrower");
  none(Case(8, 8, 8, DESCENT_BF16, DESCENT_F32, DESCENT_EPILOGUE_BGRAD_B),
       "f32 result of narrower");
}

TEST(Products, NothingElseToRunIsAnError) {
  Variable none("DESCENT_EMULATOR_CUBLASLT", "none");
  Case test(64, 32, 16, DESCENT_BF16, DESCENT_F32, DESCENT_EPILOGUE_BIAS, false, true);
  Rig rig(test);
  try {
    rig.choose();
    FAIL() << "nothing was thrown";
  } catch (const Error &error) {
    EXPECT_STREQ(
        error.what(),
        "kernel gemm_test needs the matrix product 64x32x16, bf16 x bf16 transposed -> f32, "
        "epilogue bias (f32) of cuBLASLt, and version 130100 has none "
        "(CUBLAS_STATUS_NOT_SUPPORTED) on Emulated; the program holds no other code for it: a "
        "newer cuBLASLt, or another precision.compute, would do");
  }
}

// A product that runs where another has no algorithm is prepared like any other.
TEST(Products, OtherwiseMayHoldAProduct) {
  Variable strict("DESCENT_EMULATOR_CUBLASLT", "strict");
  Case plain(8, 8, 8, DESCENT_BF16, DESCENT_F32);
  descent_command command = {};
  command.kind = DESCENT_COMMAND_PRODUCT;
  command.product = &plain.product;
  Case test(8, 8, 8, DESCENT_BF16, DESCENT_F32, DESCENT_EPILOGUE_RELU);
  test.product.otherwise = &command;
  test.product.otherwise_count = 1;
  Rig rig(test);
  rig.choose();
  EXPECT_FALSE(rig.products().isAvailable(test.product));
  EXPECT_TRUE(rig.products().isAvailable(plain.product));
}

// The workspace of the kernels holds an operand too: the library's begins behind it.
TEST(Products, WorkspaceLiesBehindOperands) {
  Variable split("DESCENT_EMULATOR_CUBLASLT", "split");
  Case test(8, 16, 64, DESCENT_BF16, DESCENT_BF16, DESCENT_EPILOGUE_BIAS);
  test.product.bias.operand = DESCENT_WORKSPACE;
  test.product.bias.offset = 512;
  Rig rig(test);
  rig.choose();
  rig.place();
  rig.check(rig.driver->cuMemcpyHtoDAsync(rig.workspace + 512, test.buffers[Bias].data.data(),
                                          test.buffers[Bias].data.size(), rig.stream));
  rig.run();
  rig.compare();
}

// In the loop nothing is allocated, and a captured product gives the same bits each time.
TEST(Products, CapturedInAGraph) {
  Case test(24, 16, 40, DESCENT_BF16, DESCENT_BF16, DESCENT_EPILOGUE_GELU_AUX_BIAS);
  Rig rig(test);
  rig.choose();
  rig.place();
  descent_emulator_reset_calls();
  rig.run();
  std::vector<char> eager = rig.download(D);
  rig.check(rig.driver->cuStreamBeginCapture(rig.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  rig.products().enqueue(rig.bound, rig.stream);
  CUgraph graph;
  rig.check(rig.driver->cuStreamEndCapture(rig.stream, &graph));
  CUgraphExec executable;
  rig.check(rig.driver->cuGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) {
    rig.check(rig.driver->cuGraphLaunch(executable, rig.stream));
    EXPECT_EQ(rig.download(D), eager);
  }
  rig.compare();
  EXPECT_EQ(descent_emulator_calls("cuMemAlloc"), 0u);
  rig.check(rig.driver->cuGraphExecDestroy(executable));
  rig.check(rig.driver->cuGraphDestroy(graph));
}

// What the library would leave to luck, the emulator reports.
TEST(Products, EmulatorRefuses) {
  const Library *library = descent_emulated_drivers.library;
  cublasLtMatmulDesc_t description;
  ASSERT_EQ(library->cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  int32_t narrow = 1;
  int64_t wide = 1;
  EXPECT_EQ(library->cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                    &narrow, sizeof narrow),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(library->cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &wide,
                                                    sizeof wide),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(library->cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                    &narrow, sizeof narrow),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(library->cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(library->cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_INVALID_VALUE);

  // A result over an operand.
  Case test(8, 8, 8, DESCENT_F32, DESCENT_F32);
  Rig rig(test);
  rig.choose();
  rig.place();
  rig.addresses[D] = rig.addresses[A];
  size_t overlapping = rig.products().bind(test.product, rig.addresses, rig.workspace);
  EXPECT_THROW(rig.products().enqueue(overlapping, rig.stream), Error);
  EXPECT_EQ(emulator::libraryMessage(), "cublasLtMatmul: D lies over B");
  // An address that the plan must not have.
  rig.addresses[D] = rig.addresses[B] + 32;
  EXPECT_THROW(rig.products().bind(test.product, rig.addresses, rig.workspace), Error);
}

// An operand that nobody wrote is reported when the product runs.
TEST(Products, EmulatorReportsUnwrittenOperands) {
  Case test(8, 8, 8, DESCENT_F32, DESCENT_F32);
  Rig rig(test);
  rig.choose();
  rig.place();
  CUdeviceptr fresh;
  rig.check(rig.driver->cuMemAlloc(&fresh, 256));
  rig.addresses[A] = fresh;
  rig.products().enqueue(rig.products().bind(test.product, rig.addresses, rig.workspace),
                         rig.stream);
  EXPECT_NE(rig.driver->cuStreamSynchronize(rig.stream), CUDA_SUCCESS);
  EXPECT_NE(emulator::lastMessage().find("B"), std::string::npos) << emulator::lastMessage();
}

} // namespace
