//===- DeviceAttentionTest.cpp - What attention becomes on real chips -----===//
//
// PTX of the kernels: which instructions the tensor-core form is made of, and that an assembler,
// where there is one, keeps every variant in registers on three chips. What they compute is
// attention.mlir's business.
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
#include <iostream>

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

struct Shape {
  int64_t length, heads, depth;
  bool causal, packed;
  std::string type;

  std::string name() const {
    return llvm::formatv("t{0}_h{1}_d{2}_{3}_{4}_{5}", length, heads, depth,
                         causal ? "causal" : "full", packed ? "packed" : "apart", type);
  }
};

/// A forward and a gradient kernel of the shape.
std::string kernels(const Shape &s) {
  int64_t columns = s.heads * s.depth;
  std::string part = llvm::formatv("tensor<2x{0}x{1}x{2}>", s.length, columns, s.type);
  std::string whole = llvm::formatv("tensor<2x{0}x{1}x{2}>", s.length, 3 * columns, s.type);
  std::string log = llvm::formatv("tensor<2x{0}x{1}xf32>", s.heads, s.length);
  std::string three = part + ", " + part + ", " + part, causal = s.causal ? "causal" : "";
  std::string inputs =
      s.packed ? "%x: " + whole : "%q: " + part + ", %k: " + part + ", %v: " + part;
  std::string split = s.packed ? "%q, %k, %v = nn.split %x axis 2 sections 3 : " + whole : "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "exec.kernel @" << s.name() << " \"attention\" (" << inputs << ") -> (" << part << ", "
         << log << ") {\n"
         << split << "\n%o, %l = nn.attention %q, %k, %v heads " << s.heads << " " << causal
         << " save_logsumexp : " << three << "\nexec.yield %o, %l : " << part << ", " << log
         << "\n}\n";
  stream << "exec.kernel @" << s.name() << "_grad \"attention_grad\" (%d: " << part << ", "
         << inputs << ", %o: " << part << ", %l: " << log << ") -> (" << (s.packed ? whole : three)
         << ") {\n"
         << split << "\n%dq, %dk, %dv = nn.attention_grad %d, %q, %k, %v, %o, %l heads " << s.heads
         << " " << causal << " : " << part << ", " << three << ", " << part << ", " << log << "\n";
  if (s.packed)
    stream << "%dx = nn.concat %dq, %dk, %dv axis 2 : " << three << "\nexec.yield %dx : " << whole;
  else
    stream << "exec.yield %dq, %dk, %dv : " << three;
  stream << "\n}\n";
  return text;
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

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

// Everything global goes by 16 bytes and past the registers, but statistics.
TEST(DeviceAttention, TensorCoreFormInPtx) {
  for (std::string type : {"bf16", "f16"}) {
    SCOPED_TRACE(type);
    std::string ptx = ptxOf(kernels({256, 2, 64, true, true, type}), chip("cuda:sm_80"));
    ASSERT_FALSE(ptx.empty());
    EXPECT_GT(count(ptx, "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type + ".f32"),
              0u);
    EXPECT_GT(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 0u);
    EXPECT_GT(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), 0u);
    EXPECT_GT(count(ptx, "cp.async.cg.shared.global"), 0u);
    EXPECT_GT(count(ptx, "st.global.v4.b32"), 0u);
    EXPECT_GT(count(ptx, "ex2.approx.ftz.f32"), 0u);
    EXPECT_GT(count(ptx, "cvt.rn." + type + "x2.f32"), 0u);
    EXPECT_EQ(count(ptx, "ld.global.b16"), 0u);
    EXPECT_EQ(count(ptx, "st.global.b16"), 0u);
    EXPECT_EQ(count(ptx, "atom."), 0u);
    EXPECT_EQ(count(ptx, "div."), 0u);
    EXPECT_EQ(count(ptx, ".local."), 0u);
  }
}

// A head size whose rows are no multiples of 16 bytes still multiplies on the tensor cores.
TEST(DeviceAttention, OddHeadInPtx) {
  std::string ptx = ptxOf(kernels({65, 3, 7, false, false, "bf16"}), chip("cuda:sm_80"));
  EXPECT_GT(count(ptx, "mma.sync"), 0u);
  EXPECT_GT(count(ptx, "ld.global"), 0u);
  EXPECT_EQ(count(ptx, "cp.async.cg"), 0u);
}

TEST(DeviceAttention, OrdinaryUnitsInPtx) {
  std::string ptx = ptxOf(kernels({256, 2, 64, true, true, "f32"}), chip("cuda:sm_80"));
  EXPECT_GT(count(ptx, "fma.rn.f32"), 0u);
  EXPECT_GT(count(ptx, "ld.shared.v4"), 0u);
  EXPECT_GT(count(ptx, "st.global.v4"), 0u);
  EXPECT_EQ(count(ptx, "mma."), 0u);
  EXPECT_EQ(count(ptx, ".local."), 0u);
}

// No function spills, on any chip. Set DESCENT_SHOW_RESOURCES to see registers.
TEST(DeviceAttention, KeepsToRegisters) {
  if (findCudaTool("ptxas").empty())
    GTEST_SKIP() << "no ptxas";
  std::vector<Shape> shapes;
  for (int64_t depth : {16, 32, 48, 64, 80, 96, 112, 128})
    shapes.push_back({1000, 3, depth, true, true, "bf16"});
  for (int64_t depth : {64, 128}) {
    shapes.push_back({1024, 1, depth, true, false, "bf16"});
    shapes.push_back({1024, 12, depth, true, true, "bf16"});
    shapes.push_back({1000, 1, depth, false, false, "f16"});
    shapes.push_back({64, 2, depth, true, true, "f16"});
    shapes.push_back({1000, 2, depth, true, true, "f32"});
  }
  shapes.push_back({1024, 12, 64, false, true, "bf16"});
  shapes.push_back({1000, 3, 7, true, true, "bf16"});
  shapes.push_back({1000, 3, 24, false, true, "f16"});
  shapes.push_back({1000, 1, 256, true, true, "bf16"});
  shapes.push_back({1000, 3, 20, true, true, "f32"});
  shapes.push_back({1000, 1, 192, true, true, "f32"});
  std::string text;
  for (const Shape &shape : shapes)
    text += kernels(shape);
  bool show = std::getenv("DESCENT_SHOW_RESOURCES");
  for (const char *target : {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100"}) {
    SCOPED_TRACE(target);
    CudaTarget cuda = chip(target);
    std::string ptx = ptxOf(text, cuda);
    ASSERT_FALSE(ptx.empty());
    FailureOr<std::optional<Cubin>> cubin = assemble(ptx, cuda, UnknownLoc::get(&context()));
    ASSERT_TRUE(succeeded(cubin) && cubin->has_value());
    ASSERT_EQ((*cubin)->functions.size(), 3 * shapes.size());
    for (const auto &entry : (*cubin)->functions) {
      const DeviceResources &resources = entry.second;
      EXPECT_EQ(resources.spillStores + resources.spillLoads, 0)
          << entry.first().str() << ", " << resources.registers << " registers";
      if (show)
        std::cout << target << " " << entry.first().str() << " " << resources.registers << "\n";
    }
  }
}

} // namespace
} // namespace descent
