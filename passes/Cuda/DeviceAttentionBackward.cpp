//===- DeviceAttentionBackward.cpp - Gradient of attention on the tensor cores ===//
//
// Two functions, each of which owns what it writes: no atomics, and the same bits in every run.
//   Queries  a block owns queries and walks the keys: delta = rowsum(dO * O);
//            P = 2^(S - L), dS = P (dO V^T - delta), dQ += dS K
//   Keys     a block owns keys and walks the queries from the diagonal on:
//            S^T = K Q^T, dV += P^T dO, dS^T = P^T (V dO^T - delta), dK += dS^T Q
// Both compute the probabilities again from the logsumexp L (Dao, FlashAttention-2, 2023), so seven
// products stand where five would do with sums of dQ shared between blocks. They are the same code
// with roles exchanged: own rows A1, A2 and walked tiles B1, B2 are Q, dO, K, V or K, V, Q, dO. By
// walking queries the transposes that dK and dV need are what the accumulators hold already.
//
// Rows behind the end are zero in shared memory. As queries (Keys) they contribute nothing: their
// dO is 0. As keys (Queries) their probability is 2^-L, which may be infinite, so it is cut off.
// L and delta of walked queries are copied beside their tile.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionKernels.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace descent {

namespace {

/// Places in shared memory: two stages (B1, B2 and the statistics of their rows), own rows, and O.
struct Places {
  int64_t tile, stage, own1, own2, output, bytes;

  Places(const AttentionForm &form, GradientPart part, const AttentionCut &cut) {
    int64_t row = 2 * paddedDepth(form), own = cut.blockRows() * row;
    tile = cut.columns * row;
    stage = 2 * tile + (part == GradientPart::Keys ? 8 * cut.columns : 0);
    own1 = 2 * stage;
    own2 = own1 + own;
    bytes = own2 + own;
    // O is wanted before the second stage is.
    output = stage;
    if (part == GradientPart::Queries && own > stage)
      output = bytes, bytes += own;
  }
};

class GradientKernel : AttentionTiles {
public:
  GradientKernel(gpu::GPUFuncOp function, const AttentionForm &form, GradientPart part,
                 const AttentionPointers &pointers, Value shared, const AttentionCut &cut)
      : AttentionTiles(function, shared, form, cut), keys(part == GradientPart::Keys),
        pointers(pointers), places(form, part, cut) {
    HeadRows q = rows(pointers.q, form.q), k = rows(pointers.k, form.k),
             v = rows(pointers.v, form.v), dout = rows(pointers.dout, form.dout);
    own1 = keys ? k : q, own2 = keys ? v : dout;
    walked1 = keys ? q : k, walked2 = keys ? dout : v;
    // Gradients in the order of A1's and A2's: dq, or dk and dv.
    first = keys ? form.dk.has_value() : form.dq.has_value();
    second = keys && form.dv.has_value();
  }

  void emit() {
    int64_t length = form.length, columns = cut.columns, tiles = llvm::divideCeil(length, columns);
    bool reverse = form.causal && !keys; // Blocks with most work come first.
    Word block = reverse ? sub(llvm::divideCeil(length, blockRows) - 1, blockTile) : blockTile;
    row = mul(block, blockRows);
    // Tiles [from, middle) and [middle, end), of which one part needs the mask.
    Word from = 0, middle = length / columns;
    end = tiles;
    Word behind = div(add(row, blockRows + columns - 1), columns);
    if (keys) {
      from = middle = form.causal ? div(row, columns) : Word(0);
      if (form.causal)
        middle = min(behind, tiles);
    } else if (form.causal) {
      end = min(behind, tiles);
      middle = min(middle, div(row, columns));
    }
    if (!keys && !first)
      end = middle = 0; // Only delta is wanted.

    copyRows(places.own1, blockRows, row, own1, copyStart(own1.rowBytes, row));
    copyRows(places.own2, blockRows, row, own2, copyStart(own2.rowBytes, row));
    if (!keys) {
      HeadRows o = rows(pointers.o, *form.o);
      copyRows(places.output, blockRows, row, o, copyStart(o.rowBytes, row));
    }
    Word start = mul(from, columns);
    Word offset1 = copyStart(walked1.rowBytes, start), offset2 = copyStart(walked2.rowBytes, start);
    sharedOffsets = walked1.rowBytes == walked2.rowBytes;
    if (first || second)
      copyTile(0, from, offset1, offset2);
    commitCopies();
    awaitCopies();
    barrier();
    own1Base = warpRows(places.own1), own2Base = warpRows(places.own2);
    if (!cut.reread)
      for (int64_t step = 0; step < depthSteps; ++step) {
        kept1.push_back(ownFragments(own1Base, step));
        kept2.push_back(ownFragments(own2Base, step));
      }
    if (!keys)
      emitDelta();

    Values state(sumCount() * (first + second), constant(0));
    state.push_back(wideValue(offset1));
    if (!sharedOffsets)
      state.push_back(wideValue(offset2));
    state.push_back(value(0)); // the stage
    for (bool later : {false, true}) {
      bool masked = keys ? !later && form.causal : later;
      state = loop(later ? middle : from, later ? end : middle, 1, state,
                   [&](Word j, ValueRange carried) { return emitTile(j, carried, masked); });
    }
    barrier(); // Results pass through shared memory that other warps may still read.
    Values scale(2 * cut.rowTiles, constant(1 / std::sqrt(double(form.depth))));
    ValueRange sums = state;
    if (first) {
      HeadRows target = keys ? rows(pointers.dk, *form.dk) : rows(pointers.dq, *form.dq);
      storeRows(restore(sums, padded / 8), scale, target, row);
      sums = sums.drop_front(sumCount());
    }
    if (second)
      storeRows(restore(sums, padded / 8), {}, rows(pointers.dv, *form.dv), row);
  }

private:
  const bool keys;
  const AttentionPointers &pointers;
  const Places places;
  HeadRows own1, own2, walked1, walked2;
  bool first, second;    ///< which gradients are wanted
  Word row = 0, end = 0; ///< of the block; tile behind the last
  Value own1Base, own2Base;
  SmallVector<Fragments> kept1, kept2; ///< of the own rows, by step
  Values negativeLogs, deltas;         ///< of the own rows, where they are queries
  bool sharedOffsets = false;

  int64_t sumCount() const { return cut.rowTiles * (padded / 8) * 4; }

  AttentionOperand deltaOperand() const { return {0, 0, form.length}; }

  /// Tile j to the stage at `stage`.
  void copyTile(Word stage, Word j, Word offset1, Word offset2) {
    Word start = mul(j, cut.columns);
    copyRows(stage, cut.columns, start, walked1, offset1);
    copyRows(add(stage, places.tile), cut.columns, start, walked2, offset2);
    if (!keys)
      return;
    // The first threads copy L, the next ones delta.
    int64_t count = cut.columns;
    Value isLog = less(thread, count);
    Word number = add(first ? choose(isLog, thread, sub(thread, count)) : thread, start);
    Value ok = exists(number, count);
    if (ok)
      number = min(number, form.length - 1);
    Value from = statistic(pointers.logsumexp, *form.logsumexp, number);
    if (first)
      from = select(isLog, from, statistic(pointers.delta, deltaOperand(), number));
    Value bytes = ok ? value(choose(ok, 4, 0)) : value(4);
    Value to = at(at(shared, stage), add(shl(thread, 2), 2 * places.tile));
    when(less(thread, first ? 2 * count : count), [&] { copyAsync(to, from, 4, bytes); });
  }

  /// delta of the own queries, and their logsumexp.
  void emitDelta() {
    Value outputs = warpRows(places.output);
    deltas.assign(2 * cut.rowTiles, Value());
    for (int64_t step = 0; step < depthSteps; ++step) {
      Fragments gradients = cut.reread ? ownFragments(own2Base, step) : kept2[step];
      Fragments values = ownFragments(outputs, step);
      for (int64_t m = 0; m < cut.rowTiles; ++m)
        for (int64_t part = 0; part < 4; ++part) {
          Value &delta = deltas[2 * m + part % 2];
          auto [g0, g1] = unpack(gradients[m][part]);
          auto [v0, v1] = unpack(values[m][part]);
          delta = delta ? fma(g0, v0, delta) : mulf(g0, v0);
          delta = fma(g1, v1, delta);
        }
    }
    for (int64_t i = 0; i < 2 * cut.rowTiles; ++i) {
      Word number = add(row, accumulatorRow(i / 2, i % 2));
      deltas[i] = acrossLanes(deltas[i], 4, [&](Value a, Value b) { return addf(a, b); });
      if (pointers.delta)
        once(number, blockRows,
             [&] { store(deltas[i], statistic(pointers.delta, deltaOperand(), number), 4); });
      if (!first)
        continue;
      if (form.length % blockRows)
        number = min(number, form.length - 1);
      Value log = load(statistic(pointers.logsumexp, *form.logsumexp, number), f32, 4);
      negativeLogs.push_back(mulf(log, constant(-std::numbers::log2e)));
    }
  }

  Values emitTile(Word j, ValueRange carried, bool masked) {
    ValueRange rest = carried.drop_front(sumCount() * (first + second));
    Value stage = rest.back();
    awaitCopies();
    barrier();
    Values offsets;
    for (auto [offset, rowBytes] :
         llvm::zip(rest.drop_back(), std::array{walked1.rowBytes, walked2.rowBytes}))
      offsets.push_back(wideValue(addWide(offset, cut.columns * rowBytes)));
    Word after = add(j, 1);
    Word next = bitXor(stage, places.stage);
    when(less(after, end), [&] {
      copyTile(next, after, offsets.front(), offsets.back());
      commitCopies();
    });

    Value tile1 = at(shared, stage), tile2 = at(tile1, places.tile);
    Value statistics = keys ? at(tile1, add(shl(laneColumn, 3), 2 * places.tile)) : Value();
    Accumulators scores = zeros(cut.columns / 8), slopes = zeros(cut.columns / 8);
    auto own = [&](Value base, const SmallVector<Fragments> &kept) {
      return [this, base, &kept](int64_t step) {
        return cut.reread ? ownFragments(base, step) : kept[step];
      };
    };
    auto fragments = [&](const Accumulators &sums) {
      SmallVector<Fragments> list;
      for (const auto &sum : sums)
        list.push_back(asFragments(sum));
      return list;
    };
    Accumulators sums1, sums2;
    ValueRange sums = carried;
    if (first) {
      sums1 = restore(sums, padded / 8);
      sums = sums.drop_front(sumCount());
    }
    if (second)
      sums2 = restore(sums, padded / 8);
    multiplyByRows(own(own1Base, kept1), tile1, scores);
    emitProbabilities(j, scores, statistics, masked);
    if (second)
      multiplyByColumns(fragments(scores), tile2, sums2);
    if (first) {
      multiplyByRows(own(own2Base, kept2), tile2, slopes);
      emitSlopes(scores, slopes, statistics);
      multiplyByColumns(fragments(slopes), tile1, sums1);
    }
    Values results;
    if (first)
      results = flatten(sums1);
    if (second)
      llvm::append_range(results, flatten(sums2));
    llvm::append_range(results, offsets);
    results.push_back(value(next));
    return results;
  }

  /// Two neighbouring columns' statistics, of column tile n.
  std::pair<Value, Value> columnPair(Value statistics, int64_t n, int64_t offset) {
    Value pair = load(at(statistics, 32 * n + offset),
                      LLVM::LLVMStructType::getLiteral(builder.getContext(), {f32, f32}), 8);
    return {element(pair, 0), element(pair, 1)};
  }

  void emitProbabilities(Word j, Accumulators &scores, Value statistics, bool masked) {
    Word column = add(mul(j, cut.columns), shl(laneColumn, 1));
    for (int64_t n = 0; n < cut.columns / 8; ++n) {
      Values logs;
      if (keys) {
        auto [log0, log1] = columnPair(statistics, n, 0);
        for (Value log : {log0, log1})
          logs.push_back(mulf(log, constant(-std::numbers::log2e)));
      }
      for (int64_t m = 0; m < cut.rowTiles; ++m)
        for (int64_t i = 0; i < 4; ++i) {
          Value log = keys ? logs[i % 2] : negativeLogs[2 * m + i / 2];
          Value weight = power2(fma(scores[m][n][i], scoreScale, log));
          if (masked) {
            Word number = add(row, accumulatorRow(m, i / 2)), last = form.length - 1;
            if (form.causal && !keys)
              last = min(number, last);
            int64_t behind = 8 * n + i % 2;
            // Walking queries, those before the key do not see it; walking keys, those behind.
            Value hidden =
                keys ? less(behind, sub(number, column)) : less(sub(last, column), behind);
            weight = select(hidden, constant(0), weight);
          }
          scores[m][n][i] = weight;
        }
    }
  }

  /// dS in place of `slopes`, which hold dP.
  void emitSlopes(const Accumulators &weights, Accumulators &slopes, Value statistics) {
    for (int64_t n = 0; n < cut.columns / 8; ++n) {
      Values columnDeltas;
      if (keys) {
        auto [delta0, delta1] = columnPair(statistics, n, 4 * cut.columns);
        columnDeltas = {delta0, delta1};
      }
      for (int64_t m = 0; m < cut.rowTiles; ++m)
        for (int64_t i = 0; i < 4; ++i) {
          Value delta = keys ? columnDeltas[i % 2] : deltas[2 * m + i / 2];
          slopes[m][n][i] = mulf(weights[m][n][i], subf(slopes[m][n][i], delta));
        }
    }
  }
};

} // namespace

int64_t tensorAttentionGradShared(const AttentionForm &form, GradientPart part,
                                  const AttentionCut &cut) {
  return Places(form, part, cut).bytes;
}

void emitTensorAttentionGrad(gpu::GPUFuncOp function, const AttentionForm &form, GradientPart part,
                             const AttentionPointers &pointers, Value shared,
                             const AttentionCut &cut) {
  GradientKernel(function, form, part, pointers, shared, cut).emit();
}

} // namespace descent
