//===- AttentionEmitter.h - What attention and its gradient share ---------===//
//
// Places of rows in memory, scratch, K^T packed into panels, tiles over a block of scores, and the
// exponential of softmax.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_ATTENTIONEMITTER_H
#define DESCENT_PASSES_CODEGEN_ATTENTIONEMITTER_H

#include "passes/Codegen/AttentionForm.h"
#include "passes/Codegen/KernelFunction.h"
#include "passes/Codegen/Tile.h"

namespace descent {

/// A thread's scratch, laid out before the function exists: sizes in floats, places in bytes that
/// are multiples of a cache line.
class ScratchLayout {
public:
  int64_t take(int64_t floats) {
    int64_t place = bytes;
    bytes += (floats * 4 + 63) / 64 * 64;
    return place;
  }
  int64_t bytes = 0;
};

/// Rows in a flat buffer, of f32 or, as i16, of the form's narrow type: element (r, c) is at start
/// + r * stride + c.
struct RowView {
  mlir::Value buffer;
  Index start = 0;
  int64_t stride = 0;
};

/// Floats from one staged row to the next: an odd number of cache lines, so that the rows of a tile
/// do not share cache sets.
inline int64_t stagedStride(const AttentionForm &form) {
  return llvm::alignTo(form.depth, 32) + 16;
}

class AttentionEmitter : public Emitter {
public:
  AttentionEmitter(mlir::OpBuilder &builder, mlir::Location loc, const AttentionForm &form,
                   mlir::func::FuncOp function, mlir::ModuleOp module, const CpuTarget &target);

  const AttentionForm &form;
  const CpuTarget &target;
  const int64_t lanes; ///< of a vector
  const int64_t panel; ///< columns of a tile

  /// Rows of one head of a [B, T, H*D] operand.
  RowView headRows(const AttentionOperand &operand, Index batch, Index head);
  mlir::Value buffer(unsigned number) { return buffers[number]; }
  /// A flat f32 buffer in the scratch.
  mlir::Value scratchAt(int64_t byteOffset) {
    return carve(scratch, byteOffset, builder.getF32Type());
  }
  Index firstTask = 0, lastTask = 0;

  /// A narrow form's D columns as f32: `scratch` as rows that go by the numbers of rows [from, ...)
  /// of the sequence.
  RowView stagedRows(mlir::Value scratch, Index from);
  /// stagedRows holding a copy of rows [from, from + count) of `source`; `source` itself where the
  /// form is f32.
  RowView widened(const RowView &source, Index from, Index count, mlir::Value scratch);
  /// Rounds rows [from, from + count) of `staged` to `target`.
  void narrowRows(const RowView &staged, const RowView &target, Index from, Index count);

  /// Packs rows [0, count) of a [count, D] view into B panels of its transpose: element (r, k) at
  /// (r / panel) * panel * D + k * panel + r % panel. Rows up to the next multiple of the panel are
  /// zero. Narrow rows are widened.
  void packTransposed(const RowView &source, Index count, mlir::Value packed);
  /// Where the panel that begins with row `row` (a multiple of the panel) starts.
  Index panelOf(Index row) { return mul(row, form.depth); }

  /// Calls `body(row, rows)` for the row tiles of a block of `count` rows, a whole block or the
  /// last one of a sequence of length T.
  void rowTiles(Index count, int64_t block, llvm::function_ref<void(Index, int)> body);
  /// scores[row .. row + rows) x panel = rows of `a` times a packed panel.
  void scoreTile(int rows, const RowView &a, Index row, mlir::Value packed, Index panelStart,
                 const RowView &scores, Index column);
  /// c[cRow .. + rows) (+)= A b over k rows of b: A's element (i, kk) is at aOffset + i * lda + kk
  /// (TileA::Rows) or aOffset + kk * lda + i.
  void productTiles(int rows, TileA layout, mlir::Value a, Index aOffset, int64_t lda,
                    const RowView &b, Index bRow, const RowView &c, Index cRow, Index k,
                    mlir::Value accumulate);

  // Vectors of `lanes` f32.
  mlir::Value vectorAt(mlir::Value memory, Index at) { return loadVector(memory, at, lanes); }
  mlir::Value splat(mlir::Value scalar) { return Emitter::splat(scalar, lanes); }
  mlir::Value constantVector(double value) { return Emitter::constantVector(value, lanes); }
  mlir::Value mask(Index count) { return prefixMask(count, lanes); }
  mlir::Value choose(mlir::Value mask, mlir::Value a, mlir::Value b);
  mlir::Value addf(mlir::Value a, mlir::Value b);
  mlir::Value subf(mlir::Value a, mlir::Value b);
  mlir::Value mulf(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  /// max(bound, x), and x if either is NaN: what x86's instruction does, so it costs one, and NaN
  /// passes through.
  mlir::Value atLeast(mlir::Value x, mlir::Value bound);
  /// min(bound, x), likewise.
  mlir::Value atMost(mlir::Value x, mlir::Value bound);
  /// Sum over the lanes, in an order that only the number of lanes decides.
  mlir::Value sum(mlir::Value vector);
  /// exp(scale * x) for x <= 0, never below 2^-125; NaN for NaN.
  mlir::Value exponential(mlir::Value x);
  /// The scale of the scores, 1/sqrt(D).
  double scale() const;

  /// Calls `body(column, mask)` for the vectors of a row of D columns; the mask is null where all
  /// lanes count.
  void depthVectors(llvm::function_ref<void(Index, mlir::Value)> body);
  /// `lanes` f32 from and to memory of f32 or, as i16, of the form's narrow type.
  mlir::Value loadPart(mlir::Value memory, Index at, mlir::Value mask);
  void storePart(mlir::Value vector, mlir::Value memory, Index at, mlir::Value mask);

private:
  mlir::ModuleOp module;
  llvm::SmallVector<mlir::Value> buffers;
  mlir::Value scratch;

  llvm::SmallVector<mlir::Value> transpose8(llvm::ArrayRef<mlir::Value> rows);
  /// f32 of what a buffer holds, scalar or vector.
  mlir::Value widen(mlir::Value stored);
};

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_ATTENTIONEMITTER_H
