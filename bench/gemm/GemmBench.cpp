//===- GemmBench.cpp - Generated matrix products against oneDNN -----------===//
//
// gemm-bench [--threads N] [--cpu NAME] [--repeat R] [--filter TEXT]
//
// Prints, for each matrix product of a training step of three models (forward, gradient of the
// input, gradient of the weight), the best time of generated code and of oneDNN's sgemm in the same
// process, alternating, and their ratio (above one: ours is faster). With one thread, times are CPU
// time of the thread, so that a busy machine disturbs less; with more, they are wall time.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Codegen/Gemm.h"
#include "passes/Codegen/KernelFunction.h"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dnnl.h>
#include <omp.h>
#include <random>

using namespace descent;
using namespace mlir;

namespace {

struct Product {
  std::string label;
  Contraction shape;
};

/// The three products of a linear layer of `rows` rows.
void addLayer(std::vector<Product> &list, int64_t rows, int64_t out, int64_t in) {
  std::string name = std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in);
  list.push_back({name + " forward", {1, rows, out, in, false, false}});
  list.push_back({name + " d input", {1, rows, in, out, false, true}});
  list.push_back({name + " d weight", {1, in, out, rows, true, false}});
}

double seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

float *allocate(int64_t floats) {
  auto *data = static_cast<float *>(std::aligned_alloc(64, (floats * 4 + 63) / 64 * 64));
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < floats; ++i)
    data[i] = uniform(engine);
  return data;
}

[[noreturn]] void stop(const std::string &what) {
  std::fprintf(stderr, "gemm-bench: %s\n", what.c_str());
  std::exit(2);
}

} // namespace

int main(int argc, char **argv) {
  int threads = 1, repeat = 7;
  std::string cpu = "native", filter;
  for (int i = 1; i < argc; ++i) {
    std::string key = argv[i];
    if (i + 1 == argc)
      stop("'" + key + "' needs a value; options are --threads, --cpu, --repeat, --filter");
    std::string value = argv[++i];
    if (key == "--threads")
      threads = std::max(1, std::atoi(value.c_str()));
    else if (key == "--repeat")
      repeat = std::max(1, std::atoi(value.c_str()));
    else if (key == "--cpu")
      cpu = value;
    else if (key == "--filter")
      filter = value;
    else
      stop("unknown option '" + key + "'; options are --threads, --cpu, --repeat, --filter");
  }
  omp_set_num_threads(threads);
  auto target = CpuTarget::named(cpu);
  if (!target)
    stop(llvm::toString(target.takeError()));

  std::vector<Product> products;
  for (auto [rows, out, in] : {std::array<int64_t, 3>{768, 384, 128},
                               {768, 128, 128},
                               {768, 512, 128},
                               {768, 128, 512},
                               {768, 65, 128},
                               {1024, 1152, 384},
                               {1024, 384, 384},
                               {1024, 1536, 384},
                               {1024, 384, 1536},
                               {256, 4096, 1024},
                               {256, 1024, 4096}})
    addLayer(products, rows, out, in);
  std::erase_if(products, [&](const Product &product) {
    return product.label.find(filter) == std::string::npos;
  });

  DialectRegistry registry;
  descent::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  auto floats = [&](int64_t size) { return MemRefType::get({size}, Float32Type::get(&context)); };
  std::vector<std::pair<int64_t, int64_t>> tasksAndScratch;
  double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (auto [number, product] : llvm::enumerate(products)) {
    GemmSpec spec;
    spec.name = "product" + std::to_string(number);
    spec.shape = product.shape;
    const Contraction &s = spec.shape;
    spec.a = floats(s.m * s.k), spec.b = floats(s.k * s.n);
    spec.epilogue.outputs = {floats(s.m * s.n)};
    auto function = emitGemmKernel(*module, module->getLoc(), spec, *target);
    if (failed(function))
      return 1;
    tasksAndScratch.push_back({(*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt(),
                               (*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt()});
  }
  auto jit = KernelJit::create(*module, *target);
  if (failed(jit))
    return 1;
  std::printf("%s, %d thread(s); %zu kernels compiled in %.0f ms\n", target->name.c_str(), threads,
              products.size(), 1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - start));
  std::printf("%-26s %6s %10s %10s %8s %8s %7s\n", "product (rows x out x in)", "tasks", "ours ms",
              "oneDNN ms", "GFLOP/s", "oneDNN", "ratio");

  clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  double totalOurs = 0, totalTheirs = 0, logRatios = 0;
  for (auto [number, product] : llvm::enumerate(products)) {
    const Contraction &s = product.shape;
    auto [tasks, scratchBytes] = tasksAndScratch[number];
    auto kernel = (*jit)->kernel("product" + std::to_string(number));
    float *a = allocate(s.m * s.k), *b = allocate(s.k * s.n), *c = allocate(s.m * s.n),
          *reference = allocate(s.m * s.n);
    std::vector<float *> scratch;
    for (int t = 0; t < threads; ++t)
      scratch.push_back(allocate(scratchBytes / 4 + 16));
    void *buffers[] = {a, b, c};
    double flops = 2.0 * s.m * s.n * s.k;
    int inner = std::max(1, static_cast<int>(2e8 / flops));
    auto ours = [&] {
      for (int i = 0; i < inner; ++i) {
#pragma omp parallel num_threads(threads)
        {
          int64_t t = omp_get_thread_num();
          kernel(buffers, tasks * t / threads, tasks * (t + 1) / threads, scratch[t]);
        }
      }
    };
    auto theirs = [&] {
      for (int i = 0; i < inner; ++i)
        dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a,
                   s.transposeA ? s.m : s.k, b, s.transposeB ? s.k : s.n, 0.0f, reference, s.n);
    };
    double bestOurs = INFINITY, bestTheirs = INFINITY;
    ours();
    theirs();
    for (int64_t i = 0; i < s.m * s.n; ++i)
      if (!(std::abs(c[i] - reference[i]) <= 1e-6 * s.k + 1e-5))
        stop(product.label + " differs from oneDNN at " + std::to_string(i));
    for (int r = 0; r < repeat; ++r) {
      double t0 = seconds(clock);
      ours();
      double t1 = seconds(clock);
      theirs();
      double t2 = seconds(clock);
      bestOurs = std::min(bestOurs, (t1 - t0) / inner);
      bestTheirs = std::min(bestTheirs, (t2 - t1) / inner);
    }
    std::printf("%-26s %6ld %10.3f %10.3f %8.1f %8.1f %7.2f\n", product.label.c_str(), long(tasks),
                1e3 * bestOurs, 1e3 * bestTheirs, flops / bestOurs * 1e-9,
                flops / bestTheirs * 1e-9, bestTheirs / bestOurs);
    totalOurs += bestOurs, totalTheirs += bestTheirs, logRatios += std::log(bestTheirs / bestOurs);
    for (float *data : {a, b, c, reference})
      std::free(data);
    for (float *data : scratch)
      std::free(data);
  }
  std::printf("sum %38.3f %10.3f %25.2f   geometric mean of ratios %.2f\n", 1e3 * totalOurs,
              1e3 * totalTheirs, totalTheirs / totalOurs,
              std::exp(logRatios / std::max<size_t>(1, products.size())));
  return 0;
}
