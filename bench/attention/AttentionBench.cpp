//===- AttentionBench.cpp - Attention kernels against the plain way -------===//
//
// One thread, eight heads, q, k and v in one tensor. Contenders take turns in one process and are
// timed by the thread's processor time, best of all turns, since other work on the machine must not
// count. Both sides' results are compared.
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
#include <ctime>
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

static double difference(const std::vector<float> &a, const std::vector<float> &b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (double error = std::abs(double(a[i]) - b[i]); !(error <= worst))
      worst = error; // Also taken if it is NaN.
  return worst;
}

int main(int argc, char **argv) {
  double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  CpuTarget target = llvm::cantFail(CpuTarget::host());
  std::printf("Causal attention, 8 heads, one thread, %s (%d-bit vectors); GFLOP/s count the "
              "visible triangle only.\n",
              target.name.c_str(), target.vectorBits);
  std::printf("%-8s %5s %3s | %9s %8s | %9s | %5s | %s\n", "", "T", "D", "fused us", "GFLOP/s",
              "plain us", "ratio", "difference");
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
        mlir::OwningOpRef<mlir::ModuleOp> module =
            mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
        auto function = (gradient ? emitAttentionGrad : emitAttention)(form, module->getLoc(),
                                                                       "kernel", *module, target);
        int64_t tasks = function->getAttrOfType<mlir::IntegerAttr>(tasksAttrName).getInt();
        int64_t scratchBytes = function->getAttrOfType<mlir::IntegerAttr>(scratchAttrName).getInt();
        auto jit = KernelJit::create(*module, target);
        if (failed(jit))
          return 1;
        auto kernel = (*jit)->kernel("kernel");

        size_t count = size_t(length) * columns, square = size_t(length) * length;
        std::mt19937 engine(1);
        std::uniform_real_distribution<float> uniform(-1, 1);
        std::vector<float> qkv(3 * count), dout(count), p(square), g(square);
        for (std::vector<float> *values : {&qkv, &dout})
          for (float &value : *values)
            value = uniform(engine);
        std::vector<float> o(count), logsumexp(heads * length), dqkv(3 * count),
            o2 = o, logsumexp2 = logsumexp, dqkv2 = dqkv;
        void *scratch = std::aligned_alloc(64, (scratchBytes + 63) / 64 * 64);
        PlainAttention plain = {heads, length, depth, p.data(), g.data()};
        plain.forward(qkv.data(), o2.data(), logsumexp2.data());
        void *forwardBuffers[] = {qkv.data(), o.data(), logsumexp.data()};
        void *gradientBuffers[] = {dout.data(), qkv.data(), o2.data(), logsumexp2.data(),
                                   dqkv.data()};
        void **buffers = gradient ? gradientBuffers : forwardBuffers;

        double fused = 1e9, opponent = 1e9, begin = now();
        do {
          for (int i = 0; i < 3; ++i)
            race(fused, [&] { kernel(buffers, 0, tasks, scratch); });
          for (int i = 0; i < 2; ++i)
            race(opponent, [&] {
              if (gradient)
                plain.gradient(dout.data(), qkv.data(), o2.data(), logsumexp2.data(), dqkv2.data());
              else
                plain.forward(qkv.data(), o2.data(), logsumexp2.data());
            });
        } while (now() - begin < budget);
        std::free(scratch);
        double flops = (gradient ? 5.0 : 2.0) * heads * length * (length + 1.0) * depth;
        double error = gradient ? difference(dqkv, dqkv2) : difference(o, o2);
        std::printf("%-8s %5d %3d | %9.1f %8.1f | %9.1f | %5.2f | %.1e\n",
                    gradient ? "gradient" : "forward", length, depth, fused * 1e6,
                    flops / fused * 1e-9, opponent * 1e6, opponent / fused, error);
        std::fflush(stdout);
        if (!(error <= 1e-3)) {
          std::fprintf(stderr, "error: the two results differ by %g\n", error);
          return 1;
        }
      }
}
