//===- RowsBench.cpp - Bandwidth of generated rows kernels ----------------===//
//
// GB/s = (bytes read + bytes written, each buffer once) / time, one thread, best of many. "cached"
// runs on one set of buffers, "memory" on sets that together exceed the last-level cache. memcpy in
// the same places is the roof.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Codegen/KernelEmitter.h"
#include "passes/Codegen/KernelFunction.h"
#include <chrono>
#include <cstdio>
#include <cstring>

using namespace mlir;
using namespace descent;

namespace {

struct Benchmark {
  const char *name;
  const char *text;
};

const Benchmark benchmarks[] = {
    {"gelu (tanh) 1024x3072",
     R"(exec.kernel @k "rows" (%x: tensor<1024x3072xf32>) -> tensor<1024x3072xf32> {
       %0 = nn.gelu %x tanh : tensor<1024x3072xf32>
       exec.yield %0 : tensor<1024x3072xf32>
     })"},
    {"softmax 1024x768",
     R"(exec.kernel @k "rows" (%x: tensor<1024x768xf32>) -> tensor<1024x768xf32> {
       %0 = nn.softmax %x axis 1 : tensor<1024x768xf32>
       exec.yield %0 : tensor<1024x768xf32>
     })"},
    {"softmax 4096x65", R"(exec.kernel @k "rows" (%x: tensor<4096x65xf32>) -> tensor<4096x65xf32> {
       %0 = nn.softmax %x axis 1 : tensor<4096x65xf32>
       exec.yield %0 : tensor<4096x65xf32>
     })"},
    {"layer_norm 1024x768",
     R"(exec.kernel @k "rows" (%x: tensor<1024x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<1024x768xf32> {
       %0 = nn.layer_norm %x, %g, %b : tensor<1024x768xf32>, tensor<768xf32>, tensor<768xf32>
       exec.yield %0 : tensor<1024x768xf32>
     })"},
    {"layer_norm 8192x128",
     R"(exec.kernel @k "rows" (%x: tensor<8192x128xf32>, %g: tensor<128xf32>, %b: tensor<128xf32>) -> tensor<8192x128xf32> {
       %0 = nn.layer_norm %x, %g, %b : tensor<8192x128xf32>, tensor<128xf32>, tensor<128xf32>
       exec.yield %0 : tensor<8192x128xf32>
     })"},
    {"adamw update 1M",
     R"(exec.kernel @k "rows" (%w: tensor<1024x1024xf32>, %g: tensor<1024x1024xf32>, %m: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>, %lr: tensor<f32>)
         -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
       %b1 = nn.constant dense<0.9> : tensor<f32>
       %c1 = nn.constant dense<0.1> : tensor<f32>
       %b2 = nn.constant dense<0.999> : tensor<f32>
       %c2 = nn.constant dense<0.001> : tensor<f32>
       %eps = nn.constant dense<1.0e-8> : tensor<f32>
       %decay = nn.constant dense<0.01> : tensor<f32>
       %m0 = nn.mul %m, %b1 : tensor<1024x1024xf32>, tensor<f32>
       %m1 = nn.mul %g, %c1 : tensor<1024x1024xf32>, tensor<f32>
       %m2 = nn.add %m0, %m1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       %gg = nn.mul %g, %g : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       %v0 = nn.mul %v, %b2 : tensor<1024x1024xf32>, tensor<f32>
       %v1 = nn.mul %gg, %c2 : tensor<1024x1024xf32>, tensor<f32>
       %v2 = nn.add %v0, %v1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       %s = nn.sqrt %v2 : tensor<1024x1024xf32>
       %d = nn.add %s, %eps : tensor<1024x1024xf32>, tensor<f32>
       %q = nn.div %m2, %d : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       %wd = nn.mul %w, %decay : tensor<1024x1024xf32>, tensor<f32>
       %u = nn.add %q, %wd : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       %l = nn.mul %u, %lr : tensor<1024x1024xf32>, tensor<f32>
       %w2 = nn.sub %w, %l : tensor<1024x1024xf32>, tensor<1024x1024xf32>
       exec.yield %w2, %m2, %v2 : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
     })"}};

constexpr size_t memoryBytes = size_t(192) << 20;

double seconds(llvm::function_ref<void()> run) {
  double best = 1e9;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0;
       i < 9 || std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300); ++i) {
    auto before = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  }
  return best;
}

float *allocate(size_t bytes) {
  auto *memory = static_cast<float *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  for (size_t i = 0; i < bytes / 4; ++i)
    memory[i] = 0.25f + float(i % 31) / 31;
  return memory;
}

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::Expected<CpuTarget> target = CpuTarget::named(argc > 1 ? argv[1] : "native");
  if (!target) {
    std::fprintf(stderr, "%s\n", llvm::toString(target.takeError()).c_str());
    return 1;
  }
  std::printf("%-24s %22s %22s\n", "GB/s", "cached (memcpy)", "memory (memcpy)");
  for (const Benchmark &benchmark : benchmarks) {
    auto source = parseSourceString<ModuleOp>(benchmark.text, &context);
    if (!source)
      return 1;
    exec::KernelOp kernel = *source->getOps<exec::KernelOp>().begin();
    OwningOpRef<ModuleOp> code = ModuleOp::create(kernel.getLoc());
    auto function = emitRowsKernel(kernel, *code, *target);
    if (failed(function))
      return 1;
    int64_t tasks = (*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt();
    int64_t scratch = (*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt();
    auto jit = KernelJit::create(*code, *target);
    if (failed(jit))
      return 1;
    auto run = (*jit)->kernel("k");
    std::vector<size_t> sizes;
    size_t total = 0;
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
      sizes.push_back(cast<RankedTensorType>(type).getNumElements() * 4);
      total += sizes.back();
    }
    size_t sets = memoryBytes / total + 1;
    std::vector<std::vector<void *>> buffers(sets);
    std::vector<std::pair<float *, float *>> copies;
    for (auto &set : buffers) {
      for (size_t size : sizes)
        set.push_back(allocate(size));
      copies.push_back({allocate(total / 2), allocate(total / 2)});
    }
    float *space = allocate(scratch + 64);
    double cached = seconds([&] { run(buffers[0].data(), 0, tasks, space); });
    double memory = seconds([&] {
                      for (auto &set : buffers)
                        run(set.data(), 0, tasks, space);
                    }) /
                    sets;
    double copyCached = seconds([&] { std::memcpy(copies[0].first, copies[0].second, total / 2); });
    double copyMemory = seconds([&] {
                          for (auto &[to, from] : copies)
                            std::memcpy(to, from, total / 2);
                        }) /
                        sets;
    std::printf("%-24s %12.1f (%7.1f) %12.1f (%7.1f)\n", benchmark.name, total / cached * 1e-9,
                total / copyCached * 1e-9, total / memory * 1e-9, total / copyMemory * 1e-9);
    for (auto &set : buffers)
      for (void *buffer : set)
        std::free(buffer);
    for (auto &[to, from] : copies)
      std::free(to), std::free(from);
    std::free(space);
  }
}
