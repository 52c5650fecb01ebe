//===- ContractionPtxTest.cpp - What products become on a chip ------------===//
//
// Every shape of tile, order of operands and kind of gather, as PTX and, where ptxas is found, as
// machine code of three chips: no spills, copies and stores of 16 bytes, tensor cores where
// operands are narrow. Nothing runs here; that the code is right show the programs beside this
// file. The table that is printed goes into docs/performance.md.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CudaCodegen.h"
#include "dialects/Exec/Exec.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Cuda/DeviceKernels.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Regex.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace descent;

namespace {

struct Case {
  std::string name;
  std::string body; ///< of a module: one exec.kernel
  std::vector<std::string> has, hasNot;
};

std::string gemm(StringRef name, StringRef a, StringRef b, StringRef y, StringRef attributes,
                 StringRef kernelAttributes = "") {
  auto tensor = [](StringRef type) { return "tensor<" + type.str() + ">"; };
  return "exec.kernel @" + name.str() + " \"gemm\" (%a: " + tensor(a) + ", %b: " + tensor(b) +
         ") -> " + tensor(y) + kernelAttributes.str() + " {\n  %y = nn.matmul %a, %b {" +
         attributes.str() + "} : " + tensor(a) + ", " + tensor(b) +
         "\n  exec.yield %y : " + tensor(y) + "\n}\n";
}

// Chips with arithmetic on pairs of f32 keep pairs in 64-bit registers.
const std::string copies16 = "cp.async.cg.shared.global", stores16 = "st.global.v(4.b32|2.b64)",
                  loads16 = "ld.shared.v(4.b32|2.b64)", multiplies = "fma.rn.f32";

std::vector<Case> cases() {
  std::vector<Case> all;
  std::vector<std::string> tensors = {copies16, "ldmatrix.sync.aligned.m8n8.x4",
                                      "mma.sync.aligned.m16n8k16", stores16},
                           rounded = {copies16, "mma.sync.aligned.m16n8k8.row.col.f32.tf32",
                                      stores16},
                           floats = {copies16, loads16, multiplies, stores16};
  struct Order {
    const char *name, *a, *b, *attributes;
  };
  for (auto [type, tiles] :
       {std::pair("f32", std::vector<std::string>{"128, 128, 32", "64, 64, 32", "128, 32, 32",
                                                  "32, 128, 32", "32, 32, 32"}),
        std::pair("bf16", std::vector<std::string>{"128, 128, 64", "64, 64, 64", "128, 32, 64",
                                                   "32, 128, 64", "32, 32, 64"}),
        std::pair("f16", std::vector<std::string>{"128, 128, 64"}),
        std::pair("tf32", std::vector<std::string>{"128, 128, 32", "64, 64, 32", "32, 32, 32"})})
    for (const std::string &tile : tiles)
      for (Order order : {Order{"nn", "512x256x", "256x512x", ""},
                          Order{"nt", "512x256x", "512x256x", ", transpose_b"},
                          Order{"tn", "256x512x", "256x512x", ", transpose_a"},
                          Order{"tt", "256x512x", "512x256x", ", transpose_a, transpose_b"}}) {
        std::string name = "gemm_" + std::string(type) + "_" + order.name + "_" +
                           tile.substr(0, tile.find(',')) + "x" +
                           std::to_string(std::stoi(tile.substr(tile.find(',') + 1)));
        bool tf32 = std::string(type) == "tf32";
        std::string element = tf32 ? "f32" : type;
        all.push_back({name,
                       gemm(name, order.a + element, order.b + element, "512x512x" + element,
                            "descent.tile = array<i64: " + tile + ", 2, 1>" + order.attributes,
                            tf32 ? " attributes {compute = \"tf32\"}" : ""),
                       tf32               ? rounded
                       : element == "f32" ? floats
                                          : tensors,
                       {}});
      }
  all.push_back(
      {"gemm_f8",
       gemm("gemm_f8", "512x256xf8E4M3FN", "512x256xf8E5M2", "512x512xf32",
            "transpose_b, result_type = f32, descent.tile = array<i64: 128, 128, 64, 2, 1>"),
       {"ld.global.nc.v2", "st.shared.v(4.b32|2.b64)", "mma.sync.aligned.m16n8k16", stores16},
       {}});
  all.push_back(
      {"gemm_odd",
       gemm("gemm_odd", "301x77xbf16", "77x53xbf16", "301x53xbf16", "descent.tile = array<i64>"),
       {"mma.sync.aligned.m16n8k16", "st.shared.v(4.b32|2.b64)"},
       {copies16}});
  all.push_back(
      {"gemm_cut",
       gemm("gemm_cut", "64x8192xf32", "8192x64xf32", "64x64xf32", "descent.tile = array<i64>"),
       {"gemm_cut_part", "gemm_cut_sum", copies16, stores16},
       {"atom."}});
  // An operand of 2^32 elements.
  all.push_back({"gemm_large",
                 gemm("gemm_large", "131072x32768xbf16", "32768x64xbf16", "131072x64xbf16",
                      "descent.tile = array<i64>"),
                 {copies16, "cp.async.wait_group"},
                 {}});
  all.push_back({"gemm_epilogue",
                 R"(
exec.kernel @gemm_epilogue "gemm" (%a: tensor<4096x768xbf16>, %b: tensor<768x3072xbf16>, %c: tensor<3072xbf16>, %r: tensor<4096x3072xbf16>) -> (tensor<4096x3072xbf16>, tensor<4096x3072xbf16>) {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<4096x768xbf16>, tensor<768x3072xbf16>
  %1 = nn.add %0, %c : tensor<4096x3072xbf16>, tensor<3072xbf16>
  %2 = nn.gelu %1 tanh : tensor<4096x3072xbf16>
  %3 = nn.add %2, %r : tensor<4096x3072xbf16>, tensor<4096x3072xbf16>
  exec.yield %1, %3 : tensor<4096x3072xbf16>, tensor<4096x3072xbf16>
}
)",
                 tensors,
                 {}});
  // Channels that fill chunks of 16 bytes, and such that come in pieces.
  for (auto [type, channels] :
       {std::pair("f32", 64), std::pair("f32", 3), std::pair("bf16", 64), std::pair("bf16", 3)}) {
    std::string c = std::to_string(channels), t = type;
    std::string x = "tensor<32x56x56x" + c + "x" + t + ">",
                w = "tensor<3x3x" + c + "x64x" + t + ">", y = "tensor<32x56x56x64x" + t + ">",
                yHalf = "tensor<32x28x28x64x" + t + ">";
    std::string how = "strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1]",
                half = "strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1]";
    std::string suffix = t + "_" + c;
    std::vector<std::string> has = {t == "f32" ? multiplies : "mma.sync.aligned.m16n8k16"};
    if (channels == 64)
      has.push_back(copies16);
    all.push_back({"conv_" + suffix,
                   "exec.kernel @conv_" + suffix + " \"conv\" (%x: " + x + ", %w: " + w + ") -> " +
                       y + " {\n %y = nn.conv2d %x, %w " + how + " : " + x + ", " + w +
                       "\n exec.yield %y : " + y + "\n}\n",
                   has,
                   {}});
    all.push_back({"conv_input_" + suffix,
                   "exec.kernel @conv_input_" + suffix + " \"conv\" (%x: " + yHalf + ", %w: " + w +
                       ") -> " + x + " {\n %y = nn.conv2d_grad_input %x, %w " + half +
                       " input [32, 56, 56, " + c + "] : " + yHalf + ", " + w +
                       "\n exec.yield %y : " + x + "\n}\n",
                   has,
                   {}});
    all.push_back({"conv_weight_" + suffix,
                   "exec.kernel @conv_weight_" + suffix + " \"conv\" (%x: " + x + ", %w: " + y +
                       ") -> " + w + " {\n %y = nn.conv2d_grad_weight %x, %w " + how +
                       " kernel [3, 3, " + c + ", 64] : " + x + ", " + y +
                       "\n exec.yield %y : " + w + "\n}\n",
                   has,
                   {"atom."}});
  }
  return all;
}

TEST(ContractionPtx, EveryTileAssemblesWithoutSpills) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  std::vector<Case> all = cases();
  std::string text;
  for (const Case &one : all)
    text += one.body;
  bool assembled = false;
  for (const char *chip : {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100"}) {
    llvm::Expected<CudaTarget> cuda = CudaTarget::named(chip);
    ASSERT_TRUE(bool(cuda));
    for (const Case &one : all) {
      OwningOpRef<ModuleOp> program = parseSourceString<ModuleOp>(one.body, &context);
      ASSERT_TRUE(program) << one.body;
      FailureOr<OwningOpRef<ModuleOp>> kernels = generateDeviceKernels(*program, *cuda);
      ASSERT_TRUE(succeeded(kernels)) << one.name;
      ASSERT_TRUE(succeeded(verify(**kernels))) << one.name;
      int64_t dynamic = 0;
      (*kernels)->walk([&](exec::DeviceLaunchOp launch) {
        dynamic = std::max<int64_t>(dynamic, static_cast<int64_t>(launch.getShared()));
      });
      ASSERT_TRUE(succeeded(lowerDeviceKernels(**kernels))) << one.name;
      FailureOr<DeviceCode> code = translateDeviceKernels(**kernels, *cuda);
      ASSERT_TRUE(succeeded(code)) << one.name;
      FailureOr<std::string> ptx = emitPtx(*code->module, *cuda, UnknownLoc::get(&context));
      ASSERT_TRUE(succeeded(ptx)) << one.name;
      for (const std::string &part : one.has)
        EXPECT_TRUE(llvm::Regex(part).match(*ptx)) << one.name << " lacks " << part;
      for (const std::string &part : one.hasNot)
        EXPECT_EQ(ptx->find(part), std::string::npos) << one.name << " has " << part;
      EXPECT_EQ(ptx->find(".local"), std::string::npos) << one.name << " uses local memory";
      if (llvm::sys::Process::GetEnv("DESCENT_SHOW_PTX") == one.name)
        std::cout << *ptx;
      FailureOr<std::optional<Cubin>> cubin = assemble(*ptx, *cuda, UnknownLoc::get(&context));
      ASSERT_TRUE(succeeded(cubin)) << one.name;
      if (!*cubin)
        continue;
      assembled = true;
      for (const auto &function : (*cubin)->functions) {
        const DeviceResources &resources = function.getValue();
        std::printf("%-34s %-12s %4d registers %7lld bytes shared\n",
                    function.getKey().str().c_str(), chip, resources.registers,
                    static_cast<long long>(resources.shared + dynamic));
        EXPECT_EQ(resources.spillStores, 0) << one.name << " on " << chip;
        EXPECT_EQ(resources.spillLoads, 0) << one.name << " on " << chip;
        EXPECT_EQ(resources.stack, 0) << one.name << " on " << chip;
      }
    }
  }
  if (!assembled)
    GTEST_SKIP() << "no ptxas: registers and spills are not checked";
}

} // namespace
