//===- Pack.cpp - Operands of matrix products in panels -------------------===//
//
// Where the panel's rows are contiguous in the source, packing copies. Where k is, it transposes
// blocks of 8 x 8 in registers: loads and stores stay 32 bytes wide, and the shuffles of one block
// overlap with the memory traffic of the next.
//
// Where the rows of a panel are no multiple of the vectors stored (12 or 6 of 8, and the last panel
// of a copy), full vectors are stored all the same: what a store writes past its row is the start
// of the next row, which is written later. The transposing form goes through the groups of eight
// rows from last to first for the same reason. Masked stores would say it more plainly, but are
// slow on AVX2 machines.
//
//===----------------------------------------------------------------------===//

#include "passes/Codegen/Pack.h"

using namespace mlir;

namespace descent {

int64_t packedSize(int64_t extent, int64_t depth, int64_t width) {
  return (extent + width - 1) / width * width * depth + packSlack;
}

SmallVector<Value> transpose8x8(Emitter &e, ArrayRef<Value> rows) {
  auto shuffle = [&](Value a, Value b, ArrayRef<int64_t> lanes) -> Value {
    return vector::ShuffleOp::create(e.builder, e.loc, a, b, lanes);
  };
  // Pairs, then fours, within 128-bit halves; then the halves change places.
  SmallVector<Value> pairs, fours, result;
  for (int i = 0; i < 8; i += 2) {
    pairs.push_back(shuffle(rows[i], rows[i + 1], {0, 8, 1, 9, 4, 12, 5, 13}));
    pairs.push_back(shuffle(rows[i], rows[i + 1], {2, 10, 3, 11, 6, 14, 7, 15}));
  }
  for (int b : {0, 4})
    for (int h : {0, 1}) {
      fours.push_back(shuffle(pairs[b + h], pairs[b + h + 2], {0, 1, 8, 9, 4, 5, 12, 13}));
      fours.push_back(shuffle(pairs[b + h], pairs[b + h + 2], {2, 3, 10, 11, 6, 7, 14, 15}));
    }
  for (int i = 0; i < 4; ++i)
    result.push_back(shuffle(fours[i], fours[i + 4], {0, 1, 2, 3, 8, 9, 10, 11}));
  for (int i = 0; i < 4; ++i)
    result.push_back(shuffle(fours[i], fours[i + 4], {4, 5, 6, 7, 12, 13, 14, 15}));
  return result;
}

/// Copies `count` rows k of one whole panel, in vectors of powers of two.
static void copyRows(Emitter &e, Value source, Index from, Index ld, Value destination, Index to,
                     int64_t count, int64_t width, int64_t lanes) {
  for (int64_t u = 0; u < count; ++u) {
    Index at = e.add(from, e.mul(ld, u)), put = e.add(to, u * width);
    for (int64_t r = 0, chunk; r < width; r += chunk) {
      chunk = lanes;
      while (chunk > width - r)
        chunk /= 2;
      e.storeVector(e.loadVector(source, e.add(at, r), chunk), destination, e.add(put, r));
    }
  }
}

/// Copies all rows k of one panel. `valid`: how many of its lanes exist in the source.
static void copyPanel(Emitter &e, Value source, Index from, Index ld, Value destination, Index to,
                      Index depth, int64_t width, Index valid, int64_t lanes) {
  SmallVector<Value> masks;
  for (int64_t r = 0; r < width; r += lanes) {
    bool whole = valid.isKnown() && valid.number >= r + lanes;
    masks.push_back(whole ? Value() : e.prefixMask(e.sub(valid, r), lanes));
  }
  auto row = [&](Index k) {
    Index at = e.add(from, e.mul(k, ld)), put = e.add(to, e.mul(k, width));
    SmallVector<Value> vectors;
    for (auto [position, mask] : llvm::enumerate(masks)) {
      Index offset = e.add(at, position * lanes);
      vectors.push_back(mask ? e.loadMasked(source, offset, mask)
                             : e.loadVector(source, offset, lanes));
    }
    for (auto [position, vector] : llvm::enumerate(vectors))
      e.storeVector(vector, destination, e.add(put, position * lanes));
  };
  Index unrolled = e.roundDown(depth, 4);
  e.loop(0, unrolled, 4, [&](Index k) {
    for (int64_t u = 0; u < 4; ++u)
      row(e.add(k, u));
  });
  e.loop(unrolled, depth, 1, row);
}

static void transposePanel(Emitter &e, Value source, Index from, Index ld, Value destination,
                           Index to, Index depth, int64_t width, Index valid) {
  int64_t groups = (width + 7) / 8;
  e.loop(0, groups, 1, [&](Index reversed) {
    Index group = e.mul(e.sub(groups - 1, reversed), 8);
    SmallVector<Index> rows;
    for (int64_t q = 0; q < 8; ++q)
      rows.push_back(e.add(from, e.mul(e.min(e.add(group, q), e.sub(valid, 1)), ld)));
    Index put = e.add(to, group), whole = e.roundDown(depth, 8);
    e.loop(0, whole, 8, [&](Index k) {
      SmallVector<Value> vectors;
      for (Index row : rows)
        vectors.push_back(e.loadVector(source, e.add(row, k), 8));
      Index at = e.add(put, e.mul(k, width));
      for (auto [step, vector] : llvm::enumerate(transpose8x8(e, vectors)))
        e.storeVector(vector, destination, e.add(at, step * width));
    });
    e.loop(whole, depth, 1, [&](Index k) {
      Index at = e.add(put, e.mul(k, width));
      SmallVector<Value> scalars;
      for (Index row : rows)
        scalars.push_back(e.load(source, e.add(row, k)));
      for (auto [q, scalar] : llvm::enumerate(scalars))
        e.store(scalar, destination, e.add(at, q));
    });
  });
}

func::FuncOp getOrCreatePack(ModuleOp module, int64_t width, bool transposed,
                             const CpuTarget &target) {
  MLIRContext *context = module.getContext();
  Type index = IndexType::get(context), flat = flatType(Float32Type::get(context));
  std::string name =
      (transposed ? "descent_pack_transposed_" : "descent_pack_") + std::to_string(width);
  return getOrCreateHelper(
      module, name, {flat, index, index, flat, index, index, index},
      [&](Emitter &e, ValueRange arguments) {
        Value source = arguments[0], destination = arguments[3];
        Index from = arguments[1], ld = arguments[2], to = arguments[4], depth = arguments[5],
              extent = arguments[6];
        auto panel = [&](Index r, Index valid) {
          Index put = e.add(to, e.mul(r, depth));
          if (transposed)
            transposePanel(e, source, e.add(from, e.mul(r, ld)), ld, destination, put, depth, width,
                           valid);
          else
            copyPanel(e, source, e.add(from, r), ld, destination, put, depth, width, valid,
                      target.lanes());
        };
        if (transposed) {
          e.loop(0, extent, width, [&](Index r) { panel(r, e.min(e.sub(extent, r), width)); });
          return;
        }
        Index full = e.roundDown(extent, width);
        // Eight rows of the source at a time: it is read along its rows, and each panel gets a run
        // of some hundred bytes.
        auto rows = [&](Index k, int64_t count) {
          Index at = e.add(from, e.mul(k, ld)), put = e.add(to, e.mul(k, width));
          e.loop(0, full, width, [&](Index r) {
            copyRows(e, source, e.add(at, r), ld, destination, e.add(put, e.mul(r, depth)), count,
                     width, target.lanes());
          });
        };
        Index unrolled = e.roundDown(depth, 8);
        e.loop(0, unrolled, 8, [&](Index k) { rows(k, 8); });
        e.loop(unrolled, depth, 1, [&](Index k) { rows(k, 1); });
        e.when(e.less(full, extent), [&] { panel(full, e.sub(extent, full)); });
      });
}

} // namespace descent
