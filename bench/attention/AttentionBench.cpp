//===- AttentionBench.cpp - Attention kernels against the plain way -------===//
//
// One thread, eight heads, q, k and v in one tensor. Contenders take turns in one process and are
// timed by the thread's processor time, best of all turns, since other work on the machine must not
// count. Both sides' results are compared. The same kernels on bf16 and f16 (the same numbers,
// rounded) take turns too; their times stand as multiples of the f32 kernel's.
//
//===----------------------------------------------------------------------===//

#include "PlainAttention.h"
#include "compiler/Pipelines/Register.h"
#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Codegen/AttentionForm.h"
#include "passes/Codegen/KernelFunction.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

using namespace descent;

static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/// Keeps the shortest time; the clock sometimes stands still, so times below a microsecond are not
/// believed.
template <typename Run> static void race(double &best, Run run) {
  double start = now();
  run();
  double seconds = now() - start;
  if (seconds > 1e-6 && seconds < best)
    best = seconds;
}

/// Memory at the start of a cache line, as buffers are in the arena.
template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(size_t count) {
    return static_cast<T *>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64));
  }
  void deallocate(T *memory, size_t) { std::free(memory); }
  bool operator==(const AlignedAllocator &) const { return true; }
};
using Bytes = std::vector<uint8_t, AlignedAllocator<uint8_t>>;
using Floats = std::vector<float, AlignedAllocator<float>>;

static double difference(const Floats &a, const Floats &b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (double error = std::abs(double(a[i]) - b[i]); !(error <= worst))
      worst = error; // Also taken if it is NaN.
  return worst;
}

/// The kernel of one element type with its buffers: inputs, then outputs.
struct Contender {
  std::unique_ptr<KernelJit> jit;
  descent_kernel_function kernel = nullptr;
  int64_t tasks = 0;
  std::vector<Bytes> buffers;
  std::vector<void *> pointers;
  void *scratch = nullptr;
  double best = 1e9;

  void run() { kernel(pointers.data(), 0, tasks, scratch); }
};

static const llvm::fltSemantics &semanticsOf(mlir::FloatType type) {
  return type ? type.getFloatSemantics() : llvm::APFloat::IEEEsingle();
}

/// Floats in the memory format of a type; null stands for f32.
static Bytes encode(const Floats &values, mlir::FloatType type) {
  unsigned bytes = type ? 2 : 4;
  Bytes memory(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    llvm::APFloat number(values[i]);
    bool lossy;
    number.convert(semanticsOf(type), llvm::APFloat::rmNearestTiesToEven, &lossy);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(&memory[i * bytes], &bits, bytes);
  }
  return memory;
}

static Floats decode(const Bytes &memory, mlir::FloatType type) {
  unsigned bytes = type ? 2 : 4;
  Floats values(memory.size() / bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &memory[i * bytes], bytes);
    llvm::APFloat number(semanticsOf(type), llvm::APInt(bytes * 8, bits));
    bool lossy;
    number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lossy);
    values[i] = number.convertToFloat();
  }
  return values;
}

/// `kernel` on inputs given as floats, with room for as many outputs as the form has buffers left.
static bool prepare(Contender &contender, AttentionForm form, mlir::FloatType type,
                    const CpuTarget &target, bool gradient,
                    const std::vector<const Floats *> &inputs) {
  mlir::MLIRContext *context = form.buffers.front().getContext();
  form.narrow = type;
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context));
  for (auto [number, buffer] : llvm::enumerate(form.buffers)) {
    auto memref = mlir::cast<mlir::MemRefType>(buffer);
    bool narrow = type && number != form.logsumexp->buffer;
    if (narrow)
      buffer = memref.clone(mlir::IntegerType::get(context, 16));
    contender.buffers.push_back(number < inputs.size()
                                    ? encode(*inputs[number], narrow ? type : nullptr)
                                    : Bytes(memref.getNumElements() * (narrow ? 2 : 4)));
  }
  for (Bytes &buffer : contender.buffers)
    contender.pointers.push_back(buffer.data());
  auto function = (gradient ? emitAttentionGrad : emitAttention)(form, module->getLoc(), "kernel",
                                                                 *module, target);
  contender.tasks = function->getAttrOfType<mlir::IntegerAttr>(tasksAttrName).getInt();
  int64_t bytes = function->getAttrOfType<mlir::IntegerAttr>(scratchAttrName).getInt();
  contender.scratch = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  auto jit = KernelJit::create(*module, target);
  if (failed(jit))
    return false;
  contender.jit = std::move(*jit);
  contender.kernel = contender.jit->kernel("kernel");
  return true;
}

int main(int argc, char **argv) {
  double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::Expected<CpuTarget> named = CpuTarget::named(argc > 2 ? argv[2] : "native");
  if (!named) {
    std::fprintf(stderr, "%s\n", llvm::toString(named.takeError()).c_str());
    return 1;
  }
  CpuTarget target = *named;
  std::printf("Causal attention, 8 heads, one thread, %s (%d-bit vectors); GFLOP/s count the "
              "visible triangle only; bf16 and f16 as multiples of fused.\n",
              target.name.c_str(), target.vectorBits);
  std::printf("%-8s %5s %3s | %9s %8s | %9s | %5s | %-10s | %5s %5s | %s\n", "", "T", "D",
              "fused us", "GFLOP/s", "plain us", "ratio", "difference", "bf16", "f16",
              "differences");
  for (bool gradient : {false, true})
    for (int depth : {32, 64})
      for (int length : {64, 256, 1024}) {
        int heads = 8, columns = heads * depth;
        mlir::Type f32 = mlir::Float32Type::get(&context);
        auto plainType = mlir::MemRefType::get({1, length, columns}, f32);
        auto wholeType = mlir::MemRefType::get({1, length, 3 * columns}, f32);
        auto rowsType = mlir::MemRefType::get({1, heads, length}, f32);
        AttentionForm form;
        form.batch = 1, form.length = length, form.heads = heads, form.depth = depth,
        form.causal = true;
        auto part = [&](unsigned buffer, int64_t number) {
          return AttentionOperand{buffer, number * columns, 3 * columns};
        };
        unsigned whole = gradient ? 1 : 0;
        form.q = part(whole, 0), form.k = part(whole, 1), form.v = part(whole, 2);
        if (gradient) {
          form.dout = {0, 0, columns};
          form.o = {2, 0, columns};
          form.logsumexp = {3, 0, length};
          form.dq = part(4, 0), form.dk = part(4, 1), form.dv = part(4, 2);
          form.buffers = {plainType, wholeType, plainType, rowsType, wholeType};
        } else {
          form.o = {1, 0, columns};
          form.logsumexp = {2, 0, length};
          form.buffers = {wholeType, plainType, rowsType};
        }

        size_t count = size_t(length) * columns, square = size_t(length) * length;
        std::mt19937 engine(1);
        std::uniform_real_distribution<float> uniform(-1, 1);
        Floats qkv(3 * count), dout(count), p(square), g(square);
        for (Floats *values : {&qkv, &dout})
          for (float &value : *values)
            value = uniform(engine);
        Floats o(count), logsumexp(heads * length), dqkv(3 * count);
        PlainAttention plain = {heads, length, depth, p.data(), g.data()};
        auto opponent = [&] {
          if (gradient)
            plain.gradient(dout.data(), qkv.data(), o.data(), logsumexp.data(), dqkv.data());
          else
            plain.forward(qkv.data(), o.data(), logsumexp.data());
        };
        plain.forward(qkv.data(), o.data(), logsumexp.data());

        std::vector<const Floats *> inputs = {&qkv};
        if (gradient)
          inputs = {&dout, &qkv, &o, &logsumexp};
        mlir::FloatType types[] = {nullptr, mlir::BFloat16Type::get(&context),
                                   mlir::Float16Type::get(&context)};
        Contender contenders[3];
        for (auto [contender, type] : llvm::zip_equal(contenders, types))
          if (!prepare(contender, form, type, target, gradient, inputs))
            return 1;
        double opponentBest = 1e9, begin = now();
        do {
          for (int i = 0; i < 3; ++i)
            for (Contender &contender : contenders)
              race(contender.best, [&] { contender.run(); });
          for (int i = 0; i < 2; ++i)
            race(opponentBest, opponent);
        } while (now() - begin < budget);

        double errors[3];
        for (auto [contender, type, error] : llvm::zip_equal(contenders, types, errors)) {
          error =
              difference(decode(contender.buffers[gradient ? 4 : 1], type), gradient ? dqkv : o);
          std::free(contender.scratch);
          // Of numbers of magnitude one: the inputs' rounding, averaged over many, and the
          // result's.
          double bound = !type ? 1e-3 : type.isBF16() ? 4e-2 : 5e-3;
          if (!(error <= bound)) {
            std::fprintf(stderr, "error: the two results differ by %g\n", error);
            return 1;
          }
        }
        double flops = (gradient ? 5.0 : 2.0) * heads * length * (length + 1.0) * depth;
        double fused = contenders[0].best;
        std::printf(
            "%-8s %5d %3d | %9.1f %8.1f | %9.1f | %5.2f | %-10.1e | %5.2f %5.2f | %.1e %.1e\n",
            gradient ? "gradient" : "forward", length, depth, fused * 1e6, flops / fused * 1e-9,
            opponentBest * 1e6, opponentBest / fused, errors[0], contenders[1].best / fused,
            contenders[2].best / fused, errors[1], errors[2]);
        std::fflush(stdout);
      }
}
