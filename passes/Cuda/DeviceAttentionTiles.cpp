//===- DeviceAttentionTiles.cpp - Tiles of attention on the tensor cores --===//
//
// Fragments of m16n8k16, lane l with g = l / 4 and q = l % 4: A holds in register r the pair of row
// g + 8 (r & 1) at columns 2q + 8 (r >> 1); B the pair of rows 2q + 8 r of column g; C in element r
// row g + 8 (r >> 1), column 2q + (r & 1). So two column tiles of C are, rounded in pairs, one A.
// ldmatrix x4 takes row i % 8 of 8x8 matrix i / 8 from lane i; rows that are the n of B come plain,
// rows that are its k transposed.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionTiles.h"
#include "llvm/ADT/STLExtras.h"
#include <bit>
#include <cmath>
#include <numbers>

using namespace mlir;

namespace descent {

AttentionTiles::AttentionTiles(gpu::GPUFuncOp function, Value shared, const AttentionForm &form,
                               const AttentionCut &cut)
    : WarpOps(function, form.narrow), form(form), cut(cut), padded(paddedDepth(form)),
      tileBytes(cut.columns * padded * 2), blockRows(cut.blockRows()), depthSteps(padded / 16),
      shared(shared) {
  swizzleBits = std::min(3, std::countr_zero(static_cast<uint64_t>(padded / 8)));
  thread = threadIndex();
  lane = bitAnd(thread, 31);
  warp = shr(thread, 5);
  laneRow = shr(lane, 2);
  laneColumn = bitAnd(lane, 3);
  warpRow = mul(warp, 16 * cut.rowTiles);
  scoreScale = constant(std::numbers::log2e / std::sqrt(double(form.depth)));

  // Tiles of a head are neighbours, so that its rows stay in the second-level cache.
  int64_t tiles = llvm::divideCeil(form.length, blockRows);
  Word block = form.batch * form.heads * tiles == 1 ? Word(0) : blockIndex();
  batchHead = div(block, tiles);
  blockTile = tiles == 1 ? Word(0) : rem(block, tiles);
  batchRow = mulWide(widen(div(batchHead, form.heads)), form.length);
  headOffset =
      form.heads == 1 ? Word(0) : mulWide(widen(rem(batchHead, form.heads)), 2 * form.depth);

  copyRow = shr(thread, swizzleBits);
  copyChunk = bitAnd(thread, (1 << swizzleBits) - 1);
  copyPlace = at(shared, add(mul(copyRow, 2 * padded), shl(swizzled(copyChunk, copyRow), 4)));

  Word row = bitAnd(lane, 7), low = bitAnd(shr(lane, 3), 1), high = shr(lane, 4);
  auto places = [&](Word rowMatrix, Word chunk) {
    Word first = add(mul(add(shl(rowMatrix, 3), row), 2 * padded), shl(swizzled(chunk, row), 4));
    SmallVector<Word> list;
    // A step is two chunks on: a change of bits that the first place has, as it is even, at zero.
    for (int64_t step = 0; step < 1 << (swizzleBits - 1); ++step)
      list.push_back(bitXor(first, 32 * step));
    return list;
  };
  placesA = places(low, high);
  placesB = places(high, low);
}

Word AttentionTiles::swizzled(Word chunk, Word row) {
  return bitXor(chunk, bitAnd(shr(row, 3 - swizzleBits), (1 << swizzleBits) - 1));
}

HeadRows AttentionTiles::rows(Value pointer, const AttentionOperand &operand) {
  return {at(pointer, 2 * operand.offset), 2 * operand.rowStride,
          form.depth % 8 == 0 && operand.rowStride % 8 == 0 && operand.offset % 8 == 0};
}

Word AttentionTiles::copyStart(int64_t rowBytes, Word row) {
  Word head = addWide(mulWide(batchRow, rowBytes), headOffset);
  Word own = addWide(widen(shl(copyChunk, 4)), mulWide(widen(copyRow), rowBytes));
  return addWide(addWide(head, own), mulWide(widen(row), rowBytes));
}

Value AttentionTiles::exists(Word row, int64_t count) {
  return form.length % count == 0 ? Value() : less(row, form.length);
}

/// Whether column 8 * (chunk + column) is one of the head's, for chunk < 2^s; null if certain.
Value AttentionTiles::chunkExists(Word chunk, int64_t column) {
  int64_t valid = llvm::divideCeil(form.depth, 8) - column;
  return valid >= 1 << swizzleBits ? Value() : less(chunk, valid);
}

void AttentionTiles::copyRows(Word place, int64_t count, Word row, const HeadRows &source,
                              Word start) {
  int64_t width = 1 << swizzleBits, pass = attentionThreads / width;
  Value to = at(copyPlace, place), from = atWide(source.base, start);
  when(count < pass ? less(thread, count * width) : Value(), [&] {
    for (int64_t i = 0; i < count; i += pass) {
      Value rowExists = exists(add(add(copyRow, i), row), count);
      for (int64_t column = 0; column < padded / 8; column += width) {
        Value target = at(to, i * 2 * padded + 16 * column);
        int64_t advance = i * source.rowBytes + 16 * column;
        if (!source.vectors) {
          copyByElements(target, source, start, advance, column, rowExists);
          continue;
        }
        Value ok = both(rowExists, chunkExists(copyChunk, column));
        copyAsync(target, at(from, advance), 16, ok ? value(choose(ok, 16, 0)) : Value());
      }
    }
  });
}

/// For rows at any place: each number by itself. What does not exist is read from the buffer's
/// start, so that no lane leaves the others.
void AttentionTiles::copyByElements(Value place, const HeadRows &source, Word start,
                                    int64_t advance, int64_t column, Value rowExists) {
  Value words = LLVM::UndefOp::create(builder, loc, VectorType::get({4}, i32));
  Value halves[2];
  for (int64_t e = 0; e < 8; ++e) {
    Word behind = sub(form.depth - 8 * column - e, shl(copyChunk, 3));
    Value ok = both(rowExists, less(0, behind));
    Value offset = select(ok, wideValue(addWide(start, advance + 2 * e)), integer(0, i64));
    Value bits = load(atWide(source.base, offset), i16, 2);
    bits = arith::ExtUIOp::create(builder, loc, i32, bits);
    halves[e % 2] = select(ok, bits, integer(0, i32));
    if (e % 2 == 0)
      continue;
    Value word = arith::OrIOp::create(builder, loc, halves[0], value(shl(halves[1], 16)));
    words = LLVM::InsertElementOp::create(builder, loc, words, word, integer(e / 2, i32));
  }
  store(words, place, 16);
}

Value AttentionTiles::statistic(Value pointer, const AttentionOperand &operand, Word row) {
  Word index = addWide(mulWide(widen(batchHead), operand.rowStride), widen(row));
  return atWide(pointer, mulWide(addWide(index, operand.offset), 4));
}

AttentionTiles::Accumulators AttentionTiles::zeros(int64_t columnTiles) {
  return Accumulators(cut.rowTiles, SmallVector<Values>(columnTiles, Values(4, constant(0))));
}

Values AttentionTiles::flatten(const Accumulators &sums) {
  Values all;
  for (const auto &row : sums)
    for (const Values &tile : row)
      llvm::append_range(all, tile);
  return all;
}

AttentionTiles::Accumulators AttentionTiles::restore(ValueRange values, int64_t columnTiles) {
  Accumulators sums = zeros(columnTiles);
  size_t next = 0;
  for (auto &row : sums)
    for (Values &tile : row)
      for (Value &sum : tile)
        sum = values[next++];
  return sums;
}

Value AttentionTiles::warpRows(Word place) {
  return at(at(shared, place), mul(warpRow, 2 * padded));
}

/// 16 rows from `row` on by the 16 columns of a step.
Values AttentionTiles::fragment(Value base, ArrayRef<Word> places, int64_t row, int64_t step,
                                bool transposed) {
  int64_t inGroup = step % places.size(), group = step / places.size();
  Value address = at(base, places[inGroup]);
  return loadMatrices(at(address, row * 2 * padded + (group << (swizzleBits + 4))), transposed);
}

AttentionTiles::Fragments AttentionTiles::ownFragments(Value base, int64_t step) {
  Fragments list;
  for (int64_t m = 0; m < cut.rowTiles; ++m)
    list.push_back(fragment(base, placesA, 16 * m, step, false));
  return list;
}

void AttentionTiles::multiplyByRows(FragmentSource own, Value tile, Accumulators &sums) {
  for (int64_t step = 0; step < depthSteps; ++step) {
    Fragments a = own(step);
    for (int64_t n = 0; n < cut.columns / 8; n += 2) {
      Values b = fragment(tile, placesB, 8 * n, step, false);
      for (int64_t m = 0; m < cut.rowTiles; ++m)
        for (int64_t k = 0; k < 2; ++k)
          sums[m][n + k] = multiply(a[m], ArrayRef(b).slice(2 * k, 2), sums[m][n + k]);
    }
  }
}

void AttentionTiles::multiplyByColumns(const SmallVector<Fragments> &weights, Value tile,
                                       Accumulators &sums) {
  for (int64_t t = 0; t < cut.columns / 16; ++t)
    for (int64_t step = 0; step < depthSteps; ++step) {
      Values b = fragment(tile, placesA, 16 * t, step, true);
      for (int64_t m = 0; m < cut.rowTiles; ++m)
        for (int64_t k = 0; k < 2; ++k)
          sums[m][2 * step + k] =
              multiply(weights[m][t], ArrayRef(b).slice(2 * k, 2), sums[m][2 * step + k]);
    }
}

AttentionTiles::Fragments AttentionTiles::asFragments(const SmallVector<Values> &sums) {
  Fragments list;
  for (size_t t = 0; t < sums.size(); t += 2) {
    Values parts;
    for (size_t u = 0; u < 2; ++u)
      for (size_t half = 0; half < 2; ++half)
        parts.push_back(pack(sums[t + u][2 * half], sums[t + u][2 * half + 1]));
    list.push_back(parts);
  }
  return list;
}

Word AttentionTiles::accumulatorRow(int64_t m, int64_t half) {
  return add(warpRow, add(laneRow, 16 * m + 8 * half));
}

void AttentionTiles::once(Word row, int64_t rowsOfBlock, llvm::function_ref<void()> then) {
  when(both(compare(arith::CmpIPredicate::eq, laneColumn, 0), exists(row, rowsOfBlock)), then);
}

void AttentionTiles::storeRows(const Accumulators &sums, ValueRange scale, const HeadRows &target,
                               Word row) {
  int64_t width = 1 << swizzleBits, rowsOfPass = 32 / width, bytes = 2 * padded;
  Value own = warpRows(0);
  Word lanePlace = add(mul(laneRow, bytes), shl(laneColumn, 2));
  Word swizzle = shl(swizzled(0, laneRow), 4);
  warpBarrier();
  for (int64_t m = 0; m < cut.rowTiles; ++m)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t n = 0; n < padded / 8; ++n) {
        Value low = sums[m][n][2 * half], high = sums[m][n][2 * half + 1];
        if (!scale.empty())
          low = mulf(low, scale[2 * m + half]), high = mulf(high, scale[2 * m + half]);
        Word place = add(lanePlace, bitXor(swizzle, 16 * (n % width)));
        place = add(place, (16 * m + 8 * half) * bytes + 16 * (n / width * width));
        store(pack(low, high), at(own, place), 4);
      }
  warpBarrier();
  Word chunk = bitAnd(lane, width - 1);
  Word head =
      addWide(mulWide(batchRow, target.rowBytes), addWide(headOffset, widen(shl(chunk, 4))));
  for (int64_t i = 0; i < 16 * cut.rowTiles; i += rowsOfPass) {
    Word inWarp = add(shr(lane, swizzleBits), i);
    Word number = add(add(row, warpRow), inWarp);
    Word offset = addWide(head, mulWide(widen(number), target.rowBytes));
    Word place = add(mul(inWarp, bytes), shl(swizzled(chunk, inWarp), 4));
    for (int64_t column = 0; column < padded / 8; column += width) {
      Value numbers = load(at(own, add(place, 16 * column)), VectorType::get({4}, i32), 16);
      when(exists(number, blockRows), [&] { storeChunk(numbers, target, offset, chunk, column); });
    }
  }
}

/// Stores chunk `chunkNumber` + `column` of a row, as far as it is the head's.
void AttentionTiles::storeChunk(Value chunk, const HeadRows &target, Word offset, Word chunkNumber,
                                int64_t column) {
  Value to = at(atWide(target.base, offset), 16 * column);
  if (target.vectors)
    return when(chunkExists(chunkNumber, column), [&] { store(chunk, to, 16); });
  for (int64_t e = 0; e < 8; ++e) {
    Word behind = sub(form.depth - 8 * column - e, shl(chunkNumber, 3));
    when(less(0, behind), [&] {
      Value word = element(chunk, e / 2);
      Value bits = arith::TruncIOp::create(builder, loc, i16, value(shr(word, e % 2 * 16)));
      store(bits, at(to, 2 * e), 2);
    });
  }
}

} // namespace descent
