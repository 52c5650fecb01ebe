//===- DeviceAttentionTiles.h - Tiles of attention on the tensor cores ----===//
//
// A block of 4 warps owns 64 * m rows of one head and walks the rows of the same head in tiles of
// `columns` rows; a warp owns 16 * m of the block's rows. A tile lies in shared memory as rows of
// P narrow floats, P being the head size rounded up to a multiple of 16; what is beyond the head's
// columns or the sequence's end is zero there.
//
// Banks: a row is P/8 chunks of 16 bytes, a multiple of 2^s but of no higher power (s at most 3).
// Chunk c of row r stands at chunk c ^ ((r >> (3 - s)) mod 2^s) of the row. Eight consecutive rows
// then have one logical chunk in eight different places mod 128 bytes, which is what ldmatrix
// reads at a time: (r * P/8) mod 8 takes 2^(3-s) values over eight rows, and the rows that share
// one differ in what their chunk is xored with. Copies write aligned groups of 2^s chunks, whole.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_DEVICEATTENTIONTILES_H
#define DESCENT_PASSES_CUDA_DEVICEATTENTIONTILES_H

#include "passes/Codegen/AttentionForm.h"
#include "passes/Cuda/DeviceAttentionOps.h"
#include <array>

namespace descent {

/// How a kernel is cut. Figures in DeviceAttention.cpp.
struct AttentionCut {
  int64_t rowTiles = 1; ///< m
  int64_t columns = 64; ///< rows of a tile that is walked over: 32 or 64
  bool reread = false;  ///< own rows are read from shared memory for every tile, and not kept
  int64_t blocksPerMultiprocessor = 2; ///< that registers are to suffice for

  int64_t blockRows() const { return 64 * rowTiles; }
};

constexpr int64_t attentionThreads = 128;
inline int64_t paddedDepth(const AttentionForm &form) { return llvm::alignTo(form.depth, 16); }

/// Rows of one operand: row r of the block's head starts `rowBytes` * r behind the head's first.
struct HeadRows {
  mlir::Value base; ///< of the buffer, in global memory, with the operand's offset
  int64_t rowBytes = 0;
  bool vectors = false; ///< rows are multiples of 16 bytes, and start at such
};

class AttentionTiles : public WarpOps {
public:
  AttentionTiles(mlir::gpu::GPUFuncOp function, mlir::Value shared, const AttentionForm &form,
                 const AttentionCut &cut);

  const AttentionForm &form;
  const AttentionCut cut;
  const int64_t padded, tileBytes, blockRows, depthSteps;
  mlir::Value shared;
  Word thread = 0, lane = 0, warp = 0, laneRow = 0, laneColumn = 0; ///< of accumulators: g and q
  Word batchHead = 0, blockTile = 0, warpRow = 0;
  mlir::Value scoreScale; ///< scale * log2(e)

  HeadRows rows(mlir::Value pointer, const AttentionOperand &operand);
  /// i64 offset of this thread's first chunk in row `row`, for rows of that stride.
  Word copyStart(int64_t rowBytes, Word row);
  /// Copies rows [row, row + count) to shared memory at `place`; `start` is copyStart of `row`.
  void copyRows(Word place, int64_t count, Word row, const HeadRows &source, Word start);

  /// Address of statistic `row` of this head.
  mlir::Value statistic(mlir::Value pointer, const AttentionOperand &operand, Word row);

  using Accumulators = llvm::SmallVector<llvm::SmallVector<Values>>; ///< [m][column tile][4]
  Accumulators zeros(int64_t columnTiles);
  static Values flatten(const Accumulators &sums);
  Accumulators restore(mlir::ValueRange values, int64_t columnTiles);
  using Fragments = llvm::SmallVector<Values>; ///< of A: [m][4]
  using FragmentSource = llvm::function_ref<Fragments(int64_t step)>;

  /// Shared address of this warp's rows in the block's rows at `place`.
  mlir::Value warpRows(Word place);
  Fragments ownFragments(mlir::Value base, int64_t step);
  /// sums[m][n] += own rows * (rows of the tile)^T, over the head's columns.
  void multiplyByRows(FragmentSource own, mlir::Value tile, Accumulators &sums);
  /// sums[m][d] += weights * tile, over the tile's rows. Weights are fragments [m][rows / 16].
  void multiplyByColumns(const llvm::SmallVector<Fragments> &weights, mlir::Value tile,
                         Accumulators &sums);
  /// Accumulators [column tile][4] of 16 rows as the fragments of A that hold the same numbers.
  Fragments asFragments(const llvm::SmallVector<Values> &sums);

  /// Number within the block of the row that accumulator elements 2 * half, 2 * half + 1 of tile m
  /// belong to.
  Word accumulatorRow(int64_t m, int64_t half);
  /// Rounds sums * scale to the rows of `target` from `row` on. scale[2 * m + half], or null: 1.
  /// Uses shared memory at 0, so all warps must be done with it; warps need not meet in between.
  void storeRows(const Accumulators &sums, mlir::ValueRange scale, const HeadRows &target,
                 Word row);
  /// `then` in the one of the lanes that share an accumulator row, if `row` exists.
  void once(Word row, int64_t rowsOfBlock, llvm::function_ref<void()> then);
  /// Null if every row of blocks (or tiles) of `count` rows exists.
  mlir::Value exists(Word row, int64_t count);

private:
  int64_t swizzleBits;                      // s
  Word copyRow = 0, copyChunk = 0;          // this thread's part of a pass
  mlir::Value copyPlace;                    // shared address of that, at offset 0
  llvm::SmallVector<Word> placesA, placesB; // lane offsets for ldmatrix, by step
  Word headOffset = 0;                      // i64 bytes of the head's columns
  Word batchRow = 0;                        // i64, first row of the batch's sequence

  Word swizzled(Word chunk, Word row);
  mlir::Value chunkExists(Word chunk, int64_t column);
  Values fragment(mlir::Value base, llvm::ArrayRef<Word> places, int64_t row, int64_t step,
                  bool transposed);
  void copyByElements(mlir::Value place, const HeadRows &source, Word start, int64_t advance,
                      int64_t column, mlir::Value rowExists);
  void storeChunk(mlir::Value chunk, const HeadRows &target, Word offset, Word chunkNumber,
                  int64_t column);
};

} // namespace descent

#endif // DESCENT_PASSES_CUDA_DEVICEATTENTIONTILES_H
