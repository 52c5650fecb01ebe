//===- DeviceTile.h - The tile of every product on a device ---------------===//
//
// One block's part of a product: rows x columns sums over a range of k, with both operands brought
// to shared memory in steps of the plan's depth, several steps ahead of the one that is multiplied.
// Where the operands stand say two TileSources; what becomes of the sums says the caller, who gets
// them in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICETILE_H
#define DESCENT_PASSES_CUDA_DEVICETILE_H

#include "passes/Cuda/DeviceTilePlan.h"
#include "passes/Cuda/DeviceTileSource.h"

namespace descent {

/// How the lines of one operand lie in shared memory: `lines` lines of `chunks` chunks of 16 bytes,
/// both known. Chunk c of line l stands at chunk c ^ turn(l) of its line, so that the lines which a
/// warp reads one chunk of at a time differ in banks.
struct TileLayout {
  int64_t lines = 0, chunks = 0, chunkElements = 0;
  int64_t shift = 0, swizzled = 1, factor = 1;

  static TileLayout of(const DeviceTilePlan &plan, const TileSource &source, int64_t extent);
  int64_t lineBytes() const { return 16 * chunks; }
  int64_t bytes() const { return lines * lineBytes(); }
  /// factor * ((line >> shift) mod swizzled)
  Index turn(TileOps &e, Index line) const;
  Index chunkAt(TileOps &e, Index line, Index chunk) const;
};

/// Brings tiles of one operand to shared memory, each thread the same chunks of each tile.
class TileCopy {
public:
  /// `start` is the block's first row (or column).
  TileCopy(TileOps &e, const DeviceTilePlan &plan, const TileSource &source, mlir::Value pointer,
           const TileLayout &layout, Index start);

  /// Whether copies bypass registers. Where they cannot (types to be converted, pieces of two bytes
  /// or one), `begin` loads chunks and `finish` stores them.
  static bool isAsync(const DeviceTilePlan &plan, const TileSource &source);
  bool isAsync() const { return isAsync(plan, source); }
  llvm::SmallVector<mlir::Type> chunkTypes() const;
  /// The tile from `k` on to the shared address `to`, or the chunks of it.
  void copy(TileOps &e, mlir::Value to, Index k);
  llvm::SmallVector<mlir::Value> begin(TileOps &e, Index k);
  void finish(TileOps &e, mlir::Value to, mlir::ValueRange chunks);

private:
  const DeviceTilePlan &plan;
  const TileSource &source;
  TileLayout layout;
  mlir::Value pointer;
  int64_t unit, passes, linesPerPass;
  Index firstLine = 0, firstRun = 0;
  llvm::SmallVector<TilePlace> fixed;    ///< of what is not k: a line for each pass, or the runs
  llvm::SmallVector<Index> to;           ///< of each pass, in the tile
  llvm::SmallVector<mlir::Value> active; ///< of each pass, null: all threads

  /// `body` for each piece of the chunk of `pass`.
  void forEachPiece(TileOps &e, Index k, int64_t pass, llvm::ArrayRef<TilePlace> moving,
                    llvm::function_ref<void(int64_t element, const TilePlace &)> body);
  llvm::SmallVector<TilePlace> movingPlaces(TileOps &e, Index k);
  mlir::Value convert(TileOps &e, mlir::Value chunk);
};

class DeviceTile {
public:
  DeviceTile(TileOps &e, const DeviceTilePlan &plan, const TileSource &a, const TileSource &b)
      : e(e), plan(plan), a(a), b(b) {}

  /// Sums the tile whose first element is (row, column) over steps [from, to) of the plan's depth,
  /// and leaves it in the `shared` memory, of plan.sharedBytes(), for all threads to read.
  void emit(mlir::Value shared, mlir::Value pointerA, mlir::Value pointerB, Index row, Index column,
            Index from, Index to);

  /// Blocks that are to fit a multiprocessor: 512 threads, of up to 128 registers; or 256 where
  /// operands go through registers, or where f32 is multiplied in pairs (`capability` 100 on) and
  /// the columns have to be paired first, or where an epilogue of some length (`epilogueOps`) needs
  /// registers beside those of f32's core, which fill 128. Left to itself the device's assembler
  /// aims at more blocks, and spills a few registers for them.
  static int64_t blocksPerMultiprocessor(const DeviceTilePlan &plan, const TileSource &a,
                                         const TileSource &b, int capability, size_t epilogueOps);

  /// `lanes` (a power of two, at most 8) neighbouring sums, from a multiple of `lanes` on, as f32
  /// or a vector of it.
  mlir::Value sums(mlir::Value shared, Index row, Index column, int64_t lanes);

private:
  TileOps &e;
  const DeviceTilePlan &plan;
  const TileSource &a, &b;

  using Multiply =
      std::function<llvm::SmallVector<mlir::Value>(mlir::Value stage, mlir::ValueRange sums)>;
  /// The step on a stage in shared memory; `zeros` and `store` for its sums.
  struct Core {
    llvm::SmallVector<mlir::Value> zeros;
    Multiply multiply;
    std::function<void(mlir::Value shared, mlir::ValueRange sums)> store;
  };
  Core floatCore(const TileLayout &layoutA, const TileLayout &layoutB);
  Core tensorCore(const TileLayout &layoutA, const TileLayout &layoutB);
  Index sumAt(Index row, Index column);
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICETILE_H
