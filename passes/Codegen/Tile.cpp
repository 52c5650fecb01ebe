//===- Tile.cpp - The register tile of every matrix product ---------------===//
//
// Per step of k: `vectors` loads of B, `rows` broadcasts of A, rows * vectors fused multiply-adds.
// The k loop is unrolled so that address arithmetic and the branch vanish beside them, by four with
// AVX2; with AVX-512 the 24 multiply-adds of one step already hide them, and two halve the code.
// Where B's rows are a variable distance apart it stays at one there: of two such steps LLVM's
// scheduler issues all 24 broadcasts first and spills half the accumulators for them in each round.
//
// C is touched after the k loop only. Flagged tiles load it under a mask that is empty when C is
// not to be read: one function instead of two, no branch over 24 live vectors, and an empty mask
// reads nothing, so C may be uninitialised.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Tile.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace descent {

static std::string nameOf(const TileSpec &spec, const CpuTarget &target) {
  static constexpr const char *a[] = {"", "_arows", "_acols"};
  static constexpr const char *b[] = {"", "_bstrided"};
  static constexpr const char *mode[] = {"_store", "_accumulate", "_flagged", "_scale"};
  return "descent_tile_" + std::to_string(spec.rows) + "x" +
         std::to_string(spec.vectors * target.lanes()) + (spec.columnTail ? "_tail" : "") +
         a[int(spec.a)] + b[int(spec.b)] + mode[int(spec.mode)] +
         (spec.steps == TileSteps::Bf16Pairs ? "_bf16" : "");
}

func::FuncOp getOrCreateTile(ModuleOp module, const TileSpec &spec, const CpuTarget &target) {
  MLIRContext *context = module.getContext();
  bool pairs = spec.steps == TileSteps::Bf16Pairs;
  Type index = IndexType::get(context), flat = flatType(Float32Type::get(context));
  Type operand = pairs ? Type(flatType(IntegerType::get(context, 32))) : flat;
  SmallVector<Type> types = {operand, index, index, operand, index,
                             index,   flat,  index, index,   index};
  if (spec.mode == TileMode::Flagged)
    types.push_back(IntegerType::get(context, 1));
  if (spec.mode == TileMode::Scale)
    types.append({flat, index});
  if (spec.columnTail)
    types.push_back(index);

  return getOrCreateHelper(
      module, nameOf(spec, target), types, [&](Emitter &e, ValueRange arguments) {
        Value a = arguments[0], b = arguments[3], c = arguments[6];
        Index aOffset = arguments[1], lda = arguments[2], bOffset = arguments[4],
              ldb = arguments[5];
        Index cOffset = arguments[7], ldc = arguments[8], k = arguments[9];
        int64_t rows = spec.rows, vectors = spec.vectors, lanes = target.lanes();
        int64_t unroll = target.vectorBits != 512 ? 4 : spec.b == TileB::Strided ? 1 : 2;
        if (spec.b == TileB::Packed)
          ldb = target.tileVectors() * lanes;
        Index rowStride = spec.a == TileA::Rows ? lda : Index(1);
        Index stepStride = spec.a == TileA::Packed ? Index(target.tileRows())
                           : spec.a == TileA::Rows ? Index(1)
                                                   : lda;

        Value tailMask;
        if (spec.columnTail)
          tailMask = e.prefixMask(e.sub(arguments.back(), (vectors - 1) * lanes), lanes);
        auto isTail = [&](int64_t j) { return spec.columnTail && j == vectors - 1; };
        auto load = [&](Value buffer, Index offset, int64_t j) {
          return isTail(j) ? e.loadMasked(buffer, offset, tailMask)
                           : e.loadVector(buffer, offset, lanes);
        };

        // Offsets of A's rows and C's vectors, outside the k loop.
        SmallVector<Index> aRows, cVectors;
        for (int64_t i = 0; i < rows; ++i) {
          aRows.push_back(e.add(aOffset, e.mul(rowStride, i)));
          Index row = e.add(cOffset, e.mul(ldc, i));
          for (int64_t j = 0; j < vectors; ++j)
            cVectors.push_back(e.add(row, j * lanes));
        }

        // C is touched again only after the k loop, which is long enough to fetch it in; without
        // this the stores of one tile wait for C's lines while the next tile wants the same
        // buffers.
        for (auto [position, offset] : llvm::enumerate(cVectors))
          if (position % vectors == 0 || lanes * 4 == 64)
            memref::PrefetchOp::create(e.builder, e.loc, c, e.value(offset), /*isWrite=*/true,
                                       /*localityHint=*/3, /*isDataCache=*/true);

        SmallVector<Value> accumulators(rows * vectors, e.constantVector(0.0, lanes));
        if (spec.mode == TileMode::Scale) {
          for (int64_t i = 0; i < rows; ++i) {
            Value factor = e.splat(e.load(arguments[10], e.add(arguments[11], i)), lanes);
            for (int64_t j = 0; j < vectors; ++j)
              accumulators[i * vectors + j] = arith::MulFOp::create(
                  e.builder, e.loc, factor, load(c, cVectors[i * vectors + j], j));
          }
        }

        auto asPairs = [&](Value words) -> Value {
          return vector::BitCastOp::create(
              e.builder, e.loc, VectorType::get({2 * lanes}, e.builder.getBF16Type()), words);
        };
        auto multiplyAdd = [&](Value x, Value y, Value sum) -> Value {
          if (pairs)
            return x86vector::DotBF16Op::create(e.builder, e.loc, sum.getType(), sum, x, y);
          return vector::FMAOp::create(e.builder, e.loc, x, y, sum);
        };
        auto step = [&](Index at, int64_t u, SmallVector<Value> acc) {
          Index bRow = e.add(bOffset, e.mul(e.add(at, u), ldb));
          if (ldb.isKnown()) // A constant displacement instead of a second product.
            bRow = e.add(e.add(bOffset, e.mul(at, ldb)), u * ldb.number);
          SmallVector<Value> bVectors;
          // Packed panels are readable over their full width.
          for (int64_t j = 0; j < vectors; ++j)
            bVectors.push_back(spec.b == TileB::Packed
                                   ? e.loadVector(b, e.add(bRow, j * lanes), lanes)
                                   : load(b, e.add(bRow, j * lanes), j));
          if (pairs)
            for (Value &vector : bVectors)
              vector = asPairs(vector);
          Index aStep =
              stepStride.isKnown() ? e.mul(at, stepStride) : e.mul(e.add(at, u), stepStride);
          for (int64_t i = 0; i < rows; ++i) {
            Index offset = e.add(aRows[i], aStep);
            if (stepStride.isKnown())
              offset = e.add(offset, u * stepStride.number);
            Value element = e.splat(e.load(a, offset), lanes);
            if (pairs)
              element = asPairs(element);
            for (int64_t j = 0; j < vectors; ++j)
              acc[i * vectors + j] = multiplyAdd(element, bVectors[j], acc[i * vectors + j]);
          }
          return acc;
        };
        Index unrolled = e.roundDown(k, unroll);
        accumulators = e.loop(0, unrolled, unroll, accumulators, [&](Index at, ValueRange carried) {
          SmallVector<Value> acc(carried);
          for (int64_t u = 0; u < unroll; ++u)
            acc = step(at, u, acc);
          return acc;
        });
        accumulators = e.loop(unrolled, k, 1, accumulators, [&](Index at, ValueRange carried) {
          return step(at, 0, SmallVector<Value>(carried));
        });

        Value flagMask, flagTailMask;
        if (spec.mode == TileMode::Flagged) {
          flagMask = e.splat(arguments[10], lanes);
          if (spec.columnTail)
            flagTailMask = arith::AndIOp::create(e.builder, e.loc, flagMask, tailMask);
        }
        for (auto [position, offset] : llvm::enumerate(cVectors)) {
          int64_t j = position % vectors;
          Value result = accumulators[position], before;
          if (spec.mode == TileMode::Accumulate)
            before = load(c, offset, j);
          else if (spec.mode == TileMode::Flagged)
            before = e.loadMasked(c, offset, isTail(j) ? flagTailMask : flagMask);
          if (before)
            result = arith::AddFOp::create(e.builder, e.loc, before, result);
          if (isTail(j))
            e.storeMasked(result, c, offset, tailMask);
          else
            e.storeVector(result, c, offset);
        }
      });
}

void callTile(Emitter &e, ModuleOp module, const TileSpec &spec, const CpuTarget &target,
              const TileArguments &arguments) {
  func::FuncOp function = getOrCreateTile(module, spec, target);
  SmallVector<Value> operands = {
      arguments.a,         e.value(arguments.aOffset), e.value(arguments.lda),
      arguments.b,         e.value(arguments.bOffset), e.value(arguments.ldb),
      arguments.c,         e.value(arguments.cOffset), e.value(arguments.ldc),
      e.value(arguments.k)};
  if (spec.mode == TileMode::Flagged)
    operands.push_back(arguments.accumulate);
  if (spec.mode == TileMode::Scale)
    operands.append({arguments.scale, e.value(arguments.scaleOffset)});
  if (spec.columnTail)
    operands.push_back(e.value(arguments.columns));
  e.call(function, operands);
}

void forEachRowTile(Emitter &e, Index count, const CpuTarget &target, ArrayRef<int64_t> remainders,
                    llvm::function_ref<void(Index, int)> body) {
  int64_t rows = target.tileRows();
  Index full = e.roundDown(count, rows);
  if (!full.is(0))
    e.loop(0, full, rows, [&](Index row) { body(row, rows); });
  SmallVector<int64_t> distinct(remainders);
  llvm::sort(distinct);
  distinct.erase(llvm::unique(distinct), distinct.end());
  for (int64_t remainder : distinct) {
    if (remainder == 0)
      continue;
    if (count.isKnown()) {
      if (count.number % rows == remainder)
        body(full, remainder);
      continue;
    }
    e.when(e.equal(e.sub(count, full), remainder), [&] { body(full, remainder); });
  }
}

void forEachColumnTile(Emitter &e, Index count, const CpuTarget &target, ArrayRef<int64_t> tails,
                       llvm::function_ref<void(Index, int, bool, Index)> body) {
  int64_t lanes = target.lanes(), panel = target.tileVectors() * lanes;
  Index full = e.roundDown(count, panel);
  if (!full.is(0))
    e.loop(0, full, panel, [&](Index column) { body(column, target.tileVectors(), false, panel); });
  SmallVector<int64_t> widths; // in vectors
  for (int64_t tail : tails)
    if (tail)
      widths.push_back((tail + lanes - 1) / lanes);
  llvm::sort(widths);
  widths.erase(llvm::unique(widths), widths.end());
  Index rest = e.sub(count, full);
  for (int64_t width : widths) {
    if (rest.isKnown()) {
      if (rest.number && (rest.number + lanes - 1) / lanes == width)
        body(full, width, true, rest);
      continue;
    }
    Value some = e.less((width - 1) * lanes, rest), fits = e.less(rest, width * lanes + 1);
    e.when(arith::AndIOp::create(e.builder, e.loc, some, fits),
           [&] { body(full, width, true, rest); });
  }
}

} // namespace descent
