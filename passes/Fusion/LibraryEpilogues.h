//===- LibraryEpilogues.h - What fold-epilogues does for a library --------===//
//
// fold-epilogues moves whatever is elementwise behind a product, which generated code can compute.
// A library cannot: these are the steps that prepare a program for one and choose what moves.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_FUSION_LIBRARYEPILOGUES_H
#define DESCENT_PASSES_FUSION_LIBRARYEPILOGUES_H

#include "passes/Fusion/LibraryForm.h"
#include "llvm/ADT/SetVector.h"

namespace descent::fusion {

/// The fusions whose product a library computes: of one nn.matmul.
bool isLibraryProduct(exec::FusionOp fusion);

/// Writes `library` on the products of a library, and `compute = "tf32"` where both operands were
/// rounded to TF32.
void markLibraryProducts(mlir::Block &block);

/// Lets the backward pass compute the derivative of an activation behind a product, from what the
/// product stores in any case; see the .cpp. Returns how many derivatives moved.
unsigned sinkDerivatives(mlir::Block &block);

/// The next op of `rows`, with those it needs, that a library computes behind `product`; empty if
/// there is none.
llvm::SmallSetVector<mlir::Operation *, 8> nextLibraryOps(exec::FusionOp product,
                                                          exec::FusionOp rows);

} // namespace descent::fusion

#endif // DESCENT_PASSES_FUSION_LIBRARYEPILOGUES_H
