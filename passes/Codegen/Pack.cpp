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
#include "passes/Codegen/Lanes.h"
#include "passes/Codegen/StoredFloats.h"

using namespace mlir;

namespace descent {

static int64_t depthOf(TileSteps steps) { return steps == TileSteps::Bf16Pairs ? 2 : 1; }

Index packedSteps(Emitter &e, Index depth, TileSteps steps) {
  return steps == TileSteps::Floats ? depth : e.div(e.add(depth, 1), 2);
}

int64_t packedSize(int64_t extent, int64_t depth, int64_t width, TileSteps steps) {
  int64_t words = (depth + depthOf(steps) - 1) / depthOf(steps);
  return (extent + width - 1) / width * width * words + packSlack;
}

Type packedElement(MLIRContext *context, TileSteps steps) {
  return steps == TileSteps::Floats ? Type(Float32Type::get(context))
                                    : Type(IntegerType::get(context, 32));
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

namespace {

/// The code of one pack function.
class Packer {
public:
  Packer(Emitter &e, ValueRange arguments, int64_t width, const CpuTarget &target, PackForm form)
      : e(e), source(arguments[0]), destination(arguments[3]), ld(arguments[2]),
        depth(arguments[5]), width(width), lanes(target.lanes()), form(form),
        perStep(depthOf(form.steps)) {}

  void copyRows(Index from, Index to, int64_t count, bool odd = false);
  void copyPanel(Index from, Index to, Index valid);
  void transposePanel(Index from, Index to, Index valid);

  /// `body(k, count, odd)` for all steps: `unroll` at a time, then single ones; `odd` is set for
  /// the last one where its pair is half empty.
  void forEachStep(int64_t unroll, llvm::function_ref<void(Index k, int64_t count, bool odd)> body);

  Index stepOf(Index k) { return perStep == 1 ? k : e.div(k, perStep); }

private:
  /// A step from what is stored at its one or two k; a null `second` is zero.
  Value step(Value first, Value second) {
    return form.steps == TileSteps::Floats ? widenStored(e, first, form.element)
                                           : bf16Pairs(e, first, second, form.element);
  }

  Emitter &e;
  Value source, destination;
  Index ld, depth;
  int64_t width, lanes;
  PackForm form;
  int64_t perStep; ///< elements of k in a step
};

} // namespace

void Packer::forEachStep(int64_t unroll, llvm::function_ref<void(Index, int64_t, bool)> body) {
  Index unrolled = e.roundDown(depth, unroll * perStep), even = e.roundDown(depth, perStep);
  e.loop(0, unrolled, unroll * perStep, [&](Index k) { body(k, unroll, false); });
  e.loop(unrolled, even, perStep, [&](Index k) { body(k, 1, false); });
  if (perStep > 1)
    e.when(e.less(even, depth), [&] { body(even, 1, true); });
}

/// Copies `count` steps of one whole panel, in vectors of powers of two.
void Packer::copyRows(Index from, Index to, int64_t count, bool odd) {
  for (int64_t u = 0; u < count; ++u) {
    Index at = e.add(from, e.mul(ld, u * perStep)), put = e.add(to, u * width);
    for (int64_t r = 0, chunk; r < width; r += chunk) {
      chunk = lanes;
      while (chunk > width - r)
        chunk /= 2;
      Value first = e.loadVector(source, e.add(at, r), chunk), second;
      if (perStep > 1 && !odd)
        second = e.loadVector(source, e.add(e.add(at, ld), r), chunk);
      e.storeVector(step(first, second), destination, e.add(put, r));
    }
  }
}

/// Copies all steps of one panel. `valid`: how many of its lanes exist in the source.
void Packer::copyPanel(Index from, Index to, Index valid) {
  SmallVector<Value> masks;
  for (int64_t r = 0; r < width; r += lanes) {
    bool whole = valid.isKnown() && valid.number >= r + lanes;
    masks.push_back(whole ? Value() : e.prefixMask(e.sub(valid, r), lanes));
  }
  forEachStep(4, [&](Index k0, int64_t count, bool odd) {
    for (int64_t u = 0; u < count; ++u) {
      Index k = e.add(k0, u * perStep);
      Index at = e.add(from, e.mul(k, ld)), put = e.add(to, e.mul(stepOf(k), width));
      SmallVector<Value> vectors;
      for (auto [position, mask] : llvm::enumerate(masks)) {
        auto load = [&](Index offset) {
          return mask ? e.loadMasked(source, offset, mask) : e.loadVector(source, offset, lanes);
        };
        Index offset = e.add(at, position * lanes);
        Value first = load(offset), second;
        if (perStep > 1 && !odd)
          second = load(e.add(offset, ld));
        vectors.push_back(step(first, second));
      }
      for (auto [position, vector] : llvm::enumerate(vectors))
        e.storeVector(vector, destination, e.add(put, position * lanes));
    }
  });
}

void Packer::transposePanel(Index from, Index to, Index valid) {
  int64_t groups = (width + 7) / 8;
  e.loop(0, groups, 1, [&](Index reversed) {
    Index group = e.mul(e.sub(groups - 1, reversed), 8);
    SmallVector<Index> rows;
    for (int64_t q = 0; q < 8; ++q)
      rows.push_back(e.add(from, e.mul(e.min(e.add(group, q), e.sub(valid, 1)), ld)));
    Index put = e.add(to, group);
    // Eight steps of eight rows at a time. The two halves of a pair lie side by side already.
    auto block = [&](Index k) {
      SmallVector<Value> vectors;
      for (Index row : rows) {
        Value stored = e.loadVector(source, e.add(row, k), 8 * perStep);
        if (perStep == 1) {
          vectors.push_back(widenStored(e, stored, form.element));
          continue;
        }
        vectors.push_back(vector::BitCastOp::create(e.builder, e.loc,
                                                    VectorType::get({8}, e.builder.getI32Type()),
                                                    bf16Bits(e, stored, form.element)));
      }
      Index at = e.add(put, e.mul(stepOf(k), width));
      for (auto [step, vector] : llvm::enumerate(transpose8x8(e, vectors)))
        e.storeVector(vector, destination, e.add(at, step * width));
    };
    forEachStep(8, [&](Index k, int64_t count, bool odd) {
      if (count == 8)
        return block(k);
      Index at = e.add(put, e.mul(stepOf(k), width));
      SmallVector<Value> words;
      for (Index row : rows) {
        Value first = e.load(source, e.add(row, k)), second;
        if (perStep > 1 && !odd)
          second = e.load(source, e.add(e.add(row, k), 1));
        words.push_back(step(first, second));
      }
      for (auto [q, word] : llvm::enumerate(words))
        e.store(word, destination, e.add(at, q));
    });
  });
}

static std::string nameOf(int64_t width, bool transposed, const PackForm &form) {
  std::string name = transposed ? "descent_pack_transposed_" : "descent_pack_";
  llvm::raw_string_ostream stream(name);
  stream << width;
  if (!form.element.isF32())
    stream << "_" << form.element;
  if (form.steps == TileSteps::Bf16Pairs)
    stream << "_pairs";
  return name;
}

func::FuncOp getOrCreatePack(ModuleOp module, int64_t width, bool transposed,
                             const CpuTarget &target, PackForm form) {
  MLIRContext *context = module.getContext();
  if (!form.element)
    form.element = Float32Type::get(context);
  Type index = IndexType::get(context), source = flatType(storageType(form.element)),
       destination = flatType(packedElement(context, form.steps));
  return getOrCreateHelper(
      module, nameOf(width, transposed, form),
      {source, index, index, destination, index, index, index},
      [&](Emitter &e, ValueRange arguments) {
        Packer packer(e, arguments, width, target, form);
        Index from = arguments[1], ld = arguments[2], to = arguments[4], depth = arguments[5],
              extent = arguments[6];
        Index steps = packedSteps(e, depth, form.steps);
        if (transposed) {
          e.loop(0, extent, width, [&](Index r) {
            packer.transposePanel(e.add(from, e.mul(r, ld)), e.add(to, e.mul(r, steps)),
                                  e.min(e.sub(extent, r), width));
          });
          return;
        }
        Index full = e.roundDown(extent, width);
        // Eight steps of the source at a time: it is read along its rows, and each panel gets a run
        // of some hundred bytes.
        packer.forEachStep(8, [&](Index k, int64_t count, bool odd) {
          Index at = e.add(from, e.mul(k, ld)), put = e.add(to, e.mul(packer.stepOf(k), width));
          e.loop(0, full, width, [&](Index r) {
            packer.copyRows(e.add(at, r), e.add(put, e.mul(r, steps)), count, odd);
          });
        });
        e.when(e.less(full, extent), [&] {
          packer.copyPanel(e.add(from, full), e.add(to, e.mul(full, steps)), e.sub(extent, full));
        });
      });
}

} // namespace descent
