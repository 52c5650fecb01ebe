//===- DeviceLoopsTest.cpp - What loop kernels become on real chips -------===//
//
// PTX of kernels that move much memory and compute little: where nothing forbids it, every global
// access is of 16 bytes, and an assembler, where there is one, keeps every function in registers on
// three chips. What they compute is the business of the .mlir files beside this one.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CudaCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Cuda/DeviceKernels.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace descent {
namespace {

MLIRContext &context() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    auto *result = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    result->loadAllAvailableDialects();
    return result;
  }();
  return *context;
}

std::string tensor(llvm::StringRef shape, llvm::StringRef element) {
  return llvm::formatv("tensor<{0}x{1}>", shape, element);
}

std::string kernel(llvm::StringRef name, llvm::StringRef kind, llvm::StringRef arguments,
                   llvm::StringRef op, llvm::StringRef result) {
  return llvm::formatv("exec.kernel @{0} \"{1}\" ({2}) -> {4} {{ %r = {3} exec.yield %r : {4} }\n",
                       name, kind, arguments, op, result);
}

std::string columns(llvm::StringRef name, llvm::StringRef shape, llvm::StringRef axes,
                    llvm::StringRef result, llvm::StringRef element) {
  std::string type = tensor(shape, element);
  return kernel(name, "columns", "%x: " + type,
                llvm::formatv("nn.reduce_sum %x [{0}] : {1}", axes, type).str(),
                tensor(result, element));
}

std::string transpose(llvm::StringRef name, llvm::StringRef shape, llvm::StringRef result,
                      llvm::StringRef permutation, llvm::StringRef element) {
  std::string type = tensor(shape, element);
  return kernel(name, "copy", "%x: " + type,
                llvm::formatv("nn.transpose %x [{0}] : {1}", permutation, type).str(),
                tensor(result, element));
}

std::string gather(llvm::StringRef name, int64_t count, int64_t rows, int64_t width,
                   llvm::StringRef element, llvm::StringRef index) {
  std::string ids = tensor(std::to_string(count), index),
              table = tensor(llvm::formatv("{0}x{1}", rows, width).str(), element);
  return kernel(name, "gather", "%i: " + ids + ", %t: " + table,
                "nn.embedding %i, %t : " + ids + ", " + table,
                tensor(llvm::formatv("{0}x{1}", count, width).str(), element));
}

std::string scatter(llvm::StringRef name, int64_t count, int64_t rows, int64_t width,
                    llvm::StringRef element, llvm::StringRef index) {
  std::string ids = tensor(std::to_string(count), index),
              dy = tensor(llvm::formatv("{0}x{1}", count, width).str(), element);
  return kernel(name, "scatter", "%d: " + dy + ", %i: " + ids,
                llvm::formatv("nn.embedding_grad %d, %i rows {0} : {1}, {2}", rows, dy, ids).str(),
                tensor(llvm::formatv("{0}x{1}", rows, width).str(), element));
}

std::string pool(llvm::StringRef name, int64_t channels, llvm::StringRef element) {
  std::string image = tensor(llvm::formatv("8x32x32x{0}", channels).str(), element),
              pooled = tensor(llvm::formatv("8x16x16x{0}", channels).str(), element);
  std::string window = " kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : ";
  return kernel(name, "pool", "%x: " + image, "nn.max_pool2d %x" + window + image, pooled) +
         kernel((name + "_grad").str(), "pool", "%d: " + pooled + ", %x: " + image,
                "nn.max_pool2d_grad %d, %x" + window + pooled + ", " + image, image);
}

std::string ptxOf(const std::string &text, const CudaTarget &cuda) {
  OwningOpRef<ModuleOp> program = parseSourceString<ModuleOp>(text, &context());
  if (!program)
    return {};
  FailureOr<OwningOpRef<ModuleOp>> device = generateDeviceKernels(*program, cuda);
  if (failed(device) || failed(lowerDeviceKernels(**device)))
    return {};
  FailureOr<DeviceCode> code = translateDeviceKernels(**device, cuda);
  if (failed(code))
    return {};
  FailureOr<std::string> ptx = emitPtx(*code->module, cuda, program->getLoc());
  return succeeded(ptx) ? *ptx : std::string();
}

CudaTarget chip(llvm::StringRef name) { return llvm::cantFail(CudaTarget::named(name)); }

/// Lines that access global memory, in all and by 16 bytes.
std::pair<int, int> accesses(llvm::StringRef ptx) {
  int all = 0, wide = 0;
  llvm::SmallVector<llvm::StringRef> lines;
  ptx.split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.contains("ld.global") || line.contains("st.global")) {
      ++all;
      wide += line.contains(".v4.b32") || line.contains(".v2.b64");
    }
  return {all, wide};
}

void expectWide(const std::string &text) {
  SCOPED_TRACE(text);
  auto [all, wide] = accesses(ptxOf(text, chip("cuda:sm_80")));
  EXPECT_GT(all, 0);
  EXPECT_EQ(all, wide);
}

TEST(DeviceLoops, SixteenBytesAnAccess) {
  expectWide(columns("k", "8192x768", "0", "768", "f32"));
  expectWide(columns("k", "40x100", "0", "100", "f32"));
  expectWide(columns("k", "16x300x64", "1", "16x64", "f32"));
  for (const char *element : {"f32", "bf16", "i64", "f8E4M3FN"}) {
    expectWide(transpose("k", "512x1024", "1024x512", "1, 0", element));
    expectWide(transpose("k", "3x112x48", "3x48x112", "0, 2, 1", element));
    expectWide(transpose("k", "8x128x12x64", "8x12x128x64", "0, 2, 1, 3", element));
  }
  std::string x = "tensor<8x1024x2304xbf16>", part = "tensor<8x1024x768xbf16>";
  expectWide("exec.kernel @k \"copy\" (%x: " + x + ") -> (" + part + ", " + part + ", " + part +
             ") { %a, %b, %c = nn.split %x axis 2 sections 3 : " + x +
             " exec.yield %a, %b, %c : " + part + ", " + part + ", " + part + " }");
  expectWide(
      "exec.kernel @k \"copy\" (%x: tensor<64xbf16>) -> tensor<100x64xbf16> {"
      " %y = nn.broadcast %x [100, 64] : tensor<64xbf16> exec.yield %y : tensor<100x64xbf16> }");
  expectWide(pool("k", 64, "f32"));
  expectWide(pool("k", 64, "bf16"));
}

/// What is read by 16 bytes besides indices and what belongs to them.
TEST(DeviceLoops, RowsOfTablesBySixteenBytes) {
  for (const char *element : {"f32", "bf16"}) {
    std::string ptx = ptxOf(gather("k", 4096, 50257, 768, element, "i32"), chip("cuda:sm_80"));
    EXPECT_EQ(accesses(ptx), std::pair(3, 2));
    ptx = ptxOf(scatter("k", 16384, 50257, 768, element, "i32"), chip("cuda:sm_80"));
    EXPECT_EQ(llvm::StringRef(ptx).count("global.b16"), 0u);
    EXPECT_EQ(llvm::StringRef(ptx).count("atom."), 0u);
    EXPECT_EQ(llvm::StringRef(ptx).count("red.global"), 0u);
    EXPECT_GT(accesses(ptx).second, 8);
  }
}

TEST(DeviceLoops, KeepsToRegisters) {
  if (findCudaTool("ptxas").empty())
    GTEST_SKIP() << "no ptxas";
  std::string text;
  int number = 0;
  auto name = [&] { return "k" + std::to_string(number++); };
  for (const char *element : {"f32", "bf16", "f16"}) {
    text += columns(name(), "16384x768", "0", "768", element);
    text += columns(name(), "1000x127", "0", "127", element);
    text += columns(name(), "1000x1", "0", "1", element);
    text += columns(name(), "12x500x60", "1", "12x60", element);
    text += transpose(name(), "512x1024", "1024x512", "1, 0", element);
    text += transpose(name(), "127x65", "65x127", "1, 0", element);
    text += transpose(name(), "8x128x12x64", "8x12x128x64", "0, 2, 1, 3", element);
    text += gather(name(), 4096, 50257, 768, element, "i32");
    text += gather(name(), 100, 5, 3, element, "i64");
    text += scatter(name(), 16384, 50257, 768, element, "i32");
    text += scatter(name(), 300000, 500, 33, element, "i64");
    text += scatter(name(), 7, 11, 64, element, "i32");
    text += pool(name(), 64, element);
    text += pool(name(), 3, element);
  }
  text += transpose(name(), "130x48", "48x130", "1, 0", "i1");
  text += transpose(name(), "130x48", "48x130", "1, 0", "f8E5M2");
  // Several sums from one sweep.
  text +=
      R"(exec.kernel @several "columns" (%x: tensor<4000x256xbf16>, %d: tensor<4000x256xbf16>, %s: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
    %a = nn.cast %x to f32 : tensor<4000x256xbf16>
    %b = nn.cast %d to f32 : tensor<4000x256xbf16>
    %c = nn.mul %a, %s : tensor<4000x256xf32>, tensor<256xf32>
    %e = nn.mul %c, %b : tensor<4000x256xf32>, tensor<4000x256xf32>
    %0 = nn.reduce_sum %e [0] : tensor<4000x256xf32>
    %1 = nn.reduce_sum %b [0] : tensor<4000x256xf32>
    exec.yield %0, %1 : tensor<256xf32>, tensor<256xf32>
  })";
  for (const char *target : {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100"}) {
    SCOPED_TRACE(target);
    CudaTarget cuda = chip(target);
    std::string ptx = ptxOf(text, cuda);
    ASSERT_FALSE(ptx.empty());
    FailureOr<std::optional<Cubin>> cubin = assemble(ptx, cuda, UnknownLoc::get(&context()));
    ASSERT_TRUE(succeeded(cubin) && cubin->has_value());
    EXPECT_GT((*cubin)->functions.size(), size_t(number));
    for (const auto &entry : (*cubin)->functions) {
      const DeviceResources &resources = entry.second;
      EXPECT_EQ(resources.spillStores + resources.spillLoads + resources.stack, 0)
          << entry.first().str() << ", " << resources.registers << " registers";
    }
  }
}

} // namespace
} // namespace descent
