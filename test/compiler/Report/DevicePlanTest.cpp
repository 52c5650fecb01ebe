//===- DevicePlanTest.cpp - Times and resources, worked out by hand -------===//
//
// A schedule of three launches and its device code, written by hand.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Report/Plan.h"
#include "dialects/Exec/Exec.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace descent;
using namespace mlir;

namespace {

constexpr const char *scheduleText = R"(
exec.kernel @rows_relu "rows" (%a: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %0 = nn.relu %a : tensor<4096x1024xf32>
  exec.yield %0 : tensor<4096x1024xf32>
}
exec.kernel @gemm "gemm" (%a: tensor<1024x512xbf16>, %b: tensor<512x2048xbf16>) -> tensor<1024x2048xbf16> {
  %0 = nn.matmul %a, %b : tensor<1024x512xbf16>, tensor<512x2048xbf16>
  exec.yield %0 : tensor<1024x2048xbf16>
}
exec.arena size 1048576 persistent 4096 lower_bound 1048576 parameters 0 gradients 0 optimizer 0 activations 1048576 workspace 0
exec.storage @"input:x" "inputs" at 0 : tensor<8x64xi32> {nn.role = "data"}
exec.program @step {
  %a = exec.buffer "a" "activations" at 4096 live [0, 1] : memref<4096x1024xf32>
  %b = exec.buffer "b" "activations" at 8192 live [0, 1] : memref<4096x1024xf32>
  %c = exec.buffer "c" "activations" at 4096 live [2, 2] : memref<1024x512xbf16>
  %d = exec.buffer "d" "activations" at 8192 live [2, 2] : memref<512x2048xbf16>
  %e = exec.buffer "e" "activations" at 12288 live [2, 2] : memref<1024x2048xbf16>
  exec.run @rows_relu ins(%a : memref<4096x1024xf32>) outs(%b : memref<4096x1024xf32>)
  exec.run @rows_relu ins(%b : memref<4096x1024xf32>) outs(%a : memref<4096x1024xf32>)
  exec.run @gemm ins(%c, %d : memref<1024x512xbf16>, memref<512x2048xbf16>) outs(%e : memref<1024x2048xbf16>)
}
)";

constexpr const char *deviceText = R"(
gpu.module @rows_relu.gpu {
  gpu.func @rows_relu(%a: memref<4096x1024xf32>, %b: memref<4096x1024xf32>) kernel {
    gpu.return
  }
}
exec.device_kernel @rows_relu inputs 1 workspace 0 {
^bb0(%a: memref<4096x1024xf32>, %b: memref<4096x1024xf32>):
  exec.device_launch @rows_relu.gpu::@rows_relu grid [4096, 1, 1] block [256, 1, 1] shared 512 (%a, %b) : memref<4096x1024xf32>, memref<4096x1024xf32>
}
exec.device_kernel @gemm inputs 2 workspace 256 {
^bb0(%a: memref<1024x512xbf16>, %b: memref<512x2048xbf16>, %d: memref<1024x2048xbf16>):
  exec.device_product %a, %b to %d {m = 1024 : i64, n = 2048 : i64, k = 512 : i64, lda = 512 : i64, ldb = 2048 : i64, ldd = 2048 : i64} : memref<1024x512xbf16>, memref<512x2048xbf16>, memref<1024x2048xbf16>
}
)";

class DevicePlanTest : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    schedule = parseSourceString<ModuleOp>(scheduleText, &context);
    kernels = parseSourceString<ModuleOp>(deviceText, &context);
    ASSERT_TRUE(schedule && kernels);
    llvm::Expected<CudaTarget> chip = CudaTarget::named("cuda:sm_90");
    ASSERT_TRUE(bool(chip));
    cuda = *chip;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> schedule, kernels;
  CudaTarget cuda;
};

TEST_F(DevicePlanTest, MemoryIsTheArenaAndWhatLiesBehindIt) {
  Plan plan = makePlan(*schedule, *kernels, cuda, nullptr);
  EXPECT_EQ(plan.memory.arena, 1048576);
  EXPECT_EQ(plan.memory.deviceWorkspace, 32 << 20); // of the library; the kernel's own is smaller
  EXPECT_EQ(plan.memory.deviceStaging, 2 * 2048);   // two slots of 8 x 64 x 4 bytes
  EXPECT_EQ(plan.memory.peak, 1048576 + (32 << 20) + 4096);
}

TEST_F(DevicePlanTest, TimesByHand) {
  Plan plan = makePlan(*schedule, *kernels, cuda, nullptr);
  const DevicePlan &device = *plan.device;
  ASSERT_EQ(device.kernels.size(), 2u);
  const DevicePlan::Kernel &relu = device.kernels[0], &gemm = device.kernels[1];
  // 2 x 16 MiB at 3.35e12 bytes/s; at 85 % of that.
  EXPECT_EQ(relu.launches, 2);
  EXPECT_EQ(relu.bytes, 33554432.0);
  EXPECT_TRUE(relu.isMemoryBound);
  EXPECT_NEAR(relu.roofline, 10.0163e-6, 1e-10);
  EXPECT_NEAR(relu.expected, 11.7838e-6, 1e-10);
  // 2 x 1024 x 2048 x 512 flop at 989.4e12 are 2.1705 us, 7 MiB are 2.1911 us: memory bound by a
  // hair. Expected: 70 % of arithmetic is longer than 85 % of bandwidth.
  ASSERT_EQ(gemm.products.size(), 1u);
  EXPECT_EQ(gemm.rate, "bf16");
  EXPECT_EQ(gemm.timeClass, "library");
  EXPECT_EQ(gemm.products[0].flops, 2147483648.0);
  EXPECT_EQ(gemm.products[0].bytes, 7340032.0);
  EXPECT_TRUE(gemm.products[0].isAligned);
  EXPECT_NEAR(gemm.roofline, 2.1911e-6, 1e-10);
  EXPECT_NEAR(gemm.expected, 3.1007e-6, 1e-10);

  const DevicePlan::Step &step = device.step;
  EXPECT_TRUE(step.areTokens);
  EXPECT_EQ(step.items, 512);
  EXPECT_EQ(step.commands, 3);
  EXPECT_NEAR(step.gaps, 3 * commandGap, 1e-12);
  EXPECT_NEAR(step.expected, 2 * 11.7838e-6 + 3.1007e-6 + step.gaps, 1e-9);
  EXPECT_EQ(step.modelFlops, 2147483648.0);
  EXPECT_EQ(step.peakType, "bf16");
  EXPECT_NEAR(step.floor, 2 * 10.0163e-6 + 3.1007e-6, 1e-9);
  ASSERT_EQ(device.classes.size(), 2u);
  EXPECT_EQ(device.classes[0].first, "rows");
}

TEST_F(DevicePlanTest, ResourcesComeFromPtxasOrAreSaidToBeUnknown) {
  Plan without = makePlan(*schedule, *kernels, cuda, nullptr);
  EXPECT_NE(without.device->noResources.find("no ptxas"), std::string::npos);
  EXPECT_FALSE(without.device->kernels[0].functions[0].resources);
  EXPECT_NE(printPlan(without).find("no ptxas"), std::string::npos);
  auto json = nlohmann::json::parse(printPlanJson(without));
  EXPECT_FALSE(json["kernels"][0]["functions"][0].contains("registers"));
  EXPECT_TRUE(json["device"].contains("no_resources"));

  Cubin cubin;
  cubin.functions["rows_relu"] = {/*registers=*/40, /*shared=*/1024, /*stack=*/16,
                                  /*spillStores=*/8, /*spillLoads=*/12};
  Plan with = makePlan(*schedule, *kernels, cuda, &cubin);
  const DevicePlan::Function &function = with.device->kernels[0].functions[0];
  ASSERT_TRUE(function.occupancy);
  // 8 warps of 1280 registers: 12 a partition, 48 warps, 6 blocks; 132 multiprocessors hold 792.
  EXPECT_EQ(function.occupancy->blocks, 6);
  EXPECT_NEAR(function.waves, 4096.0 / 792, 1e-9);
  json = nlohmann::json::parse(printPlanJson(with));
  const auto &entry = json["kernels"][0]["functions"][0];
  EXPECT_EQ(entry["registers"], 40);
  EXPECT_EQ(entry["static_shared_bytes"], 1024);
  EXPECT_EQ(entry["dynamic_shared_bytes"], 512);
  EXPECT_EQ(entry["spill_store_bytes"], 8);
  EXPECT_EQ(entry["occupancy"]["limit"], "registers");
  EXPECT_EQ(entry["operands"][0], "f32[4096, 1024]");
  auto spilling = spillingFunctions(cubin);
  ASSERT_EQ(spilling.size(), 1u);
  EXPECT_EQ(spilling.begin()->first, "rows_relu");
}

TEST_F(DevicePlanTest, RowsThatAreNotAlignedSlowTheLibraryDown) {
  kernels->walk([](exec::DeviceProductOp product) { product.setLdd(2049); });
  Plan plan = makePlan(*schedule, *kernels, cuda, nullptr);
  const DevicePlan::Product &product = plan.device->kernels[1].products[0];
  EXPECT_FALSE(product.isAligned);
  EXPECT_NEAR(product.expected, 2147483648.0 / (0.35 * cuda.halfFlops), 1e-12);
  EXPECT_NE(printPlan(plan).find("rows are not aligned to 16 bytes"), std::string::npos);
}

TEST_F(DevicePlanTest, RatesOfAnotherProductWithTheChip) {
  EXPECT_EQ(cuda.product, "H100 SXM5 80GB");
  double rate = cuda.halfFlops;
  ASSERT_FALSE(bool(chooseProduct(cuda, "h200")));
  EXPECT_EQ(cuda.product, "H200 SXM 141GB");
  EXPECT_EQ(cuda.memoryBandwidth, 4.8e12);
  EXPECT_EQ(cuda.halfFlops, rate);
  Plan plan = makePlan(*schedule, *kernels, cuda, nullptr);
  EXPECT_NEAR(plan.device->kernels[0].roofline, 33554432.0 / 4.8e12, 1e-12);
  std::string message = llvm::toString(chooseProduct(cuda, "B200"));
  EXPECT_NE(message.find("no known product with sm_90 has 'B200' in its name"), std::string::npos)
      << message;
}

} // namespace
