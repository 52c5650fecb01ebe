//===- AttentionEmitter.cpp - What attention and its gradient share -------===//
//
// The exponential is 2^(c x) with c = scale / ln 2: rounding c x to an integer by adding 1.5 *
// 2^23, which also leaves that integer in the low bits, then a polynomial of degree 6 on the rest
// (its error of 2e-9 is far below a rounding). Folding the scale into c saves a multiplication a
// score; c's own rounding makes a relative error of |scale x| * 6e-8, the same as a rounding of the
// score itself would. The power of two is applied by a multiplication, not by adding to the
// exponent's bits, because then NaN stays NaN whatever its payload.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/AttentionEmitter.h"
#include "dialects/NN/NarrowFloats.h"
#include <cmath>

using namespace mlir;

namespace descent {

AttentionEmitter::AttentionEmitter(OpBuilder &builder, Location loc, const AttentionForm &form,
                                   func::FuncOp function, ModuleOp module, const CpuTarget &target)
    : Emitter(builder, loc), form(form), target(target), lanes(target.lanes()),
      panel(target.lanes() * target.tileVectors()), module(module) {
  auto arguments = function.getArguments();
  size_t count = form.buffers.size();
  for (Value argument : arguments.take_front(count))
    buffers.push_back(flatten(argument));
  firstTask = Value(arguments[count]);
  lastTask = Value(arguments[count + 1]);
  scratch = arguments[count + 2];
}

RowView AttentionEmitter::headRows(const AttentionOperand &operand, Index batch, Index head) {
  Index start = add(mul(batch, form.length * operand.rowStride), mul(head, form.depth));
  return {buffers[operand.buffer], add(start, operand.offset), operand.rowStride};
}

Value AttentionEmitter::widen(Value stored) {
  if (getElementTypeOrSelf(stored).isF32())
    return stored;
  Type type = form.narrow;
  if (auto vector = dyn_cast<VectorType>(stored.getType()))
    type = vector.clone(type);
  return widenFloat(builder, loc, arith::BitcastOp::create(builder, loc, type, stored));
}

RowView AttentionEmitter::stagedRows(Value scratch, Index from) {
  int64_t stride = stagedStride(form);
  return {scratch, sub(0, mul(from, stride)), stride};
}

RowView AttentionEmitter::widened(const RowView &source, Index from, Index count, Value scratch) {
  if (!form.narrow)
    return source;
  RowView staged = stagedRows(scratch, from);
  loop(0, count, 1, [&](Index row) {
    Index start = add(source.start, mul(add(from, row), source.stride)),
          to = mul(row, staged.stride);
    depthVectors([&](Index column, Value mask) {
      storePart(loadPart(source.buffer, add(start, column), mask), scratch, add(to, column), mask);
    });
  });
  return staged;
}

void AttentionEmitter::narrowRows(const RowView &staged, const RowView &target, Index from,
                                  Index count) {
  loop(from, add(from, count), 1, [&](Index row) {
    Index start = add(staged.start, mul(row, staged.stride)),
          to = add(target.start, mul(row, target.stride));
    depthVectors([&](Index column, Value mask) {
      storePart(loadPart(staged.buffer, add(start, column), mask), target.buffer, add(to, column),
                mask);
    });
  });
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Three rounds of shuffles that AVX has as single instructions: unpack, shuffle within halves,
/// swap halves.
SmallVector<Value> AttentionEmitter::transpose8(ArrayRef<Value> rows) {
  auto shuffle = [&](Value a, Value b, ArrayRef<int64_t> lanes) -> Value {
    return vector::ShuffleOp::create(builder, loc, a, b, lanes);
  };
  SmallVector<Value> pairs, quads, columns;
  for (int i = 0; i < 8; i += 2) {
    pairs.push_back(shuffle(rows[i], rows[i + 1], {0, 8, 1, 9, 4, 12, 5, 13}));
    pairs.push_back(shuffle(rows[i], rows[i + 1], {2, 10, 3, 11, 6, 14, 7, 15}));
  }
  for (int half : {0, 4})
    for (int i : {0, 1}) {
      quads.push_back(shuffle(pairs[half + i], pairs[half + i + 2], {0, 1, 8, 9, 4, 5, 12, 13}));
      quads.push_back(shuffle(pairs[half + i], pairs[half + i + 2], {2, 3, 10, 11, 6, 7, 14, 15}));
    }
  for (int i = 0; i < 4; ++i)
    columns.push_back(shuffle(quads[i], quads[i + 4], {0, 1, 2, 3, 8, 9, 10, 11}));
  for (int i = 0; i < 4; ++i)
    columns.push_back(shuffle(quads[i], quads[i + 4], {4, 5, 6, 7, 12, 13, 14, 15}));
  return columns;
}

void AttentionEmitter::packTransposed(const RowView &source, Index count, Value packed) {
  int64_t depth = form.depth, depth8 = depth / 8 * 8;
  auto sourceAt = [&](Index row, Index k) {
    return add(add(source.start, mul(row, source.stride)), k);
  };
  auto packedAt = [&](Index row, Index k) {
    Index inPanel = rem(row, panel);
    return add(add(mul(sub(row, inPanel), depth), inPanel), mul(k, panel));
  };
  // Whole blocks of 8 x 8; the columns that remain, and then the rows, are copied by element.
  auto copyScalars = [&](Index row, Index from, Index to) {
    loop(from, to, 1, [&](Index k) {
      store(widen(load(source.buffer, sourceAt(row, k))), packed, packedAt(row, k));
    });
  };
  Index count8 = roundDown(count, 8);
  loop(0, count8, 8, [&](Index row) {
    if (depth8)
      loop(0, depth8, 8, [&](Index k) {
        SmallVector<Value> rows;
        for (int r = 0; r < 8; ++r)
          rows.push_back(widen(loadVector(source.buffer, sourceAt(add(row, r), k), 8)));
        Index to = packedAt(row, k);
        for (auto [column, values] : llvm::enumerate(transpose8(rows)))
          storeVector(values, packed, add(to, int64_t(column) * panel));
      });
    if (depth8 != depth)
      loop(row, add(row, 8), 1, [&](Index r) { copyScalars(r, depth8, depth); });
  });
  loop(count8, count, 1, [&](Index row) { copyScalars(row, 0, depth); });
  Value zero = constant(0.0);
  loop(count, roundUp(count, panel), 1, [&](Index row) {
    loop(0, depth, 1, [&](Index k) { store(zero, packed, packedAt(row, k)); });
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void AttentionEmitter::rowTiles(Index count, int64_t block,
                                llvm::function_ref<void(Index, int)> body) {
  // Blocks are whole numbers of tiles, so only the last block of T rows leaves a remainder, and
  // only one.
  forEachRowTile(*this, count, target, {form.length % block % target.tileRows()}, body);
}

void AttentionEmitter::scoreTile(int rows, const RowView &a, Index row, Value packed,
                                 Index panelStart, const RowView &scores, Index column) {
  TileSpec spec;
  spec.rows = rows;
  spec.vectors = target.tileVectors();
  spec.a = TileA::Rows;
  spec.b = TileB::Packed;
  spec.mode = TileMode::Store;
  TileArguments arguments;
  arguments.a = a.buffer;
  arguments.aOffset = add(a.start, mul(row, a.stride));
  arguments.lda = a.stride;
  arguments.b = packed;
  arguments.bOffset = panelStart;
  arguments.c = scores.buffer;
  arguments.cOffset = add(add(scores.start, mul(row, scores.stride)), column);
  arguments.ldc = scores.stride;
  arguments.k = form.depth;
  callTile(*this, module, spec, target, arguments);
}

void AttentionEmitter::productTiles(int rows, TileA layout, Value a, Index aOffset, int64_t lda,
                                    const RowView &b, Index bRow, const RowView &c, Index cRow,
                                    Index k, Value accumulate) {
  TileSpec spec;
  spec.rows = rows;
  spec.a = layout;
  spec.b = TileB::Strided;
  spec.mode = TileMode::Flagged;
  TileArguments arguments;
  arguments.a = a;
  arguments.aOffset = aOffset;
  arguments.lda = lda;
  arguments.b = b.buffer;
  arguments.ldb = b.stride;
  arguments.c = c.buffer;
  arguments.ldc = c.stride;
  arguments.k = k;
  arguments.accumulate = accumulate;
  Index bStart = add(b.start, mul(bRow, b.stride)), cStart = add(c.start, mul(cRow, c.stride));
  forEachColumnTile(*this, form.depth, target, {form.depth % panel},
                    [&](Index column, int vectors, bool tail, Index columns) {
                      spec.vectors = vectors;
                      spec.columnTail = tail;
                      arguments.bOffset = add(bStart, column);
                      arguments.cOffset = add(cStart, column);
                      arguments.columns = columns;
                      callTile(*this, module, spec, target, arguments);
                    });
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

static constexpr auto contract = arith::FastMathFlags::contract;

Value AttentionEmitter::choose(Value mask, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, mask, a, b);
}
Value AttentionEmitter::addf(Value a, Value b) {
  return arith::AddFOp::create(builder, loc, a, b, contract);
}
Value AttentionEmitter::subf(Value a, Value b) {
  return arith::SubFOp::create(builder, loc, a, b, contract);
}
Value AttentionEmitter::mulf(Value a, Value b) {
  return arith::MulFOp::create(builder, loc, a, b, contract);
}
Value AttentionEmitter::fma(Value a, Value b, Value c) {
  return vector::FMAOp::create(builder, loc, a, b, c);
}

Value AttentionEmitter::atLeast(Value x, Value bound) {
  Value below = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, bound, x);
  return choose(below, bound, x);
}

Value AttentionEmitter::atMost(Value x, Value bound) {
  Value above = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, bound, x);
  return choose(above, bound, x);
}

Value AttentionEmitter::sum(Value vector) {
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, vector,
                                     arith::FastMathFlags::reassoc);
}

double AttentionEmitter::scale() const { return 1.0 / std::sqrt(double(form.depth)); }

Value AttentionEmitter::exponential(Value x) {
  // (2^f - 1) / f on [-1/2, 1/2], minimax in the relative error of 2^f.
  static constexpr double polynomial[] = {1.5353361947210455e-4, 1.3398874403573674e-3,
                                          9.6184373574363951e-3, 5.5503324711592965e-2,
                                          2.4022647913632114e-1, 6.9314720285504518e-1};
  double factor = scale() * 1.4426950408889634;
  Value c = constantVector(factor), rounder = constantVector(12582912.0);
  x = atLeast(x, constantVector(-125.0 / factor));
  Value shifted = fma(x, c, rounder);
  // Neither of these two may be contracted or reassociated into the sum before.
  Value whole = arith::SubFOp::create(builder, loc, shifted, rounder);
  Value rest = fma(x, c, arith::NegFOp::create(builder, loc, whole));
  Value power = constantVector(polynomial[0]);
  for (double coefficient : llvm::drop_begin(polynomial))
    power = fma(power, rest, constantVector(coefficient));
  power = fma(power, rest, constantVector(1.0));
  auto bits = VectorType::get({lanes}, builder.getI32Type());
  auto integers = [&](int32_t value) {
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(bits, value));
  };
  Value exponent = arith::BitcastOp::create(builder, loc, bits, shifted);
  exponent = arith::ShLIOp::create(builder, loc, exponent, integers(23));
  exponent = arith::AddIOp::create(builder, loc, exponent, integers(0x3f800000));
  return mulf(power, arith::BitcastOp::create(builder, loc, power.getType(), exponent));
}

//===----------------------------------------------------------------------===//
// Rows of D columns
//===----------------------------------------------------------------------===//

void AttentionEmitter::depthVectors(llvm::function_ref<void(Index, Value)> body) {
  int64_t whole = form.depth / lanes * lanes;
  if (whole)
    loop(0, whole, lanes, [&](Index column) { body(column, Value()); });
  if (whole != form.depth)
    body(whole, mask(form.depth - whole));
}

Value AttentionEmitter::loadPart(Value memory, Index at, Value mask) {
  return widen(mask ? loadMasked(memory, at, mask) : vectorAt(memory, at));
}

void AttentionEmitter::storePart(Value vector, Value memory, Index at, Value mask) {
  Type stored = cast<MemRefType>(memory.getType()).getElementType();
  if (!stored.isF32())
    vector =
        arith::BitcastOp::create(builder, loc, cast<VectorType>(vector.getType()).clone(stored),
                                 narrowFloat(builder, loc, vector, form.narrow));
  if (mask)
    storeMasked(vector, memory, at, mask);
  else
    storeVector(vector, memory, at);
}

} // namespace descent
