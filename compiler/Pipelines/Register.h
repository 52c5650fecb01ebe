//===- Register.h - What Descent's tools know -----------------------------===//

#ifndef DESCENT_COMPILER_PIPELINES_REGISTER_H
#define DESCENT_COMPILER_PIPELINES_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace descent {

/// Every dialect that Descent's passes read or produce, with the extensions and LLVM translations
/// they need.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Every pass and pipeline, MLIR's included. Once per process.
void registerAllPasses();

} // namespace descent

#endif // DESCENT_COMPILER_PIPELINES_REGISTER_H
