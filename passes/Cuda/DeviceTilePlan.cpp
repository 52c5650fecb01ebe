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
#include "passes/Fusion/LibraryForm.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace descent {

TileMath tileMathFor(Type a, Type b, bool rounded) {
  auto fits = [&](auto holds) { return holds(a) && holds(b); };
  if (fits([](Type type) { return type.isF16() || nn::isF8(type); }))
    return TileMath::F16;
  if (fits([](Type type) { return fitsBf16(type); }))
    return TileMath::Bf16;
  if (rounded && a.isF32() && b.isF32())
    return TileMath::Tf32;
  return TileMath::Floats;
}

Type DeviceTilePlan::element(MLIRContext *context) const {
  switch (math) {
  case TileMath::Floats:
  case TileMath::Tf32:
    return Float32Type::get(context);
  case TileMath::Bf16:
    return BFloat16Type::get(context);
  case TileMath::F16:
    return Float16Type::get(context);
  }
  return {};
}

void DeviceTilePlan::useShared(const CudaTarget &cuda) {
  auto blocks = [&](int64_t count) {
    DeviceTilePlan plan = *this;
    plan.stages = count;
    if (plan.sharedBytes() > cuda.sharedPerBlock)
      return int64_t(0);
    return std::min<int64_t>(
        cuda.sharedPerMultiprocessor / (plan.sharedBytes() + cuda.sharedReserved), 512 / threads());
  };
  constexpr int64_t most = 4;
  while (stages < std::min(most, splitSteps) && blocks(stages + 1) >= blocks(stages))
    ++stages;
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

ArrayRef<TileShape> shapesFor(TileMath math) {
  if (math == TileMath::Floats)
    return floatShapes;
  return tensorShapes;
}

/// The least and the greatest depth of a step: one multiplication, and 128 bytes of a line.
std::pair<int64_t, int64_t> depthsFor(TileMath math) {
  switch (math) {
  case TileMath::Floats:
    return {4, 32};
  case TileMath::Tf32:
    return {8, 32};
  case TileMath::Bf16:
  case TileMath::F16:
    return {16, 64};
  }
  return {};
}

/// Steps of k, cut into about `splits` parts.
void cut(DeviceTilePlan &plan, int64_t steps, int64_t splits) {
  plan.splitSteps = llvm::divideCeil(steps, std::min(splits, steps));
  plan.splits = llvm::divideCeil(steps, plan.splitSteps);
}

/// Blocks that are at work at a time on chips of today, about.
constexpr int64_t chipBlocks = 128;
/// Least depth of a part of k: shorter ones spend more on the partial sums than they win.
constexpr int64_t leastSplit = 256;

} // namespace

DeviceTilePlan planDeviceTile(TileMath math, const ProductSizes &sizes) {
  DeviceTilePlan best;
  double leastTime = 0;
  // A depth beyond k would multiply zeros.
  auto [least, most] = depthsFor(math);
  int64_t depth =
      std::clamp<int64_t>(static_cast<int64_t>(llvm::PowerOf2Ceil(sizes.k)), least, most);
  int64_t steps = llvm::divideCeil(sizes.k, depth);
  for (const TileShape &shape : shapesFor(math)) {
    DeviceTilePlan plan{math, shape.rows, shape.columns, depth, shape.partRows, shape.partColumns};
    int64_t blocks = sizes.batch * llvm::divideCeil(sizes.m, shape.rows) *
                     llvm::divideCeil(sizes.n, shape.columns);
    cut(plan, steps,
        std::clamp<int64_t>(llvm::divideCeil(2 * chipBlocks, blocks), 1,
                            std::max<int64_t>(1, sizes.k / leastSplit)));
    double waves = std::max(1.0, double(blocks * plan.splits) / chipBlocks);
    double time = waves * double(shape.rows * shape.columns) * double(plan.splitSteps) / shape.rate;
    if (best.rows && !(time < leastTime))
      continue;
    leastTime = time;
    best = plan;
  }
  return best;
}

llvm::Expected<DeviceTilePlan> wantedDeviceTile(TileMath math, const ProductSizes &sizes,
                                                ArrayRef<int64_t> wanted) {
  std::string known;
  auto [least, most] = depthsFor(math);
  for (const TileShape &shape : shapesFor(math)) {
    known += " " + std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
    if (wanted.size() != 5 || wanted[0] != shape.rows || wanted[1] != shape.columns)
      continue;
    int64_t depth = wanted[2], stages = wanted[3], splits = wanted[4];
    if (depth < least || depth > most || !llvm::isPowerOf2_64(depth) || stages < 2 || stages > 4 ||
        splits < 1)
      break;
    DeviceTilePlan plan{math,           shape.rows,        shape.columns, depth,
                        shape.partRows, shape.partColumns, stages};
    cut(plan, llvm::divideCeil(sizes.k, depth), splits);
    return plan;
  }
  return llvm::createStringError(
      llvm::Twine(fusion::tileAttrName) +
      " is [rows, columns, depth, stages, splits]: rows x columns one of" + known +
      ", a depth that is a power of two from " + llvm::Twine(least) + " to " + llvm::Twine(most) +
      ", 2 to 4 stages, at least one split");
}

} // namespace descent
