//===- Pack.h - Operands of matrix products in panels ---------------------===//
//
// A packed operand is a row of panels. A panel holds `width` rows of A (or columns of B) over the
// whole depth, step by step: step s of row r of panel p stands at p * width * steps + s * width +
// r. That is the order in which the register tile reads it, one contiguous stream whatever the
// strides of the matrix. Lanes past the last row hold something finite or not; their products are
// never stored.
//
// A step is one f32, or a pair of bf16 (k even in the lower half of 32 bits, k odd in the upper)
// for CPUs that multiply such pairs; where the depth is odd the last pair ends with a zero. Either
// way it is 32 bits, and panels of the same number of steps look the same.
//
// Operands in narrow types are widened here, where each element passes once, and not in the tile,
// where it would be widened again for every row or column that it meets.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_PACK_H
#define DESCENT_PASSES_CODEGEN_PACK_H

#include "passes/Codegen/CpuTarget.h"
#include "passes/Codegen/Emitter.h"
#include "passes/Codegen/Tile.h"

namespace descent {

/// Words of 32 bits that packing may write beyond panels * width * steps.
inline constexpr int64_t packSlack = 16;

/// What packed operands hold. An empty `element` is f32.
struct PackForm {
  mlir::Type element; ///< of the source: any that isProductElement
  TileSteps steps = TileSteps::Floats;
};

/// Steps of a depth.
Index packedSteps(Emitter &emitter, Index depth, TileSteps steps);

/// Words of 32 bits of a packed operand of `extent` rows and `depth`, slack included.
int64_t packedSize(int64_t extent, int64_t depth, int64_t width,
                   TileSteps steps = TileSteps::Floats);

/// The type of the words: f32, or i32 for pairs.
mlir::Type packedElement(mlir::MLIRContext *context, TileSteps steps);

/// The private function (source, sourceOffset, ld, destination, destinationOffset, depth, extent)
/// that packs a matrix into panels of `width`. The source is flat in the storage type of the
/// element, the destination flat in packedElement. Element (k, r) of the source stands at
/// sourceOffset + k * ld + r or, with `transposed`, at sourceOffset + r * ld + k. Panels are
/// written in order; what follows a panel's end is overwritten by up to packSlack words.
mlir::func::FuncOp getOrCreatePack(mlir::ModuleOp module, int64_t width, bool transposed,
                                   const CpuTarget &target, PackForm form = {});

/// Transposes eight vectors of eight elements of 32 bits: element j of result i is element i of
/// vector j.
llvm::SmallVector<mlir::Value> transpose8x8(Emitter &emitter, llvm::ArrayRef<mlir::Value> rows);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_PACK_H
