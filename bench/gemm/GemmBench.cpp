//===- GemmBench.cpp - Generated matrix products against oneDNN -----------===//
//
// gemm-bench [--threads N] [--cpu NAME] [--repeat R] [--filter TEXT] [--type
// f32|bf16|f16|e4m3|e5m2]
//
// Prints, for each matrix product of a training step of some models (forward, gradient of the
// input, gradient of the weight), the best time of generated code and of oneDNN in the same
// process, alternating, and their ratio (above one: ours is faster). oneDNN multiplies f32 or, with
// --type bf16, bf16; for the other types, and where it cannot, its columns are empty. Narrow
// products also name the time of our f32 product and how many times faster the narrow one is.
// Forward products and gradients of inputs are rounded to bf16 or f16, gradients of weights stay
// f32, as training does it. With one thread, times are CPU time of the thread, so that a busy
// machine disturbs less; with more, they are wall time.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Codegen/Gemm.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/Lanes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <omp.h>
#include <optional>
#include <random>

using namespace descent;
using namespace mlir;

namespace {

struct Product {
  std::string label;
  Contraction shape;
  bool isGradient = false; ///< of a weight
};

/// The three products of a linear layer of `rows` rows.
void addLayer(std::vector<Product> &list, int64_t rows, int64_t out, int64_t in) {
  std::string name = std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in);
  list.push_back({name + " forward", {1, rows, out, in, false, false}});
  list.push_back({name + " d input", {1, rows, in, out, false, true}});
  list.push_back({name + " d weight", {1, in, out, rows, true, false}, true});
}

double seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// Numbers of a type as they are stored.
class Numbers {
public:
  Numbers(int64_t count, Type element)
      : semantics(cast<FloatType>(element).getFloatSemantics()), width(storageBytes(element)),
        count(count),
        bytes(static_cast<char *>(std::aligned_alloc(64, (count * width + 127) / 64 * 64))) {
    std::memset(bytes.get(), 0, count * width);
  }
  /// Uniform in [-1, 1), from a table: converting one by one would take longer than measuring.
  Numbers &randomise() {
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<uint64_t> table(4099);
    for (uint64_t &bits : table) {
      llvm::APFloat value(uniform(engine));
      bool lossy;
      value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lossy);
      bits = value.bitcastToAPInt().getZExtValue();
    }
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(bytes.get() + i * width, &table[(i * 7 + i / 4099) % 4099], width);
    return *this;
  }
  double get(int64_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.get() + i * width, width);
    llvm::APFloat value(semantics, llvm::APInt(width * 8, bits));
    bool lossy;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }
  void *data() { return bytes.get(); }

private:
  struct Free {
    void operator()(char *data) const { std::free(data); }
  };
  const llvm::fltSemantics &semantics;
  int64_t width, count;
  std::unique_ptr<char, Free> bytes;
};

[[noreturn]] void stop(const std::string &what) {
  std::fprintf(stderr, "gemm-bench: %s\n", what.c_str());
  std::exit(2);
}

} // namespace

int main(int argc, char **argv) {
  int threads = 1, repeat = 7;
  std::string cpu = "native", filter, typeName = "f32";
  const std::string options = "options are --threads, --cpu, --repeat, --filter, --type";
  for (int i = 1; i < argc; ++i) {
    std::string key = argv[i];
    if (i + 1 == argc)
      stop("'" + key + "' needs a value; " + options);
    std::string value = argv[++i];
    if (key == "--threads")
      threads = std::max(1, std::atoi(value.c_str()));
    else if (key == "--repeat")
      repeat = std::max(1, std::atoi(value.c_str()));
    else if (key == "--cpu")
      cpu = value;
    else if (key == "--filter")
      filter = value;
    else if (key == "--type")
      typeName = value;
    else
      stop("unknown option '" + key + "'; " + options);
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
                               {256, 1024, 4096},
                               {1024, 768, 768},
                               {1024, 3072, 768},
                               {256, 50257, 768}})
    addLayer(products, rows, out, in);
  std::erase_if(products, [&](const Product &product) {
    return product.label.find(filter) == std::string::npos;
  });

  DialectRegistry registry;
  descent::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Type f32 = Float32Type::get(&context);
  Type element = llvm::StringSwitch<Type>(typeName)
                     .Case("f32", f32)
                     .Case("bf16", BFloat16Type::get(&context))
                     .Case("f16", Float16Type::get(&context))
                     .Case("e4m3", Float8E4M3FNType::get(&context))
                     .Case("e5m2", Float8E5M2Type::get(&context))
                     .Default(nullptr);
  if (!element)
    stop("unknown type '" + typeName + "'; known are f32, bf16, f16, e4m3, e5m2");
  bool narrow = !element.isF32(), is8Bit = storageBytes(element) == 1;
  auto resultOf = [&](const Product &product, Type operands) -> Type {
    return product.isGradient || operands.isF32() ? f32
           : is8Bit                               ? Type(BFloat16Type::get(&context))
                                                  : operands;
  };

  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  auto buffer = [&](int64_t size, Type type) {
    return NumberBuffer(MemRefType::get({size}, storageType(type)), type);
  };
  /// A compiled product; `name` in the module.
  struct Kernel {
    std::string name;
    int64_t tasks = 0, scratch = 0;
  };
  double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
  auto emit = [&](const Product &product, size_t number, Type operands) {
    GemmSpec spec;
    spec.name = "product" + std::to_string(number) + (operands.isF32() ? "" : "_narrow");
    spec.shape = product.shape;
    const Contraction &s = spec.shape;
    spec.a = buffer(s.m * s.k, operands), spec.b = buffer(s.k * s.n, operands);
    Type result = resultOf(product, operands);
    spec.epilogue.outputs = {buffer(s.m * s.n, result).type};
    spec.epilogue.function = roundingEpilogue(result);
    auto function = emitGemmKernel(*module, module->getLoc(), spec, *target);
    if (failed(function))
      std::exit(1);
    return Kernel{spec.name, (*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt(),
                  (*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt()};
  };
  std::vector<Kernel> kernels, wide;
  for (auto [number, product] : llvm::enumerate(products)) {
    kernels.push_back(emit(product, number, element));
    wide.push_back(narrow ? emit(product, number, f32) : Kernel());
  }
  auto jit = KernelJit::create(*module, *target);
  if (failed(jit))
    return 1;
  std::printf("%s, %s, %d thread(s); %zu kernels compiled in %.0f ms\n", target->name.c_str(),
              typeName.c_str(), threads, products.size() * (narrow ? 2 : 1),
              1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - start));
  std::printf("%-26s %6s %10s %10s %8s %8s %7s", "product (rows x out x in)", "tasks", "ours ms",
              "oneDNN ms", "GFLOP/s", "oneDNN", "ratio");
  std::printf(narrow ? " %10s %7s\n" : "\n", "f32 ms", "faster");

  clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  double totalOurs = 0, totalTheirs = 0, totalWide = 0, logRatios = 0, logFaster = 0;
  size_t compared = 0;
  for (auto [number, product] : llvm::enumerate(products)) {
    const Contraction &s = product.shape;
    Type result = resultOf(product, element);
    double flops = 2.0 * s.m * s.n * s.k;
    int inner = std::max(1, static_cast<int>(2e8 / flops));
    Numbers a(s.m * s.k, element), b(s.k * s.n, element), c(s.m * s.n, result),
        reference(s.m * s.n, result);
    a.randomise(), b.randomise();

    auto runner = [&](const Kernel &kernel, std::vector<void *> buffers) {
      auto scratch = std::make_shared<std::vector<Numbers>>();
      for (int t = 0; t < threads; ++t)
        scratch->emplace_back(kernel.scratch / 4 + 16, f32);
      return [=, function = (*jit)->kernel(kernel.name)] {
        for (int i = 0; i < inner; ++i) {
#pragma omp parallel num_threads(threads)
          {
            int64_t t = omp_get_thread_num();
            function(buffers.data(), kernel.tasks * t / threads, kernel.tasks * (t + 1) / threads,
                     (*scratch)[t].data());
          }
        }
      };
    };
    std::function<void()> ours = runner(kernels[number], {a.data(), b.data(), c.data()}), theirs,
                          oursWide;
    std::optional<Numbers> wideA, wideB, wideC;
    if (narrow) {
      wideA.emplace(s.m * s.k, f32), wideB.emplace(s.k * s.n, f32), wideC.emplace(s.m * s.n, f32);
      wideA->randomise(), wideB->randomise();
      oursWide = runner(wide[number], {wideA->data(), wideB->data(), wideC->data()});
    } else {
      theirs = [&] {
        for (int i = 0; i < inner; ++i)
          dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n, s.k, 1.0f,
                     static_cast<float *>(a.data()), s.transposeA ? s.m : s.k,
                     static_cast<float *>(b.data()), s.transposeB ? s.k : s.n, 0.0f,
                     static_cast<float *>(reference.data()), s.n);
      };
    }
    if (element.isBF16()) {
      using Tag = dnnl::memory::format_tag;
      using Data = dnnl::memory::data_type;
      Data out = result.isF32() ? Data::f32 : Data::bf16;
      dnnl::memory::desc descA({s.m, s.k}, Data::bf16, s.transposeA ? Tag::ba : Tag::ab),
          descB({s.k, s.n}, Data::bf16, s.transposeB ? Tag::ba : Tag::ab),
          descC({s.m, s.n}, out, Tag::ab);
      try {
        dnnl::matmul multiply({dnnl::matmul::desc(descA, descB, descC), engine});
        dnnl::memory memoryA(descA, engine, a.data()), memoryB(descB, engine, b.data()),
            memoryC(descC, engine, reference.data());
        theirs = [=, &stream] {
          for (int i = 0; i < inner; ++i)
            multiply.execute(
                stream,
                {{DNNL_ARG_SRC, memoryA}, {DNNL_ARG_WEIGHTS, memoryB}, {DNNL_ARG_DST, memoryC}});
        };
      } catch (const dnnl::error &) {
        // oneDNN has no products of bf16 for this CPU.
      }
    }

    double best[3] = {INFINITY, INFINITY, INFINITY};
    std::function<void()> runs[3] = {ours, theirs, oursWide};
    for (auto &each : runs)
      if (each)
        each();
    double unit = result.isBF16() ? 1.0 / 128 : result.isF16() ? 1.0 / 1024 : 0;
    for (int64_t i = 0; theirs && i < s.m * s.n; i += 1 + s.m * s.n / 1000000) {
      double want = reference.get(i);
      if (!(std::abs(c.get(i) - want) <= 1e-6 * s.k + 1e-5 + (unit + 1e-5) * std::abs(want)))
        stop(product.label + " differs from oneDNN at " + std::to_string(i) + ": " +
             std::to_string(c.get(i)) + ", not " + std::to_string(want));
    }
    for (int r = 0; r < repeat; ++r)
      for (auto [each, time] : llvm::zip(runs, best)) {
        if (!each)
          continue;
        double t0 = seconds(clock);
        each();
        time = std::min(time, (seconds(clock) - t0) / inner);
      }
    auto [timeOurs, timeTheirs, timeWide] = best;
    std::printf("%-26s %6ld %10.3f ", product.label.c_str(), long(kernels[number].tasks),
                1e3 * timeOurs);
    if (theirs) {
      std::printf("%10.3f %8.1f %8.1f %7.2f", 1e3 * timeTheirs, flops / timeOurs * 1e-9,
                  flops / timeTheirs * 1e-9, timeTheirs / timeOurs);
      totalTheirs += timeTheirs, logRatios += std::log(timeTheirs / timeOurs), ++compared;
    } else {
      std::printf("%10s %8.1f %8s %7s", "", flops / timeOurs * 1e-9, "", "");
    }
    if (narrow) {
      std::printf(" %10.3f %7.2f", 1e3 * timeWide, timeWide / timeOurs);
      totalWide += timeWide, logFaster += std::log(timeWide / timeOurs);
    }
    std::printf("\n");
    std::fflush(stdout);
    totalOurs += timeOurs;
  }
  std::printf("sum %38.3f", 1e3 * totalOurs);
  if (compared)
    std::printf(", oneDNN %.3f (%.2f), geometric mean of ratios %.2f", 1e3 * totalTheirs,
                totalTheirs / totalOurs, std::exp(logRatios / compared));
  if (narrow)
    std::printf(", f32 %.3f (%.2f times faster), geometric mean %.2f", 1e3 * totalWide,
                totalWide / totalOurs, std::exp(logFaster / std::max<size_t>(1, products.size())));
  std::printf("\n");
  return 0;
}
