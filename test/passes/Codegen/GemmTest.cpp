//===- GemmTest.cpp - Matrix products against a naive double loop ---------===//

#include "passes/Codegen/Gemm.h"
#include "KernelTesting.h"
#include "passes/Codegen/KernelFunction.h"

using namespace mlir;

namespace descent::testing {
namespace {

MemRefType floats(ArrayRef<int64_t> shape) {
  return MemRefType::get(shape, Float32Type::get(&context()));
}

GemmSpec plainSpec(std::string name, Contraction shape) {
  GemmSpec spec;
  spec.name = std::move(name);
  spec.shape = shape;
  spec.a = floats({shape.batch, shape.m, shape.k});
  spec.b = floats({shape.batch, shape.k, shape.n});
  spec.epilogue.outputs = {floats({shape.batch, shape.m, shape.n})};
  return spec;
}

/// Element (b, i, j) of the product in double.
double product(const Contraction &s, const Buffer &a, const Buffer &b, int64_t batch, int64_t i,
               int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < s.k; ++k) {
    int64_t atA = batch * s.m * s.k + (s.transposeA ? k * s.m + i : i * s.k + k);
    int64_t atB = batch * s.k * s.n + (s.transposeB ? j * s.k + k : k * s.n + j);
    sum += double(a[atA]) * b[atB];
  }
  return sum;
}

struct Compiled {
  std::unique_ptr<KernelJit> jit;
  std::vector<int64_t> tasks, scratch;
};

/// Compiles all specs in one module, so that they share tiles, and returns what runKernel needs.
Compiled compile(ArrayRef<GemmSpec> specs, const CpuTarget &target) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  Compiled result;
  for (const GemmSpec &spec : specs) {
    auto function = emitGemmKernel(*module, module->getLoc(), spec, target);
    EXPECT_TRUE(succeeded(function)) << spec.name;
    if (failed(function))
      return result;
    result.tasks.push_back((*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt());
    result.scratch.push_back((*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt());
  }
  EXPECT_TRUE(succeeded(verify(*module)));
  auto jit = KernelJit::create(*module, target);
  EXPECT_TRUE(succeeded(jit));
  if (succeeded(jit))
    result.jit = std::move(*jit);
  return result;
}

/// Several shapes in every storage order; each is run in one call, task by task and in threes, with
/// equal bits.
void checkShapes(ArrayRef<Contraction> shapes, bool accumulate,
                 std::optional<ProductPlan> (*plan)(const CpuTarget &)) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    std::vector<GemmSpec> specs;
    for (Contraction shape : shapes) {
      GemmSpec spec = plainSpec("gemm" + std::to_string(specs.size()), shape);
      spec.accumulate = accumulate;
      if (plan) {
        spec.plan = plan(target);
        spec.plan->packB |= shape.transposeB;
      }
      specs.push_back(spec);
    }
    Compiled compiled = compile(specs, target);
    ASSERT_NE(compiled.jit, nullptr);
    for (auto [number, spec] : llvm::enumerate(specs)) {
      const Contraction &s = spec.shape;
      SCOPED_TRACE(::testing::Message()
                   << s.batch << " x " << s.m << " x " << s.n << " x " << s.k
                   << (s.transposeA ? " ta" : "") << (s.transposeB ? " tb" : "") << ", tasks "
                   << compiled.tasks[number]);
      Buffer a(s.batch * s.m * s.k, 1), b(s.batch * s.k * s.n, 2), before(s.batch * s.m * s.n, 3);
      Buffer c = accumulate ? before : Buffer(before.size);
      auto kernel = compiled.jit->kernel(spec.name);
      runKernel(kernel, {&a, &b, &c}, compiled.tasks[number], compiled.scratch[number],
                compiled.tasks[number]);
      for (int64_t batch = 0; batch < s.batch; ++batch)
        for (int64_t i = 0; i < s.m; ++i)
          for (int64_t j = 0; j < s.n; ++j) {
            size_t at = (batch * s.m + i) * s.n + j;
            double expected = product(s, a, b, batch, i, j) + (accumulate ? before[at] : 0);
            ASSERT_TRUE(std::abs(c[at] - expected) <= sumTolerance(s.k + 1))
                << batch << ", " << i << ", " << j << ": " << c[at];
          }
      for (int64_t grouping : {int64_t(1), int64_t(3), (compiled.tasks[number] + 1) / 2}) {
        Buffer again = accumulate ? before : Buffer(before.size);
        runKernel(kernel, {&a, &b, &again}, compiled.tasks[number], compiled.scratch[number],
                  grouping);
        ASSERT_EQ(std::memcmp(again.data(), c.data(), c.size * 4), 0)
            << "grouping " << grouping << " changes bits";
      }
    }
  }
}

std::vector<Contraction> inEveryOrder(std::initializer_list<Contraction> shapes) {
  std::vector<Contraction> result;
  for (Contraction shape : shapes)
    for (int order = 0; order < 4; ++order) {
      shape.transposeA = order & 1;
      shape.transposeB = order & 2;
      result.push_back(shape);
    }
  return result;
}

TEST(Gemm, OddShapesInEveryStorageOrder) {
  checkShapes(inEveryOrder({{1, 1, 1, 1},
                            {1, 1, 37, 5},
                            {1, 53, 1, 17},
                            {1, 7, 31, 1},
                            {1, 101, 67, 43},
                            {1, 13, 129, 257}}),
              false, nullptr);
}

TEST(Gemm, AccumulatesIntoTheOutput) {
  checkShapes(inEveryOrder({{1, 29, 35, 19}, {1, 128, 64, 96}}), true, nullptr);
}

TEST(Gemm, Batches) {
  checkShapes({{3, 17, 33, 9}, {5, 64, 64, 32, false, true}, {2, 40, 65, 24, true, false}}, false,
              nullptr);
}

TEST(Gemm, LargeEnoughForSeveralTasksAndPacking) {
  checkShapes({{1, 200, 520, 130}, {1, 145, 257, 1100, true, true}, {1, 50, 97, 1300, false, true}},
              false, nullptr);
}

/// Blocks so small that every loop of the nest runs several times with a ragged end, and nothing
/// depends on the cost model.
TEST(Gemm, SmallBlocksPacked) {
  auto plan = [](const CpuTarget &target) -> std::optional<ProductPlan> {
    int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
    return ProductPlan{3 * mr, nr, 24, 2 * mr, 2 * nr, true, true};
  };
  auto shapes = inEveryOrder({{1, 101, 150, 60}, {2, 40, 70, 49}});
  checkShapes(shapes, false, plan);
  checkShapes(shapes, true, plan);
}

TEST(Gemm, SmallBlocksUnpacked) {
  auto plan = [](const CpuTarget &target) -> std::optional<ProductPlan> {
    int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
    return ProductPlan{mr, 2 * nr, 24, mr, nr, false, false};
  };
  auto shapes = inEveryOrder({{1, 101, 150, 60}, {2, 40, 70, 49}});
  checkShapes(shapes, false, plan);
  checkShapes(shapes, true, plan);
}

TEST(Gemm, SmallBlocksWithOnlyAPacked) {
  auto plan = [](const CpuTarget &target) -> std::optional<ProductPlan> {
    int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
    return ProductPlan{mr, nr, 40, 2 * mr, nr, true, false};
  };
  checkShapes(inEveryOrder({{2, 40, 70, 49}}), false, plan);
}

/// bias[n], a residual over all of C, a factor per row, a table that repeats every `period` rows, a
/// scalar; two outputs, of which the first may be the residual's own memory.
void checkEpilogue(std::optional<int64_t> depth, bool inPlace) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    std::vector<GemmSpec> specs;
    const int64_t period = 5;
    for (Contraction shape :
         {Contraction{1, 35, 70, 29}, {1, 120, 64, 64, false, true}, {3, 10, 7, 50, true, false}}) {
      GemmSpec spec = plainSpec("gemm" + std::to_string(specs.size()), shape);
      int64_t rows = shape.batch * shape.m;
      SmallVector<int64_t> output = {rows / period, period, shape.n};
      spec.epilogue.outputs = {floats(output), floats(output)};
      for (MemRefType type : {floats({shape.n}), floats(output), floats({rows / period, period, 1}),
                              floats({period, shape.n}), floats({})})
        spec.epilogue.inputs.push_back(*EpilogueInput::broadcast(type, output));
      spec.epilogue.function = [](OpBuilder &builder, Location loc,
                                  const EpiloguePoint &point) -> SmallVector<Value> {
        auto &in = point.inputs;
        Value biased = arith::AddFOp::create(builder, loc, point.product, in[0]);
        Value scaled = arith::MulFOp::create(builder, loc, biased, in[2]);
        Value shifted = arith::AddFOp::create(builder, loc, scaled, in[3]);
        Value summed = arith::AddFOp::create(builder, loc, shifted, in[1]);
        return {arith::MulFOp::create(builder, loc, summed, in[4]), biased};
      };
      if (depth) {
        spec.plan = planGemm(spec, target);
        spec.plan->depth = *depth;
        spec.plan->rows = target.tileRows();
      }
      specs.push_back(spec);
    }
    Compiled compiled = compile(specs, target);
    ASSERT_NE(compiled.jit, nullptr);
    for (auto [number, spec] : llvm::enumerate(specs)) {
      const Contraction &s = spec.shape;
      int64_t rows = s.batch * s.m;
      Buffer a(s.batch * s.m * s.k, 1), b(s.batch * s.k * s.n, 2), bias(s.n, 3),
          residual(rows * s.n, 4), factor(rows, 5), table(period * s.n, 6), scalar(1, 7),
          first(rows * s.n), second(rows * s.n);
      Buffer shared = residual;
      Buffer &out = inPlace ? shared : first;
      runKernel(
          compiled.jit->kernel(spec.name),
          {&a, &b, &bias, inPlace ? &shared : &residual, &factor, &table, &scalar, &out, &second},
          compiled.tasks[number], compiled.scratch[number], 2);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < s.n; ++j) {
          int64_t at = r * s.n + j;
          double biased = product(s, a, b, r / s.m, r % s.m, j) + bias[j];
          double expected =
              (biased * factor[r] + table[r % period * s.n + j] + residual[at]) * scalar[0];
          ASSERT_TRUE(std::abs(second[at] - biased) <= sumTolerance(s.k + 1));
          ASSERT_TRUE(std::abs(out[at] - expected) <= sumTolerance(s.k + 4));
        }
    }
  }
}

TEST(Gemm, EpilogueReadsBroadcastInputsAndWritesSeveralOutputs) {
  checkEpilogue(std::nullopt, false);
}
TEST(Gemm, EpilogueAfterSeveralBlocksOfK) { checkEpilogue(16, false); }
TEST(Gemm, EpilogueInPlaceOfAnInput) {
  checkEpilogue(std::nullopt, true);
  checkEpilogue(16, true);
}

TEST(Gemm, BroadcastInputsThatDoNotFitAreDeclined) {
  EXPECT_FALSE(EpilogueInput::broadcast(floats({4, 1, 3, 7}), {4, 2, 3, 7}));
  EXPECT_FALSE(EpilogueInput::broadcast(floats({5, 7}), {4, 2, 3, 7}));
  EXPECT_FALSE(EpilogueInput::broadcast(floats({3}), {4, 7}));
  auto middle = EpilogueInput::broadcast(floats({2, 1, 7}), {4, 2, 3, 7});
  ASSERT_TRUE(middle);
  EXPECT_EQ(middle->rowDivisor, 3);
  EXPECT_EQ(middle->rowPeriod, 2);
  EXPECT_EQ(middle->rowStride, 7);
  EXPECT_EQ(middle->columnStride, 1);
}

TEST(Gemm, RefusesWhatItCannotCompute) {
  CpuTarget target = targets()[0];
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto refused = [&](const GemmSpec &spec) {
    message.clear();
    return failed(emitGemmKernel(*module, module->getLoc(), spec, target));
  };
  GemmSpec spec = plainSpec("g", {1, 4, 5, 6});
  spec.a = floats({4, 5});
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(
      message,
      "matrix product 'g' has A of type 'memref<4x5xf32>'; it needs 24 elements of f32, of bf16 "
      "or f16 stored as i16, or of f8E4M3FN or f8E5M2 stored as i8");
  spec = plainSpec("g", {1, 4, 5, 6});
  spec.a = {MemRefType::get({24}, IntegerType::get(&context(), 8)), BFloat16Type::get(&context())};
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message, "matrix product 'g' has A of type 'memref<24xi8>' holding 'bf16'; it needs 24 "
                     "elements of f32, of bf16 or f16 stored as i16, or of f8E4M3FN or f8E5M2 "
                     "stored as i8");
  spec.a = {MemRefType::get({24}, IntegerType::get(&context(), 16)), BFloat16Type::get(&context())};
  spec.plan = planGemm(spec, target);
  spec.plan->packA = false;
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message, "matrix product 'g' must pack A: tiles read f32 where it is not packed");
  spec = plainSpec("g", {1, 4, 5, 0});
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message, "product kernel 'g' has an empty axis: batch 1, m 4, n 5, k 0");
  spec = plainSpec("g", {1, 4, 5, 6});
  spec.epilogue.outputs = {floats({4, 6})};
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message,
            "product kernel 'g' has an output of type memref<4x6xf32>; it needs 20 elements");
  spec = plainSpec("g", {1, 4, 5, 6});
  spec.epilogue.inputs = {*EpilogueInput::broadcast(floats({5}), {4, 5})};
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message, "product kernel 'g' has no epilogue function, so it takes no further inputs "
                     "and writes one output of f32");
  spec.epilogue.function = [](OpBuilder &, Location, const EpiloguePoint &point) {
    return SmallVector<Value>{point.product};
  };
  spec.accumulate = true;
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message, "product kernel 'g' cannot accumulate behind an epilogue; read the old value "
                     "as an input of the epilogue");
  spec.accumulate = false;
  spec.epilogue.inputs[0].type = floats({4});
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message,
            "product kernel 'g' reads an epilogue input of type memref<4xf32> beyond its end");
  spec = plainSpec("g", {1, 4, 5, 6, false, true});
  spec.plan = planGemm(spec, target);
  spec.plan->packB = false;
  EXPECT_TRUE(refused(spec));
  EXPECT_EQ(message,
            "matrix product 'g' must pack B: it is stored [n, k], and tiles load vectors along n");
}

} // namespace
} // namespace descent::testing
