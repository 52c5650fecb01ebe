//===- Epilogue.h - What happens to a tile of a product -------------------===//

#ifndef DESCENT_PASSES_CODEGEN_EPILOGUE_H
#define DESCENT_PASSES_CODEGEN_EPILOGUE_H

#include "passes/Codegen/Product.h"

namespace descent {

/// Refuses epilogues that break EpilogueSpec's rules, at `loc`, naming the kernel.
mlir::LogicalResult checkEpilogue(mlir::Location loc, const ProductSpec &spec);

/// The private function (accumulators, offset, ld, row, column, rows, columns, inputs...,
/// outputs...), buffers flat, that applies the epilogue of `spec` to a tile of products: `row` and
/// `column` say where in batch * m and n the tile stands.
mlir::func::FuncOp createEpilogue(mlir::ModuleOp module, mlir::Location loc,
                                  const ProductSpec &spec, const CpuTarget &target);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_EPILOGUE_H
