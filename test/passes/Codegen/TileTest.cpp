//===- TileTest.cpp - Every kind of register tile against a naive loop ----===//

#include "passes/Codegen/Tile.h"
#include "KernelTesting.h"
#include "passes/Codegen/KernelFunction.h"

using namespace mlir;

namespace descent::testing {
namespace {

constexpr int64_t strideA = 41, strideB = 77, strideC = 71;

/// A kernel that makes one call: buffers A, B, C, scale; task number = 1 if Flagged tiles shall
/// accumulate.
void emitCall(ModuleOp module, StringRef name, const TileSpec &spec, const CpuTarget &target,
              int64_t columns, int64_t k) {
  Type f32 = Float32Type::get(module.getContext());
  auto buffer = MemRefType::get({8192}, f32);
  auto function =
      createKernelFunction(module, module.getLoc(), name, {buffer, buffer, buffer, buffer}, 2, 0);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  Emitter e(builder, module.getLoc());
  TileArguments call;
  call.a = e.flatten(function.getArgument(0));
  call.b = e.flatten(function.getArgument(1));
  call.c = e.flatten(function.getArgument(2));
  call.scale = e.flatten(function.getArgument(3));
  call.aOffset = 3, call.lda = strideA, call.bOffset = 5, call.ldb = strideB, call.cOffset = 7,
  call.ldc = strideC;
  call.scaleOffset = 2, call.k = k, call.columns = columns;
  call.accumulate = e.equal(function.getArgument(4), 1);
  callTile(e, module, spec, target, call);
  func::ReturnOp::create(builder, module.getLoc());
}

TEST(Tile, EveryKindEqualsTheNaiveLoop) {
  for (const CpuTarget &target : targets()) {
    SCOPED_TRACE(target.name);
    int64_t lanes = target.lanes();
    struct Case {
      TileSpec spec;
      int64_t columns, k;
      std::string name;
    };
    std::vector<Case> cases;
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
    for (int rows : {1, 4, target.tileRows()})
      for (TileA a : {TileA::Packed, TileA::Rows, TileA::Columns})
        for (TileB b : {TileB::Packed, TileB::Strided})
          for (TileMode mode :
               {TileMode::Store, TileMode::Accumulate, TileMode::Flagged, TileMode::Scale}) {
            // Widths: full, a masked second vector, a masked only vector; depths: below, at and off
            // the unrolling.
            int number = cases.size();
            for (auto [columns, k] : {std::pair<int64_t, int64_t>{2 * lanes, 1 + number % 9},
                                      {lanes + 3, 8},
                                      {1, 13},
                                      {lanes, 2}}) {
              // Fewer rows are the same code, shorter: each kind once is enough.
              if (rows != target.tileRows() && (columns != 2 * lanes || b == TileB::Strided))
                continue;
              TileSpec spec = {
                  rows, columns > lanes ? 2 : 1, columns != 2 * lanes && columns != lanes, a, b,
                  mode};
              cases.push_back({spec, columns, k, "k" + std::to_string(cases.size())});
              emitCall(*module, cases.back().name, spec, target, columns, k);
            }
          }
    ASSERT_TRUE(succeeded(verify(*module)));
    auto jit = KernelJit::create(*module, target);
    ASSERT_TRUE(succeeded(jit));

    for (const Case &test : cases) {
      const TileSpec &spec = test.spec;
      SCOPED_TRACE(::testing::Message()
                   << "rows " << spec.rows << " columns " << test.columns << " k " << test.k
                   << " a " << int(spec.a) << " b " << int(spec.b) << " mode " << int(spec.mode));
      for (int task = 0; task < 2; ++task) {
        Buffer a(8192, 1), b(8192, 2), scale(8192, 3), c(8192, 4), before = c;
        bool reads = spec.mode == TileMode::Accumulate || spec.mode == TileMode::Scale ||
                     (spec.mode == TileMode::Flagged && task == 1);
        if (!reads) {
          c = Buffer(8192);
          before = c;
        }
        void *buffers[] = {a.data(), b.data(), c.data(), scale.data()};
        auto kernel = (*jit)->kernel(test.name);
        ASSERT_NE(kernel, nullptr);
        kernel(buffers, task, task + 1, nullptr);

        int64_t panel = target.tileVectors() * lanes;
        for (int64_t offset = 0; offset < 8192; ++offset) {
          int64_t i = (offset - 7) / strideC, j = (offset - 7) % strideC;
          if (offset < 7 || i >= spec.rows || j >= test.columns) {
            ASSERT_EQ(std::memcmp(&c[offset], &before[offset], 4), 0)
                << "writes outside the tile at " << offset;
            continue;
          }
          double expected = !reads                         ? 0
                            : spec.mode == TileMode::Scale ? double(scale[2 + i]) * before[offset]
                                                           : before[offset];
          for (int64_t k = 0; k < test.k; ++k) {
            int64_t ao = spec.a == TileA::Packed ? k * target.tileRows() + i
                         : spec.a == TileA::Rows ? i * strideA + k
                                                 : k * strideA + i;
            int64_t bo = k * (spec.b == TileB::Packed ? panel : strideB) + j;
            expected += double(a[3 + ao]) * b[5 + bo];
          }
          ASSERT_TRUE(std::abs(c[offset] - expected) <= sumTolerance(test.k + 1))
              << i << ", " << j << ": " << c[offset];
        }
      }
    }
  }
}

} // namespace
} // namespace descent::testing
