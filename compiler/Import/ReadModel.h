//===- ReadModel.h - A model file into memory -----------------------------===//

#ifndef DESCENT_COMPILER_IMPORT_READMODEL_H
#define DESCENT_COMPILER_IMPORT_READMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace descent {

/// Reads, parses and verifies a model file: the textual form of a builtin.module that holds exactly
/// one nn.model. The context must know the nn dialect. Returns null after emitting an error through
/// `context` at a place in `path`, with the reason and what would make it right; a driver that
/// wants the source line under the message installs an mlir::SourceMgrDiagnosticHandler.
mlir::OwningOpRef<mlir::ModuleOp> readModel(llvm::StringRef path, mlir::MLIRContext &context);

} // namespace descent

#endif // DESCENT_COMPILER_IMPORT_READMODEL_H
