//===- Tile.h - The register tile of every matrix product -----------------===//
//
// C[rows, columns] = A[rows, k] B[k, columns] with all of C's tile in registers over the k loop:
// the one inner loop behind matrix products, convolutions and attention. A tile is a private
// function with offsets and strides as arguments, so a module holds each kind once, whatever the
// shapes; that is most of what keeps compile time low.
//
// There is no epilogue on the register vectors: it would make every tile a function of its kernel,
// four or more copies of the epilogue for 24 accumulators each. Kernels apply theirs to the tile
// just stored, which is still in L1 (see Gemm.h).
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_TILE_H
#define DESCENT_PASSES_CODEGEN_TILE_H

#include "passes/Codegen/CpuTarget.h"
#include "passes/Codegen/Emitter.h"

namespace descent {

/// Where element (i, k) of A stands.
enum class TileA {
  Packed,  ///< aOffset + k * target.tileRows() + i, also for a tile of fewer rows
  Rows,    ///< aOffset + i * lda + k
  Columns, ///< aOffset + k * lda + i
};

/// Where row k of B stands.
enum class TileB {
  Packed, ///< bOffset + k * target.tileVectors() * target.lanes(), also for a tile of fewer vectors
  Strided, ///< bOffset + k * ldb
};

/// What a step of the k loop multiplies.
enum class TileSteps {
  Floats, ///< one f32 of A with one of B
  /// Two bf16 of each, by vdpbf16ps; A and B are packed, buffers of i32, one pair an element (see
  /// Pack.h). The instruction adds the two exact products to the sum one after the other, rounding
  /// each time, and takes denormal numbers, of sums too, as zero. Only where
  /// target.bf16Products.
  Bf16Pairs,
};

enum class TileMode {
  Store,      ///< C = A B
  Accumulate, ///< C += A B
  Flagged,    ///< C = A B, or C += A B if the argument `accumulate` is true
  Scale,      ///< C[i] = scale[scaleOffset + i] * C[i] + A B
};

struct TileSpec {
  int rows = 0;    ///< 1 .. target.tileRows()
  int vectors = 0; ///< 1 .. target.tileVectors()
  /// The last vector holds only the first columns - (vectors - 1) * lanes lanes: others are neither
  /// read nor written in B and C.
  bool columnTail = false;
  TileA a = TileA::Packed;
  TileB b = TileB::Packed;
  TileMode mode = TileMode::Store;
  TileSteps steps = TileSteps::Floats;
};

/// What one call works on. Buffers are flat f32 (A and B as TileSteps says); strides that the
/// layout fixes, and arguments that the mode does not have, are ignored.
struct TileArguments {
  mlir::Value a;
  Index aOffset = 0, lda = 0;
  mlir::Value b;
  Index bOffset = 0, ldb = 0;
  mlir::Value c;
  Index cOffset = 0, ldc = 0;
  Index k = 0;            ///< steps
  mlir::Value accumulate; ///< Flagged: i1
  mlir::Value scale;      ///< Scale: flat f32
  Index scaleOffset = 0;
  Index columns = 0; ///< columnTail: valid columns, at most vectors * lanes
};

/// The tile's function. Products are summed in the order of k by fused multiply-adds (of pairs:
/// see TileSteps), then added to C (Scale: on top of scaled C); the bits of an element depend on
/// nothing else, in particular not on rows, vectors or layouts.
mlir::func::FuncOp getOrCreateTile(mlir::ModuleOp module, const TileSpec &spec,
                                   const CpuTarget &target);

/// Calls the tile of `spec`, creating it first if the module has none yet.
void callTile(Emitter &emitter, mlir::ModuleOp module, const TileSpec &spec,
              const CpuTarget &target, const TileArguments &arguments);

/// Covers `count` rows with full tiles and one of the remainder: `body(row, rows)` is emitted for
/// the loop over full tiles and once for each of `remainders`, the values that count % tileRows can
/// have at run time (0 may be among them or not).
void forEachRowTile(Emitter &emitter, Index count, const CpuTarget &target,
                    llvm::ArrayRef<int64_t> remainders,
                    llvm::function_ref<void(Index row, int rows)> body);

/// Covers `count` columns likewise: `body(column, vectors, columnTail, columns)`. The tail is a
/// masked tile with `count` % panel columns, emitted once for each number of vectors that `tails`
/// (values of count % panel; panel = tileVectors * lanes) can need.
void forEachColumnTile(
    Emitter &emitter, Index count, const CpuTarget &target, llvm::ArrayRef<int64_t> tails,
    llvm::function_ref<void(Index column, int vectors, bool columnTail, Index columns)> body);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_TILE_H
