//===- NarrowProductTest.cpp - Products of bf16, f16 and f8 ---------------===//
//
// Against sums in double precision of the operands as they are stored: what a narrow operand was
// rounded from does not matter here. Every target that this machine can run takes part: AVX2, where
// operands are widened to f32, and the host, which may multiply pairs of bf16.
//
//===----------------------------------------------------------------------===//

#include "KernelOracle.h"
#include "passes/Codegen/Convolution.h"
#include "passes/Codegen/Gemm.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Codegen/Lanes.h"

using namespace mlir;

namespace descent::testing {
namespace {

Type elementOf(StringRef name) {
  MLIRContext *c = &context();
  return llvm::StringSwitch<Type>(name)
      .Case("f32", Float32Type::get(c))
      .Case("bf16", BFloat16Type::get(c))
      .Case("f16", Float16Type::get(c))
      .Case("e4m3", Float8E4M3FNType::get(c))
      .Case("e5m2", Float8E5M2Type::get(c));
}

NumberBuffer numbers(int64_t size, Type element) {
  return {MemRefType::get({size}, storageType(element)), element};
}

Memory memoryOf(int64_t size, Type element) {
  return Memory(RankedTensorType::get({size}, element));
}

Memory filled(int64_t size, Type element, unsigned seed) {
  Memory memory = memoryOf(size, element);
  for (int64_t i = 0; i < size; ++i)
    memory.set(i, noise(seed, i) / 2);
  return memory;
}

/// Runs tasks in groups, with scratch full of NaN for each.
void run(descent_kernel_function kernel, std::vector<Memory *> buffers, int64_t tasks,
         int64_t scratchBytes, int64_t grouping) {
  std::vector<void *> pointers;
  for (Memory *memory : buffers)
    pointers.push_back(memory->data());
  size_t size = (scratchBytes + 64 + 63) / 64 * 64;
  std::unique_ptr<uint8_t, decltype(&std::free)> scratch(
      static_cast<uint8_t *>(std::aligned_alloc(64, size)), &std::free);
  for (int64_t first = 0; first < tasks; first += grouping) {
    std::memset(scratch.get(), 0xFF, size);
    kernel(pointers.data(), first, std::min(first + grouping, tasks), scratch.get());
    for (size_t i = scratchBytes; i < size; ++i)
      ASSERT_EQ(scratch.get()[i], 0xFF) << "scratch is written beyond its size";
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    ASSERT_TRUE(buffers[i]->marginsIntact()) << "buffer " << i << " is written outside its bounds";
}

/// What a sum of `depth` products, each at most one, may be off once rounded to `result`.
double toleranceOf(int64_t depth, Type result, double value) {
  double unit = result.isBF16() ? 1.0 / 256 : result.isF16() ? 1.0 / 2048 : 0;
  return sumTolerance(depth) + unit * std::abs(value);
}

/// Kernels compiled together, so that they share tiles and packing.
struct Kernels {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  std::vector<int64_t> tasks, scratch;
  std::unique_ptr<KernelJit> jit;

  void add(FailureOr<func::FuncOp> function) {
    ASSERT_TRUE(succeeded(function));
    tasks.push_back((*function)->getAttrOfType<IntegerAttr>(tasksAttrName).getInt());
    scratch.push_back((*function)->getAttrOfType<IntegerAttr>(scratchAttrName).getInt());
  }
  void compile(const CpuTarget &target) {
    ASSERT_TRUE(succeeded(verify(*module)));
    auto compiled = KernelJit::create(*module, target);
    ASSERT_TRUE(succeeded(compiled));
    jit = std::move(*compiled);
  }
};

struct Types {
  const char *a, *b, *result;
};

using PlanFunction = std::optional<ProductPlan> (*)(const CpuTarget &);

void checkGemm(ArrayRef<Types> types, ArrayRef<Contraction> shapes, bool accumulate = false,
               PlanFunction plan = nullptr) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Kernels kernels;
    std::vector<std::pair<Types, Contraction>> cases;
    for (const Types &type : types)
      for (const Contraction &s : shapes) {
        GemmSpec spec;
        spec.name = "gemm" + std::to_string(cases.size());
        spec.shape = s;
        spec.a = numbers(s.batch * s.m * s.k, elementOf(type.a));
        spec.b = numbers(s.batch * s.k * s.n, elementOf(type.b));
        Type result = elementOf(type.result);
        spec.epilogue.outputs = {numbers(s.batch * s.m * s.n, result).type};
        spec.epilogue.function = roundingEpilogue(result);
        spec.accumulate = accumulate;
        if (plan)
          spec.plan = plan(target);
        kernels.add(emitGemmKernel(*kernels.module, kernels.module->getLoc(), spec, target));
        cases.push_back({type, s});
      }
    kernels.compile(target);
    ASSERT_NE(kernels.jit, nullptr);
    for (auto [number, test] : llvm::enumerate(cases)) {
      auto [type, s] = test;
      SCOPED_TRACE(::testing::Message()
                   << type.a << " x " << type.b << " -> " << type.result << ", " << s.batch << " x "
                   << s.m << " x " << s.n << " x " << s.k << (s.transposeA ? " ta" : "")
                   << (s.transposeB ? " tb" : ""));
      Type result = elementOf(type.result);
      int64_t elements = s.batch * s.m * s.n;
      Memory a = filled(s.batch * s.m * s.k, elementOf(type.a), 1),
             b = filled(s.batch * s.k * s.n, elementOf(type.b), 2);
      Memory before = accumulate ? filled(elements, result, 3) : memoryOf(elements, result);
      Memory c = before;
      auto kernel = kernels.jit->kernel("gemm" + std::to_string(number));
      int64_t tasks = kernels.tasks[number], scratch = kernels.scratch[number];
      run(kernel, {&a, &b, &c}, tasks, scratch, tasks);
      for (int64_t batch = 0; batch < s.batch; ++batch)
        for (int64_t i = 0; i < s.m; ++i)
          for (int64_t j = 0; j < s.n; ++j) {
            int64_t at = (batch * s.m + i) * s.n + j;
            double expected = accumulate ? before.get(at) : 0;
            for (int64_t k = 0; k < s.k; ++k)
              expected += a.get(batch * s.m * s.k + (s.transposeA ? k * s.m + i : i * s.k + k)) *
                          b.get(batch * s.k * s.n + (s.transposeB ? j * s.k + k : k * s.n + j));
            ASSERT_TRUE(std::abs(c.get(at) - expected) <= toleranceOf(s.k + 1, result, expected))
                << batch << ", " << i << ", " << j << ": " << c.get(at) << ", not " << expected;
          }
      for (int64_t grouping : {int64_t(1), int64_t(3)}) {
        Memory again = before;
        run(kernel, {&a, &b, &again}, tasks, scratch, grouping);
        ASSERT_EQ(again.bytes, c.bytes) << "grouping " << grouping << " changes bits";
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

const Types everyPair[] = {{"bf16", "bf16", "bf16"}, {"f16", "f16", "f16"},
                           {"e4m3", "e4m3", "bf16"}, {"e5m2", "e5m2", "f32"},
                           {"e4m3", "e5m2", "f16"},  {"e5m2", "e4m3", "bf16"}};

TEST(NarrowProduct, OddShapesInEveryStorageOrder) {
  checkGemm(everyPair,
            inEveryOrder({{1, 1, 1, 1}, {1, 7, 31, 1}, {1, 53, 1, 17}, {1, 37, 67, 43}}));
}

TEST(NarrowProduct, DeepAndWide) {
  checkGemm({{"bf16", "bf16", "f32"}, {"f16", "f16", "bf16"}, {"e4m3", "e5m2", "f32"}},
            inEveryOrder({{1, 30, 70, 1301}}));
  checkGemm({{"bf16", "bf16", "f16"}}, {{1, 145, 300, 700, true, true}, {1, 50, 97, 1300}});
}

TEST(NarrowProduct, Batches) {
  checkGemm({{"bf16", "bf16", "bf16"}, {"f16", "f16", "f32"}},
            {{3, 17, 33, 9}, {5, 64, 64, 31, false, true}, {2, 40, 65, 24, true, false}});
}

TEST(NarrowProduct, AccumulatesIntoFloats) {
  checkGemm({{"bf16", "bf16", "f32"}, {"f16", "f16", "f32"}, {"e5m2", "e5m2", "f32"}},
            inEveryOrder({{1, 29, 35, 19}}), /*accumulate=*/true);
}

/// One operand may be narrow alone; the other is then a plain matrix of floats.
TEST(NarrowProduct, BesideFloats) {
  checkGemm({{"bf16", "f32", "f32"}, {"f32", "f16", "f32"}, {"f16", "bf16", "f32"}},
            inEveryOrder({{1, 29, 35, 19}}));
}

/// Blocks of odd depth end with half a pair, and every loop of the nest runs several times.
TEST(NarrowProduct, SmallBlocks) {
  auto even = [](const CpuTarget &target) -> std::optional<ProductPlan> {
    int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
    return ProductPlan{3 * mr, nr, 24, 2 * mr, 2 * nr, true, true};
  };
  auto odd = [](const CpuTarget &target) -> std::optional<ProductPlan> {
    int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
    return ProductPlan{mr, 2 * nr, 21, mr, nr, true, true};
  };
  auto shapes = inEveryOrder({{2, 40, 70, 49}});
  for (PlanFunction plan : {PlanFunction(even), PlanFunction(odd)}) {
    checkGemm({{"bf16", "bf16", "bf16"}, {"f16", "f16", "f32"}, {"e4m3", "e4m3", "f32"}}, shapes,
              false, plan);
    checkGemm({{"bf16", "bf16", "f32"}}, shapes, true, plan);
  }
}

/// Every value that a type has comes through either packing and either operand unchanged: products
/// with one. The exception are denormal bf16 where pairs are multiplied, which count as zero.
TEST(NarrowProduct, EveryValueSurvivesPacking) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    for (const char *name : {"bf16", "f16", "e4m3", "e5m2"}) {
      SCOPED_TRACE(name);
      Type element = elementOf(name);
      int64_t values = int64_t(1) << element.getIntOrFloatBitWidth();
      bool flushes = element.isBF16() && target.bf16Products();
      Kernels kernels;
      // Depth one packs single elements, depth 16 whole blocks of the transposing form; the second
      // operand then is the unit matrix.
      std::vector<Contraction> shapes;
      for (int64_t depth : {1, 16})
        for (bool transpose : {false, true}) {
          shapes.push_back({1, values / depth, depth, depth, transpose, false});
          shapes.push_back({1, depth, values / depth, depth, false, transpose});
        }
      for (const Contraction &s : shapes) {
        GemmSpec spec;
        spec.name = "gemm" + std::to_string(kernels.tasks.size());
        spec.shape = s;
        spec.a = numbers(s.m * s.k, element);
        spec.b = numbers(s.k * s.n, element);
        spec.epilogue.outputs = {numbers(s.m * s.n, elementOf("f32")).type};
        kernels.add(emitGemmKernel(*kernels.module, kernels.module->getLoc(), spec, target));
      }
      kernels.compile(target);
      ASSERT_NE(kernels.jit, nullptr);
      for (auto [number, s] : llvm::enumerate(shapes)) {
        SCOPED_TRACE(::testing::Message() << "shape " << number);
        bool first = number % 2 == 0;
        Memory all = memoryOf(values, element), unit = memoryOf(s.k * s.k, element);
        for (int64_t i = 0; i < values; ++i)
          std::memcpy(all.data() + i * all.width(), &i, all.width());
        for (int64_t i = 0; i < s.k * s.k; ++i)
          unit.set(i, i % (s.k + 1) == 0);
        Memory c = memoryOf(values, elementOf("f32"));
        run(kernels.jit->kernel("gemm" + std::to_string(number)),
            first ? std::vector<Memory *>{&all, &unit, &c} : std::vector<Memory *>{&unit, &all, &c},
            kernels.tasks[number], kernels.scratch[number], kernels.tasks[number]);
        for (int64_t i = 0; i < values; ++i) {
          // Row and column of element i of C, and the element of `all` that it is.
          int64_t row = i / s.n, column = i % s.n, k = first ? column : row;
          int64_t at = first ? (s.transposeA ? k * s.m + row : row * s.k + k)
                             : (s.transposeB ? column * s.k + k : k * s.n + column);
          double want = all.get(at), got = c.get(i);
          if (flushes && std::abs(want) < std::numeric_limits<float>::min())
            want = 0;
          // Infinity and NaN times the zeros of a unit matrix spoil their whole row or column.
          bool spoiled = false;
          for (int64_t other = 0; other < s.k; ++other) {
            int64_t beside = first ? (s.transposeA ? other * s.m + row : row * s.k + other)
                                   : (s.transposeB ? column * s.k + other : other * s.n + column);
            spoiled |= other != k && !std::isfinite(all.get(beside));
          }
          if (spoiled || std::isnan(want))
            ASSERT_TRUE(std::isnan(got)) << i << ": " << got << ", not NaN";
          else
            ASSERT_EQ(got, want) << i;
        }
      }
    }
  }
}

void checkConvolution(ConvolutionKind kind, const Types &types, bool smallBlocks) {
  // images, height, width, inChannels, outHeight, outWidth, outChannels, kernel, strides,
  // dilations, padding. Odd and even numbers of channels, strides and a kernel past the border.
  std::vector<ConvolutionShape> shapes = {
      {2, 7, 9, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1},
      {3, 8, 5, 1, 8, 5, 17, 5, 3, 1, 1, 1, 1, 2, 1},
      {2, 11, 13, 18, 6, 7, 34, 3, 3, 2, 2, 1, 1, 1, 1},
      {1, 12, 10, 4, 6, 4, 6, 3, 2, 2, 3, 2, 2, 0, 2},
  };
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    Kernels kernels;
    auto sizeOfX = [](const ConvolutionShape &s) {
      return s.images * s.height * s.width * s.inChannels;
    };
    auto sizeOfW = [](const ConvolutionShape &s) {
      return s.kernelHeight * s.kernelWidth * s.inChannels * s.outChannels;
    };
    auto sizeOfY = [](const ConvolutionShape &s) {
      return s.images * s.outHeight * s.outWidth * s.outChannels;
    };
    bool input = kind == ConvolutionKind::InputGradient,
         weight = kind == ConvolutionKind::WeightGradient;
    Type result = elementOf(types.result);
    for (const ConvolutionShape &s : shapes) {
      ConvolutionSpec spec;
      spec.name = "conv" + std::to_string(kernels.tasks.size());
      spec.kind = kind;
      spec.shape = s;
      spec.first = numbers(input ? sizeOfY(s) : sizeOfX(s), elementOf(types.a));
      spec.second = numbers(weight ? sizeOfY(s) : sizeOfW(s), elementOf(types.b));
      int64_t size = input ? sizeOfX(s) : weight ? sizeOfW(s) : sizeOfY(s);
      spec.epilogue.outputs = {numbers(size, result).type};
      spec.epilogue.function = roundingEpilogue(result);
      int64_t mr = target.tileRows(), nr = target.tileVectors() * target.lanes();
      if (smallBlocks)
        spec.plan = ProductPlan{2 * mr, nr, kernels.tasks.size() % 2 ? 20 : 13, mr, nr, true, true};
      kernels.add(emitConvolutionKernel(*kernels.module, kernels.module->getLoc(), spec, target));
    }
    kernels.compile(target);
    ASSERT_NE(kernels.jit, nullptr);
    for (auto [number, s] : llvm::enumerate(shapes)) {
      SCOPED_TRACE(::testing::Message() << "shape " << number);
      Memory first = filled(input ? sizeOfY(s) : sizeOfX(s), elementOf(types.a), 1),
             second = filled(weight ? sizeOfY(s) : sizeOfW(s), elementOf(types.b), 2);
      int64_t size = input ? sizeOfX(s) : weight ? sizeOfW(s) : sizeOfY(s);
      std::vector<double> expected(size, 0.0);
      std::vector<int64_t> depth(size, 0);
      for (int64_t n = 0; n < s.images; ++n)
        for (int64_t oy = 0; oy < s.outHeight; ++oy)
          for (int64_t ox = 0; ox < s.outWidth; ++ox)
            for (int64_t a = 0; a < s.kernelHeight; ++a)
              for (int64_t b = 0; b < s.kernelWidth; ++b) {
                int64_t y = oy * s.strideY + a * s.dilationY - s.padTop,
                        x = ox * s.strideX + b * s.dilationX - s.padLeft;
                if (y < 0 || y >= s.height || x < 0 || x >= s.width)
                  continue;
                for (int64_t i = 0; i < s.inChannels; ++i)
                  for (int64_t o = 0; o < s.outChannels; ++o) {
                    int64_t atX = ((n * s.height + y) * s.width + x) * s.inChannels + i,
                            atW = ((a * s.kernelWidth + b) * s.inChannels + i) * s.outChannels + o,
                            atY = ((n * s.outHeight + oy) * s.outWidth + ox) * s.outChannels + o;
                    int64_t at = input ? atX : weight ? atW : atY;
                    expected[at] += first.get(input ? atY : atX) * second.get(weight ? atY : atW);
                    ++depth[at];
                  }
              }
      Memory c = memoryOf(size, result);
      auto kernel = kernels.jit->kernel("conv" + std::to_string(number));
      int64_t tasks = kernels.tasks[number], scratch = kernels.scratch[number];
      run(kernel, {&first, &second, &c}, tasks, scratch, tasks);
      for (int64_t i = 0; i < size; ++i)
        ASSERT_TRUE(std::abs(c.get(i) - expected[i]) <= toleranceOf(depth[i], result, expected[i]))
            << i << ": " << c.get(i) << ", not " << expected[i];
      for (int64_t grouping : {int64_t(1), int64_t(3)}) {
        Memory again = memoryOf(size, result);
        run(kernel, {&first, &second, &again}, tasks, scratch, grouping);
        ASSERT_EQ(again.bytes, c.bytes) << "grouping " << grouping << " changes bits";
      }
    }
  }
}

TEST(NarrowConvolution, EveryProductInEveryType) {
  for (ConvolutionKind kind :
       {ConvolutionKind::Forward, ConvolutionKind::InputGradient, ConvolutionKind::WeightGradient})
    for (const Types &types :
         {Types{"bf16", "bf16", "bf16"}, {"f16", "f16", "f32"}, {"e4m3", "e5m2", "f32"}}) {
      SCOPED_TRACE(::testing::Message() << "kind " << int(kind) << " of " << types.a);
      checkConvolution(kind, types, false);
    }
}

TEST(NarrowConvolution, BlocksThatCutTapsAndPairs) {
  for (ConvolutionKind kind : {ConvolutionKind::Forward, ConvolutionKind::InputGradient,
                               ConvolutionKind::WeightGradient}) {
    SCOPED_TRACE(::testing::Message() << "kind " << int(kind));
    checkConvolution(kind, {"bf16", "bf16", "f32"}, true);
  }
}

// Epilogues round after each op, as the interpreter does. A sum that lies near the middle between
// two bf16 may round the other way, and each op may carry that on.
TEST(NarrowEpilogue, BiasGeluAndResidual) {
  for (const char *type : {"bf16", "f16"})
    for (const char *shape : {"64", "37"}) // whole panels, and the masked rest of one
      expectKernel(
          replaceAll(replaceAll(R"(
exec.kernel @k "gemm" (%x: tensor<35x29xT>, %w: tensor<29xNxT>, %b: tensor<NxT>,
                       %r: tensor<35xNxT>) -> (tensor<35xNxT>, tensor<35xNxT>) {
  %0 = nn.matmul %x, %w : tensor<35x29xT>, tensor<29xNxT>
  %1 = nn.add %0, %b : tensor<35xNxT>, tensor<NxT>
  %2 = nn.relu %1 : tensor<35xNxT>
  %3 = nn.add %2, %r : tensor<35xNxT>, tensor<35xNxT>
  exec.yield %1, %3 : tensor<35xNxT>, tensor<35xNxT>
})",
                                "T", type),
                     "N", shape),
          emitContractionKernel,
          [](unsigned input, size_t element) { return noise(input, element) / 4; },
          std::string(type) == "f16" ? 1.0 / 512 : 1.0 / 64);
}

/// Conversions of narrow floats are vector code on every CPU: none becomes a call into the
/// compiler's runtime library, which need not have them. Some of these CPUs have more than the
/// machine that tests, so their code is compiled and not run.
TEST(NarrowEpilogue, NothingBecomesACall) {
  for (const char *name : {"x86-64-v3", "haswell", "znver3", "skylake-avx512", "cooperlake",
                           "znver4", "sapphirerapids"}) {
    SCOPED_TRACE(name);
    CpuTarget target = llvm::cantFail(CpuTarget::named(name));
    for (const char *type : {"bf16", "f16", "f8E4M3FN", "f8E5M2"}) {
      SCOPED_TRACE(type);
      // The epilogue is of the same type, bf16 with 8-bit operands; a ragged panel takes the masked
      // form as well.
      bool is8Bit = type[1] == '8';
      auto source =
          parseSourceString<ModuleOp>(replaceAll(replaceAll(R"(
exec.kernel @k "gemm" (%x: tensor<35x29xT>, %w: tensor<29x70xT>, %b: tensor<70xR>,
                       %r: tensor<35x70xR>) -> (tensor<35x70xR>, tensor<35x70xR>, tensor<35x70xf8E5M2>) {
  %0 = nn.matmul %x, %w {result_type = R} : tensor<35x29xT>, tensor<29x70xT>
  %1 = nn.add %0, %b : tensor<35x70xR>, tensor<70xR>
  %2 = nn.gelu %1 tanh : tensor<35x70xR>
  %3 = nn.add %2, %r : tensor<35x70xR>, tensor<35x70xR>
  %4 = nn.cast %3 to f8E5M2 : tensor<35x70xR>
  exec.yield %1, %3, %4 : tensor<35x70xR>, tensor<35x70xR>, tensor<35x70xf8E5M2>
})",
                                                            "xT>", std::string("x") + type + ">"),
                                                 "R", is8Bit ? "bf16" : type),
                                      &context());
      ASSERT_TRUE(source);
      exec::KernelOp kernel = *source->getOps<exec::KernelOp>().begin();
      OwningOpRef<ModuleOp> code = ModuleOp::create(kernel.getLoc());
      ASSERT_TRUE(succeeded(emitContractionKernel(kernel, *code, target)));
      ASSERT_TRUE(succeeded(lowerKernelFunctions(*code, target)));
      auto object = compileToObject(*code, target);
      ASSERT_TRUE(succeeded(object));
      StringRef bytes(object->data(), object->size());
      for (const char *call : {"__trunc", "__extend", "__gnu_h2f", "__gnu_f2h"})
        EXPECT_FALSE(bytes.contains(call)) << call;
    }
  }
}

} // namespace
} // namespace descent::testing
