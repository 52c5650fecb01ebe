//===- DeviceAttentionForward.cpp - Attention on the tensor cores ---------===//
//
// Dao, FlashAttention-2, 2023: a block keeps the sums of its queries in registers and walks the
// keys. Per tile of keys
//   S = Q K^T            accumulators of mma
//   m' = max(m, rowmax S), a = 2^(m - m'), P = 2^(S - m'), l = a l + rowsum P
//   O = a O + P V        P goes from accumulators to operands within a lane
// and at the end O / l and logsumexp = (m + log2 l) ln 2. Scores are scaled by log2(e) too, so that
// the exponential is one instruction; m is carried scaled, so that a tile that leaves the maximum
// alone multiplies by exactly 1.
//
// K and V are double buffered by cp.async; one barrier a tile says both that the tile has landed
// and that all warps have left the one before, whose place the next copy takes.
//
// Causal: blocks that see most keys come first, keys behind the block's last query are not visited,
// and only tiles that touch the diagonal, or the sequence's end, compare rows with columns. A row
// always sees a key of the first tile, so no maximum stays at -inf. In a tile of the diagonal the
// keys that a row does not see get the weight 0; as in any implementation by matrix products, a
// non-finite value among them makes the row NaN: rows before that key which share the tile with it,
// at most blockRows - 1 (63, or 127 with two row tiles a warp).
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionKernels.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace descent {

int64_t tensorAttentionShared(const AttentionForm &form, const AttentionCut &cut) {
  int64_t row = 2 * paddedDepth(form);
  int64_t stages = 4 * cut.columns * row, own = cut.blockRows() * row;
  // Queries that stay in registers only pass through the second stage, if they fit there.
  return stages + (cut.reread || cut.blockRows() > 2 * cut.columns ? own : 0);
}

namespace {

class ForwardKernel : AttentionTiles {
public:
  ForwardKernel(gpu::GPUFuncOp function, const AttentionForm &form,
                const AttentionPointers &pointers, Value shared, const AttentionCut &cut)
      : AttentionTiles(function, shared, form, cut), pointers(pointers),
        q(rows(pointers.q, form.q)), k(rows(pointers.k, form.k)), v(rows(pointers.v, form.v)) {}

  void emit() {
    int64_t length = form.length, columns = cut.columns;
    Word tile = form.causal ? sub(llvm::divideCeil(length, blockRows) - 1, blockTile) : blockTile;
    first = mul(tile, blockRows);

    bool throughStage = !cut.reread && blockRows <= 2 * columns;
    int64_t own = throughStage ? 2 * tileBytes : 4 * tileBytes;
    Word keyStart = copyStart(k.rowBytes, 0), valueStart = copyStart(v.rowBytes, 0);
    copyRows(own, blockRows, first, q, copyStart(q.rowBytes, first));
    copyRows(0, columns, 0, k, keyStart);
    copyRows(tileBytes, columns, 0, v, valueStart);
    commitCopies();
    awaitCopies();
    barrier();
    queries = warpRows(own);
    if (!cut.reread)
      for (int64_t step = 0; step < depthSteps; ++step)
        kept.push_back(ownFragments(queries, step));

    end = llvm::divideCeil(length, columns);
    Word whole = length / columns;
    if (form.causal) {
      end = min(end, div(add(first, blockRows + columns - 1), columns));
      whole = min(whole, div(first, columns));
    }
    sharedOffsets = k.rowBytes == v.rowBytes;
    Values state(sumCount(), constant(0));
    state.append(rowCount(), constant(-INFINITY)); // maxima
    state.append(rowCount(), constant(0));         // sums
    state.push_back(wideValue(keyStart));
    if (!sharedOffsets)
      state.push_back(wideValue(valueStart));
    state.push_back(value(0)); // the stage
    for (bool masked : {false, true})
      state = loop(masked ? whole : 0, masked ? end : whole, 1, state,
                   [&](Word j, ValueRange carried) { return emitTile(j, carried, masked); });
    emitResults(state);
  }

private:
  const AttentionPointers &pointers;
  HeadRows q, k, v;
  Word first = 0, end = 0; ///< query of the block; tile behind the last
  Value queries;
  SmallVector<Fragments> kept; ///< of the queries, by step
  bool sharedOffsets = false;

  int64_t sumCount() const { return cut.rowTiles * (padded / 8) * 4; }
  int64_t rowCount() const { return 2 * cut.rowTiles; }

  /// Whether a warp leaves out the arithmetic of a tile in which none of its rows sees a key.
  /// Elsewhere the branch costs the registers that are left.
  bool skips() const { return form.causal && cut.rowTiles == 2 && padded <= 64; }

  Values emitTile(Word j, ValueRange carried, bool masked) {
    ValueRange sums = carried.take_front(sumCount() + 2 * rowCount());
    ValueRange rest = carried.drop_front(sums.size());
    Value stage = rest.back();
    awaitCopies();
    barrier();
    Values offsets;
    for (auto [offset, rowBytes] : llvm::zip(rest.drop_back(), std::array{k.rowBytes, v.rowBytes}))
      offsets.push_back(wideValue(addWide(offset, cut.columns * rowBytes)));
    Word after = add(j, 1), next = bitXor(stage, 2 * tileBytes);
    when(less(after, end), [&] {
      Word row = mul(after, cut.columns);
      copyRows(next, cut.columns, row, k, offsets.front());
      copyRows(add(next, tileBytes), cut.columns, row, v, offsets.back());
      commitCopies();
    });
    Values results;
    if (masked && skips()) {
      Word last = add(first, add(warpRow, 16 * cut.rowTiles - 1));
      Value sees = compare(arith::CmpIPredicate::sle, mul(j, cut.columns), last);
      results = whenElse(sees, sums, [&] { return emitSums(j, stage, sums, masked); });
    } else {
      results = emitSums(j, stage, sums, masked);
    }
    llvm::append_range(results, offsets);
    results.push_back(value(next));
    return results;
  }

  Values emitSums(Word j, Word stage, ValueRange state, bool masked) {
    Accumulators sums = restore(state, padded / 8), scores = zeros(cut.columns / 8);
    Values maxima(state.slice(sumCount(), rowCount())), totals(state.take_back(rowCount()));
    Value tile = at(shared, stage);
    multiplyByRows(
        [&](int64_t step) { return cut.reread ? ownFragments(queries, step) : kept[step]; }, tile,
        scores);
    SmallVector<Fragments> weights;
    for (int64_t m = 0; m < cut.rowTiles; ++m) {
      for (int64_t half = 0; half < 2; ++half)
        emitSoftmax(j, m, half, scores[m], sums[m], maxima[2 * m + half], totals[2 * m + half],
                    masked);
      weights.push_back(asFragments(scores[m]));
    }
    multiplyByColumns(weights, at(tile, tileBytes), sums);
    Values results = flatten(sums);
    llvm::append_range(results, maxima);
    llvm::append_range(results, totals);
    return results;
  }

  /// Scores of one row of this lane become weights; what the row has so far is brought to the new
  /// maximum.
  void emitSoftmax(Word j, int64_t m, int64_t half, SmallVector<Values> &scores,
                   SmallVector<Values> &sums, Value &maximum, Value &total, bool masked) {
    SmallVector<Value *> row;
    for (Values &tile : scores)
      row.append({&tile[2 * half], &tile[2 * half + 1]});
    if (masked) {
      Word last = form.length - 1;
      if (form.causal)
        last = min(add(first, accumulatorRow(m, half)), last);
      Word lastColumn = sub(last, add(mul(j, cut.columns), shl(laneColumn, 1)));
      for (auto [i, score] : llvm::enumerate(row)) {
        Value hidden = less(lastColumn, int64_t(i) / 2 * 8 + int64_t(i) % 2);
        *score = select(hidden, constant(-INFINITY), *score);
      }
    }
    Value largest = *row.front();
    for (Value *score : ArrayRef(row).drop_front())
      largest = larger(largest, *score);
    largest = acrossLanes(largest, 4, [&](Value a, Value b) { return larger(a, b); });
    Value next = larger(maximum, mulf(largest, scoreScale)), negative = negate(next);
    Value correction = power2(subf(maximum, next));
    maximum = next;
    Value sum;
    for (Value *score : row) {
      *score = power2(fma(*score, scoreScale, negative));
      sum = sum ? addf(sum, *score) : *score;
    }
    total = fma(total, correction, sum);
    for (Values &tile : sums)
      for (int64_t i = 0; i < 2; ++i)
        tile[2 * half + i] = mulf(tile[2 * half + i], correction);
  }

  void emitResults(ValueRange state) {
    barrier(); // Results pass through shared memory that other warps may still read.
    Values scale;
    for (int64_t i = 0; i < rowCount(); ++i) {
      Value total = acrossLanes(state[sumCount() + rowCount() + i], 4,
                                [&](Value a, Value b) { return addf(a, b); });
      scale.push_back(reciprocal(total));
      if (!form.logsumexp)
        continue;
      Word row = add(first, accumulatorRow(i / 2, i % 2));
      Value result = mulf(addf(state[sumCount() + i], log2(total)), constant(std::numbers::ln2));
      once(row, blockRows,
           [&] { store(result, statistic(pointers.logsumexp, *form.logsumexp, row), 4); });
    }
    storeRows(restore(state, padded / 8), scale, rows(pointers.o, *form.o), first);
  }
};

} // namespace

void emitTensorAttention(gpu::GPUFuncOp function, const AttentionForm &form,
                         const AttentionPointers &pointers, Value shared, const AttentionCut &cut) {
  ForwardKernel(function, form, pointers, shared, cut).emit();
}

} // namespace descent
