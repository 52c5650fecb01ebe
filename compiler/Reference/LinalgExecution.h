//===- LinalgExecution.h - A function of nn ops through linalg, compiled --===//

#ifndef DESCENT_COMPILER_REFERENCE_LINALGEXECUTION_H
#define DESCENT_COMPILER_REFERENCE_LINALGEXECUTION_H

#include "dialects/NN/ReferenceTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace descent {

/// Compiles `function` (one block of ops that implement LinalgLowerable) op by op through linalg
/// and scalar loops, and runs it: what emitElement and lowerToLinalg really compute, in the
/// program's own types, without any fusion. Inputs are rounded to their types.
mlir::LogicalResult executeThroughLinalg(mlir::func::FuncOp function,
                                         llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::SmallVectorImpl<reference::Tensor> &outputs);

} // namespace descent

#endif // DESCENT_COMPILER_REFERENCE_LINALGEXECUTION_H
