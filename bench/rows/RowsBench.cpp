//===- RowsBench.cpp - Bandwidth of generated rows kernels ----------------===//
//
// GB/s = (bytes read + bytes written, each buffer once) / time, one thread, best of many. "cached"
// runs on one set of buffers, "memory" on sets that together exceed the last-level cache. memcpy in
// the same places is the roof. Each kernel also runs with its large tensors in bf16 and f16; the
// last columns give its time, cached and from memory, as a multiple of the f32 form's.
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
  const char *text; ///< $T is the type of the tensors in memory; arithmetic is on f32
};

/// The body of an Adam update with decoupled decay: %w2, %m2, %v2 from %w, %g, %m, %v and %lr.
#define DESCENT_ADAMW                                                                              \
  "       %b1 = nn.constant dense<0.9> : tensor<f32>\n"                                            \
  "       %c1 = nn.constant dense<0.1> : tensor<f32>\n"                                            \
  "       %b2 = nn.constant dense<0.999> : tensor<f32>\n"                                          \
  "       %c2 = nn.constant dense<0.001> : tensor<f32>\n"                                          \
  "       %eps = nn.constant dense<1.0e-8> : tensor<f32>\n"                                        \
  "       %decay = nn.constant dense<0.01> : tensor<f32>\n"                                        \
  "       %m0 = nn.mul %m, %b1 : tensor<1024x1024xf32>, tensor<f32>\n"                             \
  "       %m1 = nn.mul %g, %c1 : tensor<1024x1024xf32>, tensor<f32>\n"                             \
  "       %m2 = nn.add %m0, %m1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"                  \
  "       %gg = nn.mul %g, %g : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"                    \
  "       %v0 = nn.mul %v, %b2 : tensor<1024x1024xf32>, tensor<f32>\n"                             \
  "       %v1 = nn.mul %gg, %c2 : tensor<1024x1024xf32>, tensor<f32>\n"                            \
  "       %v2 = nn.add %v0, %v1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"                  \
  "       %s = nn.sqrt %v2 : tensor<1024x1024xf32>\n"                                              \
  "       %d = nn.add %s, %eps : tensor<1024x1024xf32>, tensor<f32>\n"                             \
  "       %q = nn.div %m2, %d : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"                    \
  "       %wd = nn.mul %w, %decay : tensor<1024x1024xf32>, tensor<f32>\n"                          \
  "       %u = nn.add %q, %wd : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"                    \
  "       %l = nn.mul %u, %lr : tensor<1024x1024xf32>, tensor<f32>\n"                              \
  "       %w2 = nn.sub %w, %l : tensor<1024x1024xf32>, tensor<1024x1024xf32>\n"

const Benchmark benchmarks[] = {
    {"gelu (tanh) 1024x3072",
     R"(exec.kernel @k "rows" (%x: tensor<1024x3072x$T>) -> tensor<1024x3072x$T> {
       %0 = nn.gelu %x tanh : tensor<1024x3072x$T>
       exec.yield %0 : tensor<1024x3072x$T>
     })"},
    {"softmax 1024x768",
     R"(exec.kernel @k "rows" (%n: tensor<1024x768x$T>) -> tensor<1024x768x$T> {
       %x = nn.cast %n to f32 : tensor<1024x768x$T>
       %0 = nn.softmax %x axis 1 : tensor<1024x768xf32>
       %y = nn.cast %0 to $T : tensor<1024x768xf32>
       exec.yield %y : tensor<1024x768x$T>
     })"},
    {"softmax 4096x65",
     R"(exec.kernel @k "rows" (%n: tensor<4096x65x$T>) -> tensor<4096x65x$T> {
       %x = nn.cast %n to f32 : tensor<4096x65x$T>
       %0 = nn.softmax %x axis 1 : tensor<4096x65xf32>
       %y = nn.cast %0 to $T : tensor<4096x65xf32>
       exec.yield %y : tensor<4096x65x$T>
     })"},
    {"layer_norm 1024x768",
     R"(exec.kernel @k "rows" (%n: tensor<1024x768x$T>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<1024x768x$T> {
       %x = nn.cast %n to f32 : tensor<1024x768x$T>
       %0 = nn.layer_norm %x, %g, %b : tensor<1024x768xf32>, tensor<768xf32>, tensor<768xf32>
       %y = nn.cast %0 to $T : tensor<1024x768xf32>
       exec.yield %y : tensor<1024x768x$T>
     })"},
    {"layer_norm 8192x128",
     R"(exec.kernel @k "rows" (%n: tensor<8192x128x$T>, %g: tensor<128xf32>, %b: tensor<128xf32>) -> tensor<8192x128x$T> {
       %x = nn.cast %n to f32 : tensor<8192x128x$T>
       %0 = nn.layer_norm %x, %g, %b : tensor<8192x128xf32>, tensor<128xf32>, tensor<128xf32>
       %y = nn.cast %0 to $T : tensor<8192x128xf32>
       exec.yield %y : tensor<8192x128x$T>
     })"},
    {"bias gradient 4096x768",
     R"(exec.kernel @k "columns" (%n: tensor<4096x768x$T>) -> tensor<768xf32> {
       %x = nn.cast %n to f32 : tensor<4096x768x$T>
       %0 = nn.reduce_sum %x [0] : tensor<4096x768xf32>
       exec.yield %0 : tensor<768xf32>
     })"},
    {"adamw update 1M",
     R"(exec.kernel @k "rows" (%w: tensor<1024x1024xf32>, %g: tensor<1024x1024xf32>, %m: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>, %lr: tensor<f32>)
         -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>) {)" DESCENT_ADAMW
     R"(
       exec.yield %w2, %m2, %v2 : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
     })"},
    // The update also writes the copy that the next step's products read.
    {"adamw with a copy 1M",
     R"(exec.kernel @k "rows" (%w: tensor<1024x1024xf32>, %g: tensor<1024x1024xf32>, %m: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>, %lr: tensor<f32>)
         -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024x$T>) {)" DESCENT_ADAMW
     R"(
       %copy = nn.cast %w2 to $T : tensor<1024x1024xf32>
       exec.yield %w2, %m2, %v2, %copy : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024x1024x$T>
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

/// Memory for `bytes`, holding numbers between 0.25 and 1.25 of a type.
void *allocate(size_t bytes, Type element) {
  auto *memory = static_cast<uint8_t *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  auto type = cast<FloatType>(element);
  size_t width = type.getWidth() / 8;
  for (size_t i = 0; i + width <= bytes; i += width) {
    APFloat number(0.25 + double(i / width % 31) / 31);
    bool lossy;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(memory + i, &bits, width);
  }
  return memory;
}

std::string withType(std::string text, const std::string &type) {
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, type);
  return text;
}

struct Times {
  double cached = 0, memory = 0;
};

/// Times of one form, and of memcpy for as many bytes; nothing after an error.
std::optional<std::pair<Times, Times>> measure(const std::string &text, MLIRContext &context,
                                               const CpuTarget &target, size_t &bytes) {
  auto source = parseSourceString<ModuleOp>(text, &context);
  if (!source)
    return std::nullopt;
  exec::KernelOp kernel = *source->getOps<exec::KernelOp>().begin();
  OwningOpRef<ModuleOp> code = ModuleOp::create(kernel.getLoc());
  auto function =
      (kernel.getKind() == "rows" ? emitRowsKernel : emitColumnsKernel)(kernel, *code, target);
  if (failed(function))
    return std::nullopt;
  int64_t tasks = (*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt();
  int64_t scratch = (*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt();
  auto jit = KernelJit::create(*code, target);
  if (failed(jit))
    return std::nullopt;
  auto run = (*jit)->kernel("k");
  SmallVector<RankedTensorType> types;
  bytes = 0;
  auto bytesOf = [](RankedTensorType type) {
    return size_t(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  };
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    types.push_back(cast<RankedTensorType>(type));
    bytes += bytesOf(types.back());
  }
  Type f32 = Float32Type::get(&context);
  size_t sets = memoryBytes / bytes + 1;
  std::vector<std::vector<void *>> buffers(sets);
  std::vector<std::pair<void *, void *>> copies;
  for (auto &set : buffers) {
    for (RankedTensorType type : types)
      set.push_back(allocate(bytesOf(type), type.getElementType()));
    copies.push_back({allocate(bytes / 2, f32), allocate(bytes / 2, f32)});
  }
  void *space = allocate(scratch + 64, f32);
  Times kernelTimes, copyTimes;
  kernelTimes.cached = seconds([&] { run(buffers[0].data(), 0, tasks, space); });
  kernelTimes.memory = seconds([&] {
                         for (auto &set : buffers)
                           run(set.data(), 0, tasks, space);
                       }) /
                       sets;
  copyTimes.cached = seconds([&] { std::memcpy(copies[0].first, copies[0].second, bytes / 2); });
  copyTimes.memory = seconds([&] {
                       for (auto &[to, from] : copies)
                         std::memcpy(to, from, bytes / 2);
                     }) /
                     sets;
  for (auto &set : buffers)
    for (void *buffer : set)
      std::free(buffer);
  for (auto &[to, from] : copies)
    std::free(to), std::free(from);
  std::free(space);
  return std::pair(kernelTimes, copyTimes);
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
  std::printf("%-24s %-4s | %22s | %22s | %s\n", "GB/s", "", "cached (memcpy)", "memory (memcpy)",
              "time in f32's");
  for (const Benchmark &benchmark : benchmarks) {
    Times f32;
    for (const char *type : {"f32", "bf16", "f16"}) {
      if (type != StringRef("f32") && !StringRef(benchmark.text).contains("$T"))
        continue;
      size_t bytes = 0;
      auto times = measure(withType(benchmark.text, type), context, *target, bytes);
      if (!times)
        return 1;
      auto [kernel, copy] = *times;
      if (type == StringRef("f32"))
        f32 = kernel;
      std::printf("%-24s %-4s | %12.1f (%7.1f) | %12.1f (%7.1f) | %.2f %.2f\n", benchmark.name,
                  type, bytes / kernel.cached * 1e-9, bytes / copy.cached * 1e-9,
                  bytes / kernel.memory * 1e-9, bytes / copy.memory * 1e-9,
                  kernel.cached / f32.cached, kernel.memory / f32.memory);
      std::fflush(stdout);
    }
  }
}
