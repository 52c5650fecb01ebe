//===- Attention.cpp - Fused attention kernels for CPUs: forward ----------===//
//
// For one head: K^T is packed into panels once; then for each block of 48 queries and each block of
// 288 keys
//   S = Q K^T                               register tiles, only those that touch the visible
//   triangle m' = max(m, rowmax S), a = exp(m - m')  running maximum of the raw scores, correction
//   of what came before P = exp(scale (S - m')), l = a l + rowsum P    in place, zeros as far as a
//   tile reads O = a O + P V                           register tiles; V is read where it stands
// and at the end O / l and logsumexp = scale m + log l. S (58 KB) stays in the second-level cache,
// a row of it in the first.
//
// Subtracting the maximum before scaling, and not after, makes the argument of exp at most 0
// whatever the rounding. Keys are cut at multiples of the query block, so no query block straddles
// a cut and the first block of keys has a visible one for every query: sums are at least 1 (no mask
// other than the causal one exists, so no row is without keys).
//
// A task is one head, or for long sequences a run of its query blocks (about 384 rows; each packs
// the keys that it sees, which costs a few percent there). Cuts depend on the shape alone, so the
// bits of a row do not depend on how tasks are dealt out.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Codegen/AttentionEmitter.h"

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t queryBlock = 48; // A multiple of either tile's rows and of either vector's lanes.
constexpr int64_t keyBlock = 288;  // A multiple of the query block and of either panel.
constexpr int64_t rowsPerTask = 384; // About; a multiple of the query block.

/// Cuts and scratch, from the shape alone.
struct Plan {
  int64_t runRows, runs; ///< rows of a task, tasks of a head
  int64_t scoreStride;
  ScratchLayout layout;
  int64_t keys, scores, blockMax, rowMax, correction, rowSum; ///< places in the scratch
  int64_t values = 0, queries = 0, outputs = 0;               ///< of a narrow form, as f32

  Plan(const AttentionForm &form, const CpuTarget &target) {
    int64_t panel = target.lanes() * target.tileVectors();
    int64_t wanted = llvm::divideCeil(form.length, rowsPerTask);
    runRows = llvm::alignTo(llvm::divideCeil(form.length, wanted), queryBlock);
    runs = llvm::divideCeil(form.length, runRows);
    // An odd number of cache lines, so that the rows of a tile do not share cache sets.
    scoreStride = std::min<int64_t>(keyBlock, llvm::alignTo(form.length, panel)) + 16;
    keys = layout.take(llvm::alignTo(form.length, panel) * form.depth);
    scores = layout.take(queryBlock * scoreStride);
    for (int64_t *statistic : {&blockMax, &rowMax, &correction, &rowSum})
      *statistic = layout.take(queryBlock);
    if (!form.narrow)
      return;
    values = layout.take(form.length * stagedStride(form));
    for (int64_t *rows : {&queries, &outputs})
      *rows = layout.take(queryBlock * stagedStride(form));
  }
};

class ForwardEmitter : public AttentionEmitter {
public:
  ForwardEmitter(OpBuilder &builder, Location loc, const AttentionForm &form, const Plan &plan,
                 func::FuncOp function, ModuleOp module, const CpuTarget &target)
      : AttentionEmitter(builder, loc, form, function, module, target), plan(plan) {}

  void emit() {
    packedKeys = scratchAt(plan.keys);
    scores = {scratchAt(plan.scores), 0, plan.scoreStride};
    blockMax = scratchAt(plan.blockMax);
    rowMax = scratchAt(plan.rowMax);
    correction = scratchAt(plan.correction);
    rowSum = scratchAt(plan.rowSum);
    stagedValues = scratchAt(plan.values);
    stagedQueries = scratchAt(plan.queries);
    stagedOutputs = scratchAt(plan.outputs);
    loop(firstTask, lastTask, 1, [&](Index task) {
      batchHead = div(task, plan.runs);
      Index batch = div(batchHead, form.heads), head = rem(batchHead, form.heads);
      RowView queries = headRows(form.q, batch, head), results = headRows(*form.o, batch, head);
      Index from = mul(rem(task, plan.runs), plan.runRows);
      Index to = min(add(from, plan.runRows), form.length);
      Index keys = form.causal ? to : Index(form.length);
      packTransposed(headRows(form.k, batch, head), keys, packedKeys);
      v = widened(headRows(form.v, batch, head), 0, keys, stagedValues);
      loop(from, to, queryBlock, [&](Index q0) {
        Index count = min(sub(to, q0), queryBlock);
        q = widened(queries, q0, count, stagedQueries);
        o = form.narrow ? stagedRows(stagedOutputs, q0) : results;
        emitQueries(q0, count, results);
      });
    });
  }

private:
  const Plan &plan;
  Index batchHead = 0;
  RowView q, v, scores;
  RowView o; ///< where P V is summed
  Value packedKeys, stagedValues, stagedQueries, stagedOutputs;
  Value blockMax, rowMax, correction, rowSum; // one value a query of the block

  void emitQueries(Index q0, Index count, const RowView &results) {
    Value none = constantVector(-INFINITY), zero = constantVector(0.0);
    loop(0, queryBlock, lanes, [&](Index row) {
      storeVector(zero, blockMax,
                  row); // Rows beyond the block's are computed with too, so they must be defined.
      storeVector(none, rowMax, row);
      storeVector(zero, rowSum, row);
    });
    Index end = form.causal ? add(q0, count) : Index(form.length);
    loop(0, end, keyBlock,
         [&](Index k0) { emitBlock(q0, count, k0, min(sub(end, k0), keyBlock)); });
    emitFinish(q0, count, results);
  }

  /// Keys [k0, k0 + keys) of the block that the row sees.
  Index visible(Index q0, Index row, Index k0, Index keys) {
    return form.causal ? min(add(sub(add(q0, row), k0), 1), keys) : keys;
  }

  void emitBlock(Index q0, Index count, Index k0, Index keys) {
    loop(0, keys, panel, [&](Index column) {
      rowTiles(count, queryBlock, [&](Index row, int rows) {
        auto tile = [&] {
          scoreTile(rows, q, add(q0, row), packedKeys, panelOf(add(k0, column)), rowsOfBlock(q0),
                    column);
        };
        if (form.causal)
          when(less(column, add(sub(add(q0, row), k0), rows)), tile);
        else
          tile();
      });
    });
    loop(0, count, 1, [&](Index row) { emitMaximum(row, visible(q0, row, k0, keys)); });
    loop(0, count, lanes, [&](Index row) {
      Value before = vectorAt(rowMax, row);
      Value after = atLeast(vectorAt(blockMax, row), before);
      storeVector(after, rowMax, row);
      storeVector(exponential(subf(before, after)), correction, row);
    });
    Value later = less(0, k0);
    when(later, [&] {
      loop(0, count, 1, [&](Index row) {
        Value factor = splat(load(correction, row));
        scaleRow(add(q0, row), factor, o);
      });
    });
    loop(0, count, 1, [&](Index row) {
      // The tile that holds this row reads as many columns as its last row sees.
      Index last = sub(min(roundDown(add(row, target.tileRows()), target.tileRows()), count), 1);
      emitExponentials(row, visible(q0, row, k0, keys), visible(q0, last, k0, keys));
    });
    rowTiles(count, queryBlock, [&](Index row, int rows) {
      productTiles(rows, TileA::Rows, scores.buffer, mul(row, scores.stride), scores.stride, v, k0,
                   o, add(q0, row), visible(q0, add(row, rows - 1), k0, keys), later);
    });
  }

  /// The scores' rows under the numbers of the sequence.
  RowView rowsOfBlock(Index q0) {
    RowView view = scores;
    view.start = sub(0, mul(q0, scores.stride));
    return view;
  }

  /// A row of `o` times the factor, to `target`.
  void scaleRow(Index row, Value factor, const RowView &target) {
    Index from = add(o.start, mul(row, o.stride)), to = add(target.start, mul(row, target.stride));
    depthVectors([&](Index column, Value mask) {
      storePart(mulf(loadPart(o.buffer, add(from, column), mask), factor), target.buffer,
                add(to, column), mask);
    });
  }

  /// Largest of the visible scores; NaN is ignored, it comes out of the exponentials.
  void emitMaximum(Index row, Index visible) {
    Index start = mul(row, scores.stride);
    Value none = constantVector(-INFINITY);
    auto scoresAt = [&](Index column) { return vectorAt(scores.buffer, add(start, column)); };
    // Four chains hide the latency of the comparison.
    Index by4 = roundDown(visible, 4 * lanes), by1 = roundDown(visible, lanes);
    SmallVector<Value> best =
        loop(0, by4, 4 * lanes, SmallVector<Value>(4, none), [&](Index column, ValueRange best) {
          SmallVector<Value> next;
          for (int i = 0; i < 4; ++i)
            next.push_back(atLeast(best[i], scoresAt(add(column, i * lanes))));
          return next;
        });
    best = {atLeast(atLeast(best[0], best[1]), atLeast(best[2], best[3]))};
    best = loop(by4, by1, lanes, best, [&](Index column, ValueRange best) {
      return SmallVector<Value>{atLeast(best[0], scoresAt(column))};
    });
    best = loop(by1, visible, lanes, best, [&](Index column, ValueRange best) {
      Value seen = choose(mask(sub(visible, column)), scoresAt(column), none);
      return SmallVector<Value>{atLeast(best[0], seen)};
    });
    store(vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXNUMF, best[0]),
          blockMax, row);
  }

  /// P over the scores of one row, with zeros from `visible` to `read`, and its part of the row's
  /// sum.
  void emitExponentials(Index row, Index visible, Index read) {
    Index start = mul(row, scores.stride);
    Value largest = splat(load(rowMax, row)), zero = constantVector(0.0);
    auto weight = [&](Index column) {
      return exponential(subf(vectorAt(scores.buffer, add(start, column)), largest));
    };
    auto put = [&](Value weights, Index column) {
      storeVector(weights, scores.buffer, add(start, column));
    };
    Index by2 = roundDown(visible, 2 * lanes), by1 = roundDown(visible, lanes),
          end = roundUp(visible, lanes);
    SmallVector<Value> sums =
        loop(0, by2, 2 * lanes, {zero, zero}, [&](Index column, ValueRange sums) {
          Value first = weight(column), second = weight(add(column, lanes));
          put(first, column);
          put(second, add(column, lanes));
          return SmallVector<Value>{addf(sums[0], first), addf(sums[1], second)};
        });
    sums = {addf(sums[0], sums[1])};
    sums = loop(by2, by1, lanes, sums, [&](Index column, ValueRange sums) {
      Value weights = weight(column);
      put(weights, column);
      return SmallVector<Value>{addf(sums[0], weights)};
    });
    sums = loop(by1, visible, lanes, sums, [&](Index column, ValueRange sums) {
      Value weights = choose(mask(sub(visible, column)), weight(column), zero);
      put(weights, column);
      return SmallVector<Value>{addf(sums[0], weights)};
    });
    if (form.causal)
      loop(end, read, lanes, [&](Index column) { put(zero, column); });
    Value before = arith::MulFOp::create(builder, loc, load(rowSum, row), load(correction, row));
    store(arith::AddFOp::create(builder, loc, before, sum(sums[0])), rowSum, row);
  }

  void emitFinish(Index q0, Index count, const RowView &results) {
    Value one = constantVector(1.0), scaling = constantVector(scale());
    loop(0, count, lanes, [&](Index row) {
      Value total = vectorAt(rowSum, row);
      storeVector(arith::DivFOp::create(builder, loc, one, total), correction, row);
      if (form.logsumexp) {
        Value logarithm = math::LogOp::create(builder, loc, total);
        storeVector(fma(vectorAt(rowMax, row), scaling, logarithm), rowMax, row);
      }
    });
    loop(0, count, 1, [&](Index row) {
      scaleRow(add(q0, row), splat(load(correction, row)), results);
      if (form.logsumexp)
        store(load(rowMax, row), buffer(form.logsumexp->buffer),
              add(mul(batchHead, form.length), add(q0, row)));
    });
  }
};

} // namespace

func::FuncOp emitAttention(const AttentionForm &form, Location loc, StringRef name, ModuleOp module,
                           const CpuTarget &target) {
  Plan plan(form, target);
  func::FuncOp function = createKernelFunction(
      module, loc, name, form.buffers, form.batch * form.heads * plan.runs, plan.layout.bytes);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
  ForwardEmitter(builder, loc, form, plan, function, module, target).emit();
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace descent
