//===- TableRows.h - Kernels of one op, and rows of a table by index ------===//

#ifndef DESCENT_PASSES_CODEGEN_TABLEROWS_H
#define DESCENT_PASSES_CODEGEN_TABLEROWS_H

#include "dialects/Exec/Exec.h"
#include "passes/Codegen/Lanes.h"

namespace descent {

/// Whether an op is all that its kernel holds, on the kernel's inputs in their order.
inline bool isAlone(mlir::Operation *op, exec::KernelOp kernel) {
  mlir::Block &body = kernel.getBody().front();
  return op->getNextNode() == body.getTerminator() && op->getOperands() == body.getArguments() &&
         op->getResults() == body.getTerminator()->getOperands();
}

/// The only op of a kernel.
template <typename OpTy> mlir::FailureOr<OpTy> soleOp(exec::KernelOp kernel) {
  auto op = mlir::dyn_cast<OpTy>(kernel.getBody().front().front());
  if (!op || !isAlone(op, kernel))
    return kernel.emitError() << "a kernel of kind \"" << kernel.getKind() << "\" holds one op, '"
                              << OpTy::getOperationName()
                              << "', on the kernel's inputs in their order",
           mlir::failure();
  return op;
}

/// The row that an index names, which counts from the end where it is negative. The runtime checks
/// a batch's indices before a step and names what is out of range; the clamp here only keeps an
/// unchecked index inside the table's memory.
mlir::Value tableRow(Lanes &lanes, mlir::Value index, int64_t rows);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_TABLEROWS_H
