//===- TensorForm.h - Kernels in linalg -----------------------------------===//

#ifndef DESCENT_PASSES_CODEGEN_TENSORFORM_H
#define DESCENT_PASSES_CODEGEN_TENSORFORM_H

#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace descent {

/// The kernel's body as a free-standing function on tensors: every op is lowered by
/// LinalgLowerable, row ops (softmax) are decomposed first, and what follows from another value
/// (common subexpressions, dead code) is gone. Emits an error at an op without such a form.
mlir::FailureOr<mlir::OwningOpRef<mlir::func::FuncOp>> lowerToTensorForm(exec::KernelOp kernel);

} // namespace descent

#endif // DESCENT_PASSES_CODEGEN_TENSORFORM_H
