//===- DeviceAttentionScalar.cpp - Attention without tensor cores ---------===//
//
// The same algorithm in f32 on the ordinary units: for f32, which the tensor cores would round, and
// for heads of more than 128 columns. A block of 16 x 16 threads owns 64 rows of a head and walks
// the others in tiles of 64; thread (y, x) owns rows 4y .. 4y+3, and of a tile's scores columns
// x, x+16, x+32, x+48, of results columns 4x .. 4x+3 of each 64. Products are outer products of
// 4 x 4 in registers, eight 16-byte reads of shared memory for 64 multiply-adds.
//
// Rows in shared memory are slices of at most 64 columns, 4 floats apart from a multiple of 8, so
// that 16-byte reads of one column in consecutive rows fall into different banks. Heads of one
// slice keep the block's own rows there; wider ones are streamed through one buffer a side. Weights
// (P or dS) pass through shared memory between the half warps that made them alone.
//
// A block makes at most 128 columns of the results; wider heads are shared out to more blocks, each
// of which computes the scores again.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceAttentionKernels.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace descent {

namespace {

constexpr int64_t blockRows = 64;     ///< own rows, and those of a tile
constexpr int64_t sliceColumns = 64;  ///< at most
constexpr int64_t groupColumns = 128; ///< of results that one block makes
constexpr int64_t weightStride = 68;  ///< floats from row to row of the weights
constexpr int64_t weightBytes = blockRows * weightStride * 4;

int64_t sliceWidth(const AttentionForm &form) {
  return std::min<int64_t>(sliceColumns, llvm::alignTo(form.depth, 8));
}
int64_t sliceBytes(const AttentionForm &form) { return blockRows * (sliceWidth(form) + 4) * 4; }

struct Rows {
  Value base;
  int64_t rowBytes = 0;
  bool vectors = false; ///< four neighbours can be read and written at once
};

/// What forward and gradient share.
class ScalarKernel : public WarpOps {
public:
  ScalarKernel(gpu::GPUFuncOp function, const AttentionForm &form, Value shared)
      : WarpOps(function, form.narrow), form(form), elementBytes(form.narrow ? 2 : 4),
        slices(llvm::divideCeil(form.depth, sliceColumns)), width(sliceWidth(form)) {
    int64_t tiles = llvm::divideCeil(form.length, blockRows);
    int64_t groups = llvm::divideCeil(form.depth, groupColumns);
    thread = threadIndex();
    x = bitAnd(thread, 15), y = shr(thread, 4);
    Word block = scalarAttentionBlocks(form) == 1 ? Word(0) : blockIndex();
    blockTile = tiles == 1 ? Word(0) : rem(block, tiles);
    Word rest = div(block, tiles);
    group = groups == 1 ? Word(0) : rem(rest, groups);
    batchHead = div(rest, groups);
    batchRow = mulWide(widen(div(batchHead, form.heads)), form.length);
    headOffset = form.heads == 1
                     ? Word(0)
                     : mulWide(widen(rem(batchHead, form.heads)), elementBytes * form.depth);
    weights = shared;
    int64_t next = weightBytes;
    for (Value *buffer : {&own1Buffer, &tile1Buffer, &tile2Buffer, &own2Buffer}) {
      *buffer = at(shared, next);
      next += sliceBytes(form);
    }
    scoreScale = constant(std::numbers::log2e / std::sqrt(double(form.depth)));
    resultSlices = std::min(slices, groupColumns / sliceColumns);
  }

  const AttentionForm &form;
  const int64_t elementBytes, slices, width; ///< slices of a head, floats of one
  int64_t resultSlices;                      ///< of the results that a block makes
  Word thread = 0, x = 0, y = 0, blockTile = 0, group = 0, batchHead = 0;
  Word batchRow = 0, headOffset = 0; ///< i64: row of the head's first, bytes of its columns
  /// Buffers of 64 rows. The forward kernel has no second one of own rows, wide heads one a side.
  Value weights, own1Buffer, tile1Buffer, tile2Buffer, own2Buffer;
  Value scoreScale;

  Rows rows(Value pointer, const AttentionOperand &operand) {
    int64_t four = 4;
    return {at(pointer, elementBytes * operand.offset), elementBytes * operand.rowStride,
            form.depth % four == 0 && operand.rowStride % four == 0 && operand.offset % four == 0};
  }

  Value statistic(Value pointer, const AttentionOperand &operand, Word row) {
    Word index = addWide(mulWide(widen(batchHead), operand.rowStride), widen(row));
    return atWide(pointer, mulWide(addWide(index, operand.offset), 4));
  }

  /// i64 offset of an element of the head.
  Word place(const Rows &source, Word row, Word column) {
    Word rowBytes = mulWide(addWide(batchRow, widen(row)), source.rowBytes);
    return addWide(addWide(rowBytes, headOffset), mulWide(widen(column), elementBytes));
  }

  Value exists(Word row) { return form.length % blockRows == 0 ? Value() : less(row, form.length); }

  Value vectorOf(ArrayRef<Value> numbers) {
    auto type = VectorType::get({int64_t(numbers.size())}, numbers.front().getType());
    Value vector = LLVM::UndefOp::create(builder, loc, type);
    for (auto [index, number] : llvm::enumerate(numbers))
      vector = LLVM::InsertElementOp::create(builder, loc, vector, number, integer(index, i32));
    return vector;
  }

  /// One number or, with `four`, its three right neighbours too, as f32; zeros unless `ok`.
  Values read(const Rows &source, Word offset, Value ok, bool four) {
    if (ok)
      offset = select(ok, wideValue(offset), integer(0, i64));
    Value from = atWide(source.base, offset);
    Values numbers;
    if (!four)
      numbers = {narrow ? widenBits(load(from, i16, 2)) : load(from, f32, 4)};
    else if (!narrow) {
      Value vector = load(from, VectorType::get({4}, f32), 16);
      for (int64_t i = 0; i < 4; ++i)
        numbers.push_back(element(vector, i));
    } else {
      Value pairs = load(from, VectorType::get({2}, i32), 8);
      for (int64_t i = 0; i < 2; ++i) {
        auto [low, high] = unpack(element(pairs, i));
        numbers.append({low, high});
      }
    }
    if (ok)
      for (Value &number : numbers)
        number = select(ok, number, constant(0));
    return numbers;
  }

  /// Rows [row, row + 64) of one slice, columns from `column` on, to a buffer. Zeros beyond.
  void copySlice(Value buffer, const Rows &source, Word row, Word column) {
    int64_t step = source.vectors ? 4 : 1, ofRow = width / step, count = blockRows * ofRow;
    struct Part {
      Word place;
      Values numbers;
    };
    auto part = [&](int64_t first) -> Part {
      Word index = add(thread, first), inSlice = mul(rem(index, ofRow), step);
      Word number = add(row, div(index, ofRow)), at = add(column, inSlice);
      bool whole = form.depth % (slices == 1 ? width : groupColumns) == 0;
      Value ok = both(exists(number), whole ? Value() : less(at, form.depth));
      return {mul(add(mul(div(index, ofRow), width + 4), inSlice), 4),
              read(source, place(source, number, at), ok, step == 4)};
    };
    auto put = [&](const Part &part) {
      store(step == 4 ? vectorOf(part.numbers) : part.numbers.front(), at(buffer, part.place),
            4 * step);
    };
    int64_t threads = scalarAttentionThreads, whole = count / threads * threads;
    SmallVector<Part> parts; // All loads are under way before the first is waited for.
    for (int64_t first = 0; first < whole; first += threads)
      parts.push_back(part(first));
    llvm::for_each(parts, put);
    if (whole < count)
      when(less(thread, count - whole), [&] { put(part(whole)); });
  }

  using Square = Values; ///< 4 x 4, by rows
  Square zeroSquare() { return Square(16, constant(0)); }

  Values four(Value address) {
    Value vector = load(address, VectorType::get({4}, f32), 16);
    return {element(vector, 0), element(vector, 1), element(vector, 2), element(vector, 3)};
  }

  /// scores += own rows * (tile rows)^T over one slice.
  Square multiplyByRows(Value own, Value tile, Square scores) {
    int64_t rowBytes = 4 * (width + 4);
    Value left = at(own, mul(y, 4 * rowBytes)), right = at(tile, mul(x, rowBytes));
    return loop(0, width, 4, scores, [&](Word d, ValueRange carried) {
      Values next(carried);
      Word bytes = shl(d, 2);
      Values a[4];
      for (int64_t i = 0; i < 4; ++i)
        a[i] = four(at(at(left, bytes), i * rowBytes));
      for (int64_t j = 0; j < 4; ++j) {
        Values b = four(at(at(right, bytes), 16 * j * rowBytes));
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t e = 0; e < 4; ++e)
            next[4 * i + j] = fma(a[i][e], b[e], next[4 * i + j]);
      }
      return next;
    });
  }

  /// sums += weights * tile, over the tile's rows.
  Square multiplyByColumns(Value tile, Square sums) {
    int64_t rowBytes = 4 * (width + 4);
    // Threads beyond a narrow slice repeat its last columns; nobody reads their sums.
    Word column = width < sliceColumns ? min(shl(x, 2), width - 4) : shl(x, 2);
    Value left = at(weights, mul(y, 4 * 4 * weightStride)), right = at(tile, shl(column, 2));
    return loop(0, blockRows, 4, sums, [&](Word j, ValueRange carried) {
      Values next(carried);
      Values a[4];
      for (int64_t i = 0; i < 4; ++i)
        a[i] = four(at(at(left, shl(j, 2)), i * 4 * weightStride));
      Value rowsOfTile = at(right, mul(j, rowBytes));
      for (int64_t e = 0; e < 4; ++e) {
        Values b = four(at(rowsOfTile, e * rowBytes));
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t c = 0; c < 4; ++c)
            next[4 * i + c] = fma(a[i][e], b[c], next[4 * i + c]);
      }
      return next;
    });
  }

  /// scores of the own rows with a tile's, whole heads. Both stand in their buffers if the head is
  /// one slice.
  Square emitScores(const Rows &own, Word ownRow, Value ownBuffer, const Rows &walked, Word row,
                    Value walkedBuffer) {
    if (slices == 1)
      return multiplyByRows(ownBuffer, walkedBuffer, zeroSquare());
    return loop(0, slices, 1, zeroSquare(), [&](Word s, ValueRange scores) {
      Word column = mul(s, sliceColumns);
      barrier();
      copySlice(own1Buffer, own, ownRow, column);
      copySlice(tile1Buffer, walked, row, column);
      barrier();
      return multiplyByRows(own1Buffer, tile1Buffer, Square(scores));
    });
  }

  /// sums (a square for each slice of the results) += weights * walked rows.
  void emitSums(Values &sums, ArrayRef<Value> ownWeights, const Rows &walked, Word row,
                Value walkedBuffer) {
    Value target = at(weights, add(mul(y, 4 * 4 * weightStride), shl(x, 2)));
    warpBarrier(); // What the half warp wrote there before has been read.
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j)
        store(ownWeights[4 * i + j], at(target, 4 * (i * weightStride + 16 * j)), 4);
    warpBarrier();
    for (int64_t s = 0; s < resultSlices; ++s) {
      if (slices > 1) {
        barrier();
        copySlice(tile1Buffer, walked, row, add(mul(group, groupColumns), s * sliceColumns));
        barrier();
      }
      Square part(ArrayRef<Value>(sums).slice(16 * s, 16));
      part = multiplyByColumns(slices == 1 ? walkedBuffer : tile1Buffer, part);
      llvm::copy(part, sums.begin() + 16 * s);
    }
  }

  Word ownRow(Word first, int64_t i) { return add(first, add(shl(y, 2), i)); }
  Word tileColumn(Word j, int64_t i) { return add(mul(j, blockRows), add(x, 16 * i)); }

  /// sums[i] * scale[i] to the rows of a result.
  void emitResults(ValueRange sums, ValueRange scale, const Rows &target, Word first) {
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t s = 0; s < resultSlices; ++s) {
        Word row = ownRow(first, i);
        Word column = add(add(mul(group, groupColumns), s * sliceColumns), shl(x, 2));
        Values numbers(sums.slice(16 * s + 4 * i, 4));
        if (!scale.empty())
          for (Value &number : numbers)
            number = mulf(number, scale[i]);
        Value to = atWide(target.base, place(target, row, column));
        if (target.vectors) {
          when(both(exists(row), less(column, form.depth)), [&] {
            if (narrow)
              store(vectorOf({pack(numbers[0], numbers[1]), pack(numbers[2], numbers[3])}), to, 8);
            else
              store(vectorOf(numbers), to, 16);
          });
          continue;
        }
        for (int64_t c = 0; c < 4; ++c)
          when(both(exists(row), less(add(column, c), form.depth)), [&] {
            store(narrow ? narrowBits(numbers[c]) : numbers[c], at(to, c * elementBytes),
                  elementBytes);
          });
      }
  }
};

class ForwardKernel : ScalarKernel {
public:
  ForwardKernel(gpu::GPUFuncOp function, const AttentionForm &form,
                const AttentionPointers &pointers, Value shared)
      : ScalarKernel(function, form, shared), pointers(pointers) {}

  void emit() {
    Rows q = rows(pointers.q, form.q), k = rows(pointers.k, form.k), v = rows(pointers.v, form.v);
    int64_t tiles = llvm::divideCeil(form.length, blockRows);
    Word tile = form.causal ? sub(tiles - 1, blockTile) : blockTile, first = mul(tile, blockRows);
    Word whole = form.causal ? tile : Word(form.length / blockRows);
    Word end = form.causal ? add(tile, 1) : Word(tiles);
    if (slices == 1)
      copySlice(own1Buffer, q, first, 0);
    int64_t sumCount = 16 * resultSlices;
    Values state(sumCount, constant(0));
    state.append(4, constant(-INFINITY)); // maxima
    state.append(4, constant(0));         // sums
    auto emitTile = [&](Word j, ValueRange carried, bool masked) {
      Values sums(carried.take_front(sumCount)), maxima(carried.slice(sumCount, 4)),
          totals(carried.take_back(4));
      Word row = mul(j, blockRows);
      if (slices == 1) {
        barrier();
        copySlice(tile1Buffer, k, row, 0);
        copySlice(tile2Buffer, v, row, 0);
        barrier();
      }
      Square scores = emitScores(q, first, own1Buffer, k, row, tile1Buffer);
      for (int64_t i = 0; i < 4; ++i)
        emitSoftmax(scores, i, maxima[i], totals[i], sums, first, j, masked);
      emitSums(sums, scores, v, row, tile2Buffer);
      llvm::append_range(sums, maxima);
      llvm::append_range(sums, totals);
      return sums;
    };
    for (bool masked : {false, true})
      state = loop(masked ? whole : 0, masked ? end : whole, 1, state,
                   [&](Word j, ValueRange carried) { return emitTile(j, carried, masked); });
    Values scale;
    for (int64_t i = 0; i < 4; ++i) {
      Value total =
          acrossLanes(state[sumCount + 4 + i], 16, [&](Value a, Value b) { return addf(a, b); });
      scale.push_back(reciprocal(total));
      if (!form.logsumexp)
        continue;
      Word row = ownRow(first, i);
      Value result = mulf(addf(state[sumCount + i], log2(total)), constant(std::numbers::ln2));
      Value writes = compare(arith::CmpIPredicate::eq, x, 0);
      if (!group.isKnown())
        writes = both(writes, compare(arith::CmpIPredicate::eq, group, 0));
      when(both(writes, exists(row)),
           [&] { store(result, statistic(pointers.logsumexp, *form.logsumexp, row), 4); });
    }
    emitResults(state, scale, rows(pointers.o, *form.o), first);
  }

private:
  const AttentionPointers &pointers;

  void emitSoftmax(Square &scores, int64_t i, Value &maximum, Value &total, Values &sums,
                   Word first, Word j, bool masked) {
    if (masked) {
      Word last = form.length - 1;
      if (form.causal)
        last = min(ownRow(first, i), last);
      for (int64_t c = 0; c < 4; ++c)
        scores[4 * i + c] =
            select(less(last, tileColumn(j, c)), constant(-INFINITY), scores[4 * i + c]);
    }
    Value largest = scores[4 * i];
    for (int64_t c = 1; c < 4; ++c)
      largest = larger(largest, scores[4 * i + c]);
    largest = acrossLanes(largest, 16, [&](Value a, Value b) { return larger(a, b); });
    Value next = larger(maximum, mulf(largest, scoreScale)), negative = negate(next);
    Value correction = power2(subf(maximum, next));
    maximum = next;
    Value sum;
    for (int64_t c = 0; c < 4; ++c) {
      Value &score = scores[4 * i + c];
      score = power2(fma(score, scoreScale, negative));
      sum = sum ? addf(sum, score) : score;
    }
    total = fma(total, correction, sum);
    for (int64_t s = 0; s < resultSlices; ++s)
      for (int64_t c = 0; c < 4; ++c)
        sums[16 * s + 4 * i + c] = mulf(sums[16 * s + 4 * i + c], correction);
  }
};

class GradientKernel : ScalarKernel {
public:
  GradientKernel(gpu::GPUFuncOp function, const AttentionForm &form, GradientPart part,
                 const AttentionPointers &pointers, Value shared)
      : ScalarKernel(function, form, shared), keys(part == GradientPart::Keys), pointers(pointers) {
  }

  void emit() {
    Rows q = rows(pointers.q, form.q), k = rows(pointers.k, form.k), v = rows(pointers.v, form.v),
         dout = rows(pointers.dout, form.dout);
    own1 = keys ? k : q, own2 = keys ? v : dout;
    walked1 = keys ? q : k, walked2 = keys ? dout : v;
    one = keys ? form.dk.has_value() : form.dq.has_value();
    two = keys && form.dv.has_value();

    int64_t tiles = llvm::divideCeil(form.length, blockRows);
    bool reverse = form.causal && !keys; // Blocks with most work come first.
    Word tile = reverse ? sub(tiles - 1, blockTile) : blockTile;
    first = mul(tile, blockRows);
    // Tiles [from, middle) and [middle, end), of which one part needs the mask.
    Word from = 0, middle = form.length / blockRows, end = tiles;
    if (keys) {
      from = form.causal ? tile : Word(0);
      middle = form.causal ? add(tile, 1) : Word(0);
    } else if (form.causal) {
      middle = tile, end = add(tile, 1);
    }
    if (!keys) {
      emitDelta();
      if (!one)
        return;
    }
    if (slices == 1) {
      copySlice(own1Buffer, own1, first, 0);
      copySlice(own2Buffer, own2, first, 0);
    }
    Values state(16 * resultSlices * (one + two), constant(0));
    for (bool later : {false, true}) {
      bool masked = keys ? !later && form.causal : later;
      state = loop(later ? middle : from, later ? end : middle, 1, state,
                   [&](Word j, ValueRange sums) { return emitTile(j, sums, masked); });
    }
    Values scale(4, constant(1 / std::sqrt(double(form.depth))));
    ValueRange sums = state;
    if (one) {
      emitResults(sums, scale, keys ? rows(pointers.dk, *form.dk) : rows(pointers.dq, *form.dq),
                  first);
      sums = sums.drop_front(16 * resultSlices);
    }
    if (two)
      emitResults(sums, {}, rows(pointers.dv, *form.dv), first);
  }

private:
  const bool keys;
  const AttentionPointers &pointers;
  Rows own1, own2, walked1, walked2;
  bool one = false, two = false; ///< which gradients are wanted
  Word first = 0;
  Values negativeLogs, deltas; ///< of the own rows, where they are queries

  AttentionOperand deltaOperand() const { return {0, 0, form.length}; }
  Word inside(Word row) { return form.length % blockRows == 0 ? row : min(row, form.length - 1); }

  void emitDelta() {
    Rows o = rows(pointers.o, *form.o);
    for (int64_t i = 0; i < 4; ++i) {
      Word row = ownRow(first, i), readable = inside(row);
      Values delta = loop(x, form.depth, 16, constant(0), [&](Word column, ValueRange sum) {
        Value left = read(o, place(o, readable, column), Value(), false).front();
        Value right = read(own2, place(own2, readable, column), Value(), false).front();
        return Values{fma(left, right, sum.front())};
      });
      deltas.push_back(
          acrossLanes(delta.front(), 16, [&](Value a, Value b) { return addf(a, b); }));
      if (pointers.delta) {
        Value writes = compare(arith::CmpIPredicate::eq, x, 0);
        if (!group.isKnown())
          writes = both(writes, compare(arith::CmpIPredicate::eq, group, 0));
        when(both(writes, exists(row)),
             [&] { store(deltas[i], statistic(pointers.delta, deltaOperand(), row), 4); });
      }
      if (!one)
        continue;
      Value log = load(statistic(pointers.logsumexp, *form.logsumexp, readable), f32, 4);
      negativeLogs.push_back(mulf(log, constant(-std::numbers::log2e)));
    }
  }

  Values emitTile(Word j, ValueRange carried, bool masked) {
    Word row = mul(j, blockRows);
    Values all(carried), sums1, sums2;
    if (one)
      sums1 = Values(ArrayRef<Value>(all).take_front(16 * resultSlices));
    if (two)
      sums2 = Values(ArrayRef<Value>(all).take_back(16 * resultSlices));
    if (slices == 1) {
      barrier();
      copySlice(tile1Buffer, walked1, row, 0);
      copySlice(tile2Buffer, walked2, row, 0);
      barrier();
    }
    Values columnLogs, columnDeltas;
    for (int64_t c = 0; keys && c < 4; ++c) {
      // A query that does not exist has weight 1 and gradient 0.
      Word column = tileColumn(j, c), readable = inside(column);
      Value ok = exists(column);
      auto statisticOf = [&](Value pointer, const AttentionOperand &operand) {
        Value number = load(statistic(pointer, operand, readable), f32, 4);
        return ok ? select(ok, number, constant(0)) : number;
      };
      columnLogs.push_back(
          mulf(statisticOf(pointers.logsumexp, *form.logsumexp), constant(-std::numbers::log2e)));
      if (one)
        columnDeltas.push_back(statisticOf(pointers.delta, deltaOperand()));
    }
    Square scores = emitScores(own1, first, own1Buffer, walked1, row, tile1Buffer);
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t c = 0; c < 4; ++c) {
        Value &score = scores[4 * i + c];
        score = power2(fma(score, scoreScale, keys ? columnLogs[c] : negativeLogs[i]));
        if (!masked)
          continue;
        Word number = ownRow(first, i), column = tileColumn(j, c), last = form.length - 1;
        if (form.causal && !keys)
          last = min(number, last);
        score = select(keys ? less(column, number) : less(last, column), constant(0), score);
      }
    if (two)
      emitSums(sums2, scores, walked2, row, tile2Buffer);
    if (one) {
      Square slopes = emitScores(own2, first, own2Buffer, walked2, row, tile2Buffer);
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t c = 0; c < 4; ++c) {
          Value &slope = slopes[4 * i + c];
          slope = mulf(scores[4 * i + c], subf(slope, keys ? columnDeltas[c] : deltas[i]));
        }
      emitSums(sums1, slopes, walked1, row, tile1Buffer);
    }
    llvm::append_range(sums1, sums2);
    return sums1;
  }
};

} // namespace

int64_t scalarAttentionBlocks(const AttentionForm &form) {
  return form.batch * form.heads * llvm::divideCeil(form.length, blockRows) *
         llvm::divideCeil(form.depth, groupColumns);
}

int64_t scalarAttentionShared(const AttentionForm &form) {
  int64_t buffers = form.depth > sliceColumns ? 2 : form.dout.rowStride ? 4 : 3;
  return weightBytes + buffers * sliceBytes(form);
}

void emitScalarAttention(gpu::GPUFuncOp function, const AttentionForm &form,
                         const AttentionPointers &pointers, Value shared) {
  ForwardKernel(function, form, pointers, shared).emit();
}

void emitScalarAttentionGrad(gpu::GPUFuncOp function, const AttentionForm &form, GradientPart part,
                             const AttentionPointers &pointers, Value shared) {
  GradientKernel(function, form, part, pointers, shared).emit();
}

} // namespace descent
