//===- Pack.h - Operands of matrix products in panels ---------------------===//
//
// A packed operand is a row of panels. A panel holds `width` rows of A (or columns of B) over the
// whole depth, k by k: element (k, r) of panel p stands at p * width * depth + k * width + r. That
// is the order in which the register tile reads it, one contiguous stream whatever the strides of
// the matrix. Lanes past the last row hold something finite or not; their products are never
// stored.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_PACK_H
#define DESCENT_PASSES_CODEGEN_PACK_H

#include "passes/Codegen/CpuTarget.h"
#include "passes/Codegen/Emitter.h"

namespace descent {

/// Floats that packing may write beyond panels * width * depth.
inline constexpr int64_t packSlack = 16;

/// Floats of a packed operand of `extent` rows and `depth`, slack included.
int64_t packedSize(int64_t extent, int64_t depth, int64_t width);

/// The private function (source, sourceOffset, ld, destination, destinationOffset, depth, extent),
/// buffers flat f32, that packs a matrix into panels of `width`. Element (k, r) of the source
/// stands at sourceOffset + k * ld + r or, with `transposed`, at sourceOffset + r * ld + k. Panels
/// are written in order; what follows a panel's end is overwritten by up to packSlack floats.
mlir::func::FuncOp getOrCreatePack(mlir::ModuleOp module, int64_t width, bool transposed,
                                   const CpuTarget &target);

/// Transposes eight vectors of eight f32: element j of result i is element i of vector j.
llvm::SmallVector<mlir::Value> transpose8x8(Emitter &emitter, llvm::ArrayRef<mlir::Value> rows);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_PACK_H
