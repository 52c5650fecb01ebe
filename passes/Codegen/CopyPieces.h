//===- CopyPieces.h - Moves of elements as strided loop nests -------------===//
//
// What a copy kernel does: for each result, a set of disjoint pieces that cover it. A piece is a
// loop nest with one source and one destination stride per loop; a transpose differs from a slice
// in nothing but its strides.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_COPYPIECES_H
#define DESCENT_PASSES_CODEGEN_COPYPIECES_H

#include "dialects/Exec/Exec.h"

namespace descent {

struct CopyPiece {
  unsigned result = 0;
  int input = -1; ///< -1: `table` if there is one, else every element is `fill`
  mlir::DenseElementsAttr table;
  mlir::TypedAttr fill;
  mlir::Type element;
  llvm::SmallVector<int64_t, 6> sizes; ///< of the loops
  llvm::SmallVector<int64_t, 6> to, from;
  int64_t toBase = 0, fromBase = 0;

  bool readsMemory() const { return input >= 0 || table; }
  int64_t count() const;
  /// Drops loops of size 1, orders loops by destination stride, largest first, and joins neighbours
  /// that are one run on both sides.
  void normalise();
  /// Makes loop `loop` an outer one over blocks of `block` iterations and an inner one; what is
  /// left over becomes the second piece.
  std::pair<CopyPiece, std::optional<CopyPiece>> split(unsigned loop, int64_t block) const;
};

/// The pieces of a kernel of nn.reshape, transpose, broadcast, slice, pad, concat, split and
/// constants. Emits an error at other ops.
mlir::FailureOr<std::vector<CopyPiece>> copyPieces(exec::KernelOp kernel);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_COPYPIECES_H
