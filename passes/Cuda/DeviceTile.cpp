//===- DeviceTile.cpp - The tile of every product on a device -------------===//
//
// One barrier a step serves twice: it says that the tile about to be multiplied has arrived, and
// that everybody is done with the tile whose place the next copies take.
//
// Sums of one element are added in the order of k, by one thread (or by the tensor core, whose
// order within 16 is its own); which tile shape it falls in changes nothing.
//
// Banks. Threads of f32 hold rows and columns in groups of four, so that one load of 16 bytes
// brings four of a line of m or n, or four of k for one of them; DeviceTileCopy.cpp says how lines
// are turned against each other. On their way to the epilogue sums lie in rows, the column xored
// with eight times the row mod 4: what a warp's fragments store at a time then covers all banks.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceTile.h"

using namespace mlir;

namespace descent {

int64_t DeviceTile::blocksPerMultiprocessor(const DeviceTilePlan &plan, const TileSource &a,
                                            const TileSource &b, int capability,
                                            size_t epilogueOps) {
  bool async = TileCopy::isAsync(plan, a) && TileCopy::isAsync(plan, b);
  bool pairs = capability >= 100 && plan.math == TileMath::Floats && b.depthRuns;
  bool crowded = plan.math == TileMath::Floats && epilogueOps > 1;
  return (async && !pairs && !crowded ? 512 : 256) / plan.threads();
}

DeviceTile::Core DeviceTile::floatCore(const TileLayout &layoutA, const TileLayout &layoutB) {
  Index thread = e.thread();
  int64_t across = plan.columns / plan.partColumns;
  Index down = e.div(thread, across), right = e.rem(thread, across);
  int64_t groupsA = plan.partRows / 4, groupsB = plan.partColumns / 4;
  int64_t pitchA = plan.rows / groupsA, pitchB = plan.columns / groupsB;
  auto four = VectorType::get({4}, e.builder.getF32Type());
  bool runsA = a.depthRuns, runsB = b.depthRuns;

  // Four steps of k at a time. A chunk holds four of them for one row (or column) where lines are
  // rows, and four rows at one of them where lines are k; `address` is that of group 0 at the
  // first.
  auto addressOf = [=, this](Value tile, const TileLayout &layout, bool runs, Index part,
                             Index step) {
    Index line = runs ? e.mul(part, 4 * layout.lineBytes()) : e.mul(part, 16);
    Index move = runs ? e.mul(e.bitXor(step, e.rem(part, layout.swizzled)), 16)
                      : e.mul(step, 4 * layout.lineBytes());
    return e.sharedAt(tile, e.add(line, move));
  };
  using Numbers = SmallVector<Value, 4>;
  auto chunk = [=, this](Value address, int64_t place) {
    Value loaded = e.loadFrom(e.sharedAt(address, place), four, 16);
    Numbers numbers;
    for (int64_t i = 0; i < 4; ++i)
      numbers.push_back(e.extract(loaded, i));
    return numbers;
  };

  Core core;
  Value zero = arith::ConstantOp::create(e.builder, e.loc, e.builder.getZeroAttr(four));
  core.zeros.assign(plan.partRows * groupsB, zero);
  core.multiply = [=, this](Value stage, ValueRange initial) {
    Value stageB = e.sharedAt(stage, layoutA.bytes());
    return e.loop(0, plan.depth / 4, 1, initial, [&](Index step, ValueRange carried) {
      Value addressA = addressOf(stage, layoutA, runsA, down, step);
      Value addressB = addressOf(stageB, layoutB, runsB, right, step);
      SmallVector<Value> sums(carried);
      // Numbers of A: [row], for one k. Registers are short: of the columns only those at work are
      // there, four, and the rows of all four k only where a chunk brings them or columns come so.
      SmallVector<SmallVector<Value>, 4> rows(4);
      auto loadRows = [&](int64_t k) {
        for (int64_t group = 0; group < groupsA; ++group)
          llvm::append_range(rows[k],
                             chunk(addressA, k * layoutA.lineBytes() + group * pitchA * 4));
      };
      if (runsA)
        for (int64_t i = 0; i < plan.partRows; ++i)
          for (auto [k, number] :
               llvm::enumerate(chunk(addressA, (i / 4 * pitchA + i % 4) * layoutA.lineBytes())))
            rows[k].push_back(number);
      else if (runsB)
        for (int64_t k = 0; k < 4; ++k)
          loadRows(k);
      auto multiply = [&](int64_t k, int64_t group, Value columns) {
        for (int64_t i = 0; i < plan.partRows; ++i) {
          Value &sum = sums[i * groupsB + group];
          sum = vector::FMAOp::create(e.builder, e.loc, e.splat(rows[k][i], 4), columns, sum);
        }
      };
      if (runsB) {
        for (int64_t group = 0; group < groupsB; ++group) {
          SmallVector<Numbers, 4> columns;
          for (int64_t j = 0; j < 4; ++j)
            columns.push_back(chunk(addressB, (group * pitchB + j) * layoutB.lineBytes()));
          for (int64_t k = 0; k < 4; ++k)
            multiply(k, group,
                     e.join({columns[0][k], columns[1][k], columns[2][k], columns[3][k]}));
        }
        return sums;
      }
      for (int64_t k = 0; k < 4; ++k) {
        if (!runsA)
          loadRows(k);
        for (int64_t group = 0; group < groupsB; ++group)
          multiply(k, group,
                   e.loadFrom(e.sharedAt(addressB, k * layoutB.lineBytes() + group * pitchB * 4),
                              four, 16));
      }
      return sums;
    });
  };
  core.store = [=, this](Value shared, ValueRange sums) {
    for (int64_t i = 0; i < plan.partRows; ++i)
      for (int64_t group = 0; group < groupsB; ++group) {
        Index row = e.add(e.mul(down, 4), i / 4 * pitchA + i % 4);
        Index column = e.bitXor(e.add(e.mul(right, 4), group * pitchB), i % 4 * 8);
        Index place = e.mul(e.add(e.mul(row, plan.columns), column), 4);
        e.storeTo(e.sharedAt(shared, place), sums[i * groupsB + group], 16);
      }
  };
  return core;
}

/// Where a warp's fragments of one operand stand in a tile: of 16 rows (or columns) and one step of
/// k, i.e. two chunks, each.
namespace {
struct Fragments {
  bool matrices;   ///< by ldmatrix; else word by word
  bool transposed; ///< lines are k
  int64_t stride;  ///< bytes of 16 lines of rows, or of a step's lines of k
  SmallVector<Index>
      bases; ///< by step where lines are rows, else by tile (and half of it, for words)
  SmallVector<unsigned, 4> order; ///< of words: which are first and which second half of rows, k
  int64_t halfStep = 0;           ///< of words: bytes between the halves of a step

  SmallVector<Value> load(TileOps &e, Value tile, int64_t number, int64_t step) const {
    if (matrices) {
      int64_t place = (transposed ? step : number) * stride;
      Value base = e.sharedAt(tile, bases[transposed ? number : step]);
      return e.loadMatrices(e.sharedAt(base, place), transposed);
    }
    SmallVector<Value> words;
    for (unsigned which : order) {
      unsigned rowHalf = which % 2, stepHalf = which / 2;
      Value base = e.sharedAt(tile, bases[2 * number + rowHalf]);
      words.push_back(e.loadFrom(e.sharedAt(base, step * stride + stepHalf * halfStep),
                                 e.builder.getI32Type(), 4));
    }
    return words;
  }
};
} // namespace

DeviceTile::Core DeviceTile::tensorCore(const TileLayout &layoutA, const TileLayout &layoutB) {
  Index thread = e.thread(), lane = e.rem(thread, 32), warp = e.div(thread, 32);
  int64_t across = plan.columns / plan.partColumns;
  Index top = e.mul(e.div(warp, across), plan.partRows),
        left = e.mul(e.rem(warp, across), plan.partColumns);
  int64_t stepDepth = 2 * layoutA.chunkElements;
  int64_t tilesA = plan.partRows / 16, tilesB = plan.partColumns / 16,
          steps = plan.depth / stepDepth;
  Type element = plan.element(e.builder.getContext());

  // ldmatrix: lane i gives the address of line i mod 8 of matrix i / 8. The first bit of a
  // matrix's number chooses rows of A and k of B, the second k of A and columns of B. Words of a
  // lane stand as in a matrix: row lane / 4, k lane mod 4, and what is half a tile or step further.
  Index first = e.rem(e.div(lane, 8), 2), second = e.div(lane, 16);
  auto fragments = [&](const TileLayout &layout, bool runs, Index start, int64_t tiles, Index ofRow,
                       Index ofStep) {
    Fragments result;
    result.matrices = runs || plan.math != TileMath::Tf32;
    result.transposed = !runs;
    result.stride = (runs ? 16 : stepDepth) * layout.lineBytes();
    if (!result.matrices) {
      Index line = e.rem(lane, 4), row = e.div(lane, 4);
      result.halfStep = 4 * layout.lineBytes();
      for (int64_t half = 0; half < 2 * tiles; ++half) {
        Index number = e.add(e.add(start, row), 8 * half);
        result.bases.push_back(
            e.add(layout.chunkAt(e, line, e.div(number, 4)), e.mul(e.rem(number, 4), 4)));
      }
      return result;
    }
    Index line = e.rem(lane, 8), turn = layout.turn(e, line);
    Index lines = e.add(e.mul(runs ? ofRow : ofStep, 8), line);
    if (runs)
      lines = e.add(lines, start);
    for (int64_t i = 0; i < (runs ? steps : tiles); ++i) {
      Index chunk = e.add(runs ? ofStep : e.add(e.div(start, 8), ofRow), 2 * i);
      result.bases.push_back(
          e.add(e.mul(lines, layout.lineBytes()), e.mul(e.bitXor(chunk, turn), 16)));
    }
    return result;
  };
  Fragments fragmentsA = fragments(layoutA, a.depthRuns, top, tilesA, first, second);
  Fragments fragmentsB = fragments(layoutB, b.depthRuns, left, tilesB, second, first);
  fragmentsA.order = {0, 1, 2, 3};
  fragmentsB.order = {0, 2, 1, 3};

  Core core;
  core.zeros.assign(tilesA * tilesB * 8, e.constant(0.0));
  core.multiply = [=, this](Value stage, ValueRange initial) {
    Value stageB = e.sharedAt(stage, layoutA.bytes());
    SmallVector<Value> sums(initial);
    for (int64_t step = 0; step < steps; ++step) {
      SmallVector<SmallVector<Value>> rows;
      for (int64_t i = 0; i < tilesA; ++i)
        rows.push_back(fragmentsA.load(e, stage, i, step));
      for (int64_t j = 0; j < tilesB; ++j) {
        SmallVector<Value> columns = fragmentsB.load(e, stageB, j, step);
        for (int64_t i = 0; i < tilesA; ++i)
          for (int64_t half = 0; half < 2; ++half) {
            auto place = MutableArrayRef(sums).slice(((i * tilesB + j) * 2 + half) * 4, 4);
            SmallVector<Value> next = e.multiply(
                element, rows[i], ArrayRef(columns).slice(2 * half, 2), SmallVector<Value>(place));
            llvm::copy(next, place.begin());
          }
      }
    }
    return sums;
  };
  core.store = [=, this](Value shared, ValueRange sums) {
    Index row = e.add(top, e.div(lane, 4)), column = e.add(left, e.mul(e.rem(lane, 4), 2));
    for (int64_t i = 0; i < tilesA; ++i)
      for (int64_t j = 0; j < 2 * tilesB; ++j)
        for (int64_t half = 0; half < 2; ++half) {
          ValueRange pair = sums.slice((i * 2 * tilesB + j) * 4 + 2 * half, 2);
          Index place = sumAt(e.add(row, 16 * i + 8 * half), e.add(column, 8 * j));
          e.storeTo(e.sharedAt(shared, place), e.join(SmallVector<Value>(pair)), 8);
        }
  };
  return core;
}

Index DeviceTile::sumAt(Index row, Index column) {
  Index turned = e.bitXor(column, e.mul(e.rem(row, 4), 8));
  return e.mul(e.add(e.mul(row, plan.columns), turned), 4);
}

Value DeviceTile::sums(Value shared, Index row, Index column, int64_t lanes) {
  Type f32 = e.builder.getF32Type();
  return e.loadFrom(e.sharedAt(shared, sumAt(row, column)),
                    lanes == 1 ? f32 : Type(VectorType::get({lanes}, f32)),
                    std::min<int64_t>(4 * lanes, 16));
}

void DeviceTile::emit(Value shared, Value pointerA, Value pointerB, Index row, Index column,
                      Index from, Index to) {
  TileLayout layoutA = TileLayout::of(plan, a, plan.rows),
             layoutB = TileLayout::of(plan, b, plan.columns);
  Core core =
      plan.math == TileMath::Floats ? floatCore(layoutA, layoutB) : tensorCore(layoutA, layoutB);
  TileCopy copyA(e, plan, a, pointerA, layoutA, row), copyB(e, plan, b, pointerB, layoutB, column);
  struct Part {
    TileCopy *copy;
    int64_t place;
  };
  SmallVector<Part, 2> asyncParts, loadedParts;
  for (Part part : {Part{&copyA, 0}, Part{&copyB, layoutA.bytes()}})
    (part.copy->isAsync() ? asyncParts : loadedParts).push_back(part);

  auto stageOf = [&](Index step) {
    return e.sharedAt(shared, e.mul(e.rem(step, plan.stages), plan.stageBytes()));
  };
  auto when = [&](Index step, function_ref<void()> body) {
    if (step.isKnown() && to.isKnown()) {
      if (step.number < to.number)
        body();
      return;
    }
    e.when(e.less(step, to), body);
  };
  auto copy = [&](Index step) {
    if (asyncParts.empty())
      return;
    when(step, [&] {
      Value stage = stageOf(step);
      for (Part part : asyncParts)
        part.copy->copy(e, e.sharedAt(stage, part.place), e.mul(step, plan.depth));
    });
    // A group for each step, empty behind the last, so that their number tells how old they are.
    e.commitCopies();
  };
  SmallVector<Type> types;
  for (Part part : loadedParts)
    llvm::append_range(types, part.copy->chunkTypes());
  auto begin = [&](Index step) {
    SmallVector<Value> chunks;
    for (Part part : loadedParts)
      llvm::append_range(chunks, part.copy->begin(e, e.mul(step, plan.depth)));
    return chunks;
  };
  auto finish = [&](Index step, ArrayRef<Value> chunks) {
    Value stage = stageOf(step);
    for (Part part : loadedParts) {
      size_t count = part.copy->chunkTypes().size();
      part.copy->finish(e, e.sharedAt(stage, part.place), ValueRange(chunks.take_front(count)));
      chunks = chunks.drop_front(count);
    }
  };

  for (int64_t ahead = 0; ahead + 1 < plan.stages; ++ahead) {
    Index step = e.add(from, ahead);
    copy(step);
    if (!loadedParts.empty())
      when(step, [&] { finish(step, begin(step)); });
  }
  auto multiplyStep = [&](Index step, ValueRange sums) {
    if (!asyncParts.empty())
      e.awaitCopies(plan.stages - 2);
    e.barrier();
    Index next = e.add(step, plan.stages - 1);
    bool last = next.isKnown() && to.isKnown() && next.number >= to.number;
    if (last)
      return core.multiply(stageOf(step), sums);
    copy(next);
    SmallVector<Value> chunks;
    if (!loadedParts.empty())
      chunks = e.whenElseZero(e.less(next, to), types, [&] { return begin(next); });
    SmallVector<Value> result = core.multiply(stageOf(step), sums);
    if (!loadedParts.empty())
      when(next, [&] { finish(next, chunks); });
    return result;
  };
  SmallVector<Value> sums;
  if (from.isKnown() && to.isKnown() && to.number - from.number == 1)
    sums = multiplyStep(from, core.zeros);
  else
    sums = e.loop(from, to, 1, core.zeros, multiplyStep);
  e.barrier();
  core.store(shared, sums);
  e.barrier();
}

} // namespace descent
