//===- AttentionGrad.cpp - Fused attention kernels for CPUs: gradient -----===//
//
// For one head: K^T and V^T are packed into panels, delta = rowsum(dO * O); then for each block of
// 96 keys and each block of 96 queries that sees some of them
//   S = Q K^T, G = dO V^T                     register tiles, only those that touch the visible
//   triangle P = exp(scale S - logsumexp), dS = scale P (G - delta)   in place, zeros as far as a
//   tile reads dQ (+)= dS K,  dV (+)= P^T dO,  dK (+)= dS^T Q           register tiles; P^T and
//   dS^T are only strides
// The forward's scores are computed again, so nothing of size T x T is kept. S and G are 40 KB
// each; the block of dK and dV stays in the cache over the queries. The first block that adds to a
// gradient stores instead, so nothing is zeroed beforehand.
//
// The argument of exp is at most 0 in exact arithmetic; rounding of a large logsumexp could push it
// above, so it is cut there: a probability is at most 1.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/AttentionEmitter.h"
#include <cmath>

using namespace mlir;

namespace descent {

namespace {

/// Rows of a block of queries and of keys: a multiple of either tile's rows, either vector's lanes
/// and either panel.
constexpr int64_t blockRows = 96;

/// Scratch, from the shape alone.
struct Plan {
  int64_t scoreStride;
  ScratchLayout layout;
  int64_t keys, values, scores, gradients, delta; ///< places in the scratch
  /// Of a narrow form, as f32: a block each, but dq.
  int64_t q = 0, k = 0, dout = 0, dq = 0, dk = 0, dv = 0;

  Plan(const AttentionForm &form, const CpuTarget &target) {
    int64_t padded = llvm::alignTo(form.length, target.lanes() * target.tileVectors());
    // An odd number of half cache lines: columns are read too (P^T), and must not share cache sets.
    scoreStride = std::min(blockRows, padded) + 8;
    keys = layout.take(padded * form.depth);
    values = layout.take(padded * form.depth);
    scores = layout.take(blockRows * scoreStride);
    gradients = layout.take(blockRows * scoreStride);
    delta = layout.take(form.length);
    if (!form.narrow)
      return;
    for (int64_t *rows : {&q, &k, &dout, &dk, &dv})
      *rows = layout.take(std::min(blockRows, form.length) * stagedStride(form));
    dq = layout.take(form.length * stagedStride(form));
  }
};

class GradientEmitter : public AttentionEmitter {
public:
  GradientEmitter(OpBuilder &builder, Location loc, const AttentionForm &form, const Plan &plan,
                  func::FuncOp function, ModuleOp module, const CpuTarget &target)
      : AttentionEmitter(builder, loc, form, function, module, target), plan(plan) {}

  void emit() {
    packedKeys = scratchAt(plan.keys);
    packedValues = scratchAt(plan.values);
    scores = {scratchAt(plan.scores), 0, plan.scoreStride};
    gradients = {scratchAt(plan.gradients), 0, plan.scoreStride};
    delta = scratchAt(plan.delta);
    Value queriesPlace = scratchAt(plan.q), doutPlace = scratchAt(plan.dout),
          keysPlace = scratchAt(plan.k);
    Value dqPlace = scratchAt(plan.dq), dkPlace = scratchAt(plan.dk), dvPlace = scratchAt(plan.dv);
    loop(firstTask, lastTask, 1, [&](Index task) {
      batchHead = task;
      Index batch = div(task, form.heads), head = rem(task, form.heads);
      RowView queries = headRows(form.q, batch, head), keys = headRows(form.k, batch, head),
              incoming = headRows(form.dout, batch, head);
      auto result = [&](const std::optional<AttentionOperand> &operand) {
        return operand ? std::optional<RowView>(headRows(*operand, batch, head)) : std::nullopt;
      };
      std::optional<RowView> resultQ = result(form.dq), resultK = result(form.dk),
                             resultV = result(form.dv);
      // Where the sums of a result stand until the last one is added.
      auto sums = [&](const std::optional<RowView> &result, Value place, Index from) {
        return form.narrow && result ? stagedRows(place, from) : result;
      };
      auto finish = [&](const std::optional<RowView> &sums, const std::optional<RowView> &result,
                        Index from, Index count) {
        if (form.narrow && result)
          narrowRows(*sums, *result, from, count);
      };
      packTransposed(keys, form.length, packedKeys);
      packTransposed(headRows(form.v, batch, head), form.length, packedValues);
      RowView outputs = headRows(*form.o, batch, head);
      loop(0, form.length, 1, [&](Index row) { emitDelta(row, outputs, incoming); });
      dq = sums(resultQ, dqPlace, 0);
      loop(0, form.length, blockRows, [&](Index k0) {
        Index keyCount = min(sub(form.length, k0), blockRows);
        k = widened(keys, k0, keyCount, keysPlace);
        dk = sums(resultK, dkPlace, k0);
        dv = sums(resultV, dvPlace, k0);
        loop(form.causal ? k0 : Index(0), form.length, blockRows, [&](Index q0) {
          Index queryCount = min(sub(form.length, q0), blockRows);
          q = widened(queries, q0, queryCount, queriesPlace);
          dout = widened(incoming, q0, queryCount, doutPlace);
          emitBlock(q0, queryCount, k0, keyCount);
        });
        finish(dk, resultK, k0, keyCount);
        finish(dv, resultV, k0, keyCount);
      });
      finish(dq, resultQ, 0, form.length);
    });
  }

private:
  const Plan &plan;
  Index batchHead = 0;
  RowView q, k, dout, scores, gradients;
  std::optional<RowView> dq, dk, dv; ///< sums of what the kernel yields
  Value packedKeys, packedValues, delta;

  void emitDelta(Index row, const RowView &o, const RowView &dout) {
    Index outputs = add(o.start, mul(row, o.stride)),
          incoming = add(dout.start, mul(row, dout.stride));
    int64_t whole = form.depth / lanes * lanes;
    auto product = [&](Index column, Value part, Value total) {
      return fma(loadPart(o.buffer, add(outputs, column), part),
                 loadPart(dout.buffer, add(incoming, column), part), total);
    };
    SmallVector<Value> total = {constantVector(0.0)};
    if (whole)
      total = loop(0, whole, lanes, total, [&](Index column, ValueRange total) {
        return SmallVector<Value>{product(column, Value(), total[0])};
      });
    if (whole != form.depth)
      total = {product(whole, mask(form.depth - whole), total[0])};
    store(sum(total[0]), delta, row);
  }

  void emitBlock(Index q0, Index queries, Index k0, Index keys) {
    // Row i of the block sees columns up to i + diagonal.
    Index diagonal = sub(q0, k0);
    auto visible = [&](Index row) {
      return form.causal ? min(add(add(diagonal, row), 1), keys) : keys;
    };
    RowView scoreRows = rowsOfBlock(scores, q0), gradientRows = rowsOfBlock(gradients, q0);
    loop(0, keys, panel, [&](Index column) {
      Index start = panelOf(add(k0, column));
      rowTiles(queries, blockRows, [&](Index row, int rows) {
        auto tiles = [&] {
          scoreTile(rows, q, add(q0, row), packedKeys, start, scoreRows, column);
          scoreTile(rows, dout, add(q0, row), packedValues, start, gradientRows, column);
        };
        if (form.causal)
          when(less(column, add(add(diagonal, row), rows)), tiles);
        else
          tiles();
      });
    });
    loop(0, queries, 1, [&](Index row) {
      // A tile of dQ reads as far as its last row sees; one of dK or dV starts at the row that sees
      // its first column.
      Index read = form.causal ? min(add(add(diagonal, row), target.tileRows()), keys) : keys;
      emitSoftmaxGradient(q0, row, visible(row), read);
    });
    if (dq) {
      Value later = less(0, k0);
      rowTiles(queries, blockRows, [&](Index row, int rows) {
        productTiles(rows, TileA::Rows, gradients.buffer, mul(row, gradients.stride),
                     gradients.stride, k, k0, *dq, add(q0, row), visible(add(row, rows - 1)),
                     later);
      });
    }
    if (!dk && !dv)
      return;
    Value later = form.causal ? less(k0, q0) : less(0, q0);
    rowTiles(keys, blockRows, [&](Index column, int columns) {
      Index from = form.causal ? max(sub(column, diagonal), 0) : Index(0);
      Index start = add(mul(from, scores.stride), column), row = add(q0, from),
            count = sub(queries, from);
      if (dv)
        productTiles(columns, TileA::Columns, scores.buffer, start, scores.stride, dout, row, *dv,
                     add(k0, column), count, later);
      if (dk)
        productTiles(columns, TileA::Columns, gradients.buffer, start, gradients.stride, q, row,
                     *dk, add(k0, column), count, later);
    });
  }

  /// A block's rows under the numbers of the sequence.
  RowView rowsOfBlock(RowView view, Index q0) {
    view.start = sub(0, mul(q0, view.stride));
    return view;
  }

  /// P and dS over S and G of one row, with zeros from `visible` to `read`.
  void emitSoftmaxGradient(Index q0, Index row, Index visible, Index read) {
    Index start = mul(row, scores.stride), query = add(q0, row);
    Value zero = constantVector(0.0), scaling = constantVector(scale());
    // In units of raw scores, as the exponential wants it.
    Value logsumexp =
        splat(load(buffer(form.logsumexp->buffer), add(mul(batchHead, form.length), query)));
    logsumexp = mulf(logsumexp, constantVector(std::sqrt(double(form.depth))));
    Value mean = splat(load(delta, query));
    auto gradient = [&](Index column, Value seen) {
      Index at = add(start, column);
      Value weights = exponential(atMost(subf(vectorAt(scores.buffer, at), logsumexp), zero));
      Value slope = mulf(mulf(weights, scaling), subf(vectorAt(gradients.buffer, at), mean));
      if (seen) {
        weights = choose(seen, weights, zero);
        slope = choose(seen, slope, zero);
      }
      return std::pair(weights, slope);
    };
    auto put = [&](Index column, std::pair<Value, Value> values) {
      storeVector(values.first, scores.buffer, add(start, column));
      storeVector(values.second, gradients.buffer, add(start, column));
    };
    Index by2 = roundDown(visible, 2 * lanes), by1 = roundDown(visible, lanes);
    loop(0, by2, 2 * lanes, [&](Index column) {
      auto first = gradient(column, Value()), second = gradient(add(column, lanes), Value());
      put(column, first);
      put(add(column, lanes), second);
    });
    loop(by2, by1, lanes, [&](Index column) { put(column, gradient(column, Value())); });
    loop(by1, visible, lanes,
         [&](Index column) { put(column, gradient(column, mask(sub(visible, column)))); });
    if (form.causal)
      loop(roundUp(visible, lanes), read, lanes, [&](Index column) { put(column, {zero, zero}); });
  }
};

} // namespace

func::FuncOp emitAttentionGrad(const AttentionForm &form, Location loc, StringRef name,
                               ModuleOp module, const CpuTarget &target) {
  Plan plan(form, target);
  func::FuncOp function = createKernelFunction(module, loc, name, form.buffers,
                                               form.batch * form.heads, plan.layout.bytes);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
  GradientEmitter(builder, loc, form, plan, function, module, target).emit();
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace descent
