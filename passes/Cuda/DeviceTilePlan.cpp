//===- DeviceTilePlan.cpp - How a product is cut for a device -------------===//
//
// Large tiles move fewer bytes for each multiplication, small ones give a small product enough
// blocks to fill a chip and waste less at its edges. The model knows just that: the work of all
// tiles, whole, at the rate of the tile's shape, on as many blocks as there are, up to those that a
// chip of today runs at a time. Where even small tiles are too few and k is long, k is cut as well.
//
// Rates are relative, by counting instructions: an 8x8 tile of a thread does 64 multiply-adds for
// four loads of 16 bytes, a 4x4 tile 16 for two; a warp's 64x32 tile feeds 16 mma with six
// ldmatrix, 32x32 eight with four.
//
//===----------------------------------------------------------------------===//

#include "passes/Cuda/DeviceTilePlan.h"
#include "dialects/NN/NN.h"
#include "passes/Codegen/StoredFloats.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

TileMath tileMathFor(Type a, Type b) {
  auto fits = [&](auto holds) { return holds(a) && holds(b); };
  if (fits([](Type type) { return type.isF16() || nn::isF8(type); }))
    return TileMath::F16;
  if (fits([](Type type) { return fitsBf16(type); }))
    return TileMath::Bf16;
  return TileMath::Floats;
}

Type DeviceTilePlan::element(MLIRContext *context) const {
  switch (math) {
  case TileMath::Floats:
    return Float32Type::get(context);
  case TileMath::Bf16:
    return BFloat16Type::get(context);
  case TileMath::F16:
    return Float16Type::get(context);
  }
  return {};
}

namespace {

struct TileShape {
  int64_t rows, columns, partRows, partColumns;
  double rate;
};

constexpr TileShape floatShapes[] = {{128, 128, 8, 8, 1.0},
                                     {64, 64, 4, 4, 0.75},
                                     {128, 32, 8, 4, 0.7},
                                     {32, 128, 4, 8, 0.7},
                                     {32, 32, 4, 4, 0.5}};
constexpr TileShape tensorShapes[] = {{128, 128, 64, 32, 1.0},
                                      {64, 64, 32, 32, 0.7},
                                      {128, 32, 32, 32, 0.6},
                                      {32, 128, 32, 32, 0.6},
                                      {32, 32, 32, 16, 0.35}};

/// Blocks that are at work at a time on chips of today, about.
constexpr int64_t chipBlocks = 128;
/// Least depth of a part of k: shorter ones spend more on the partial sums than they win.
constexpr int64_t leastSplit = 256;

} // namespace

DeviceTilePlan planDeviceTile(TileMath math, const ProductSizes &sizes) {
  bool floats = math == TileMath::Floats;
  DeviceTilePlan best;
  double leastTime = 0;
  // A depth beyond k would be zeros; below four chunks of 16 bytes rows of k are no longer moved in
  // whole sectors anyway.
  int64_t most = floats ? 32 : 64, least = floats ? 4 : 16;
  int64_t depth =
      std::clamp<int64_t>(static_cast<int64_t>(llvm::PowerOf2Ceil(sizes.k)), least, most);
  int64_t steps = llvm::divideCeil(sizes.k, depth);
  for (const TileShape &shape : floats ? ArrayRef(floatShapes) : ArrayRef(tensorShapes)) {
    int64_t blocks = sizes.batch * llvm::divideCeil(sizes.m, shape.rows) *
                     llvm::divideCeil(sizes.n, shape.columns);
    int64_t splits = std::clamp<int64_t>(llvm::divideCeil(2 * chipBlocks, blocks), 1,
                                         std::max<int64_t>(1, sizes.k / leastSplit));
    int64_t splitSteps = llvm::divideCeil(steps, splits);
    splits = llvm::divideCeil(steps, splitSteps);
    double waves = std::max(1.0, double(blocks * splits) / chipBlocks);
    double time = waves * double(shape.rows * shape.columns) * double(splitSteps) / shape.rate;
    if (best.rows && !(time < leastTime))
      continue;
    leastTime = time;
    best = {math,         shape.rows, shape.columns, depth, shape.partRows, shape.partColumns,
            /*stages=*/2, splits,     splitSteps};
  }
  return best;
}

} // namespace descent
