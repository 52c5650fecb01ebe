//===- NN.h - The model level ---------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_NN_H
#define DESCENT_DIALECTS_NN_NN_H

#include "dialects/NN/DoubleParameter.h"
#include "dialects/NN/Interfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace descent::nn {

/// Ops that training creates; a model file may not contain them.
template <typename ConcreteOp>
struct GradientOnly : mlir::OpTrait::TraitBase<ConcreteOp, GradientOnly> {};

class LossOp;

/// The short spelling of initialisers in nn.parameter: zeros, ones, constant(2.0), normal(0.0,
/// 0.02), uniform(-1.0, 1.0).
mlir::ParseResult parseInitialiser(mlir::OpAsmParser &parser, mlir::Attribute &init);
void printInitialiser(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Attribute init);

/// The 8-bit floats that operands of products may be stored in.
inline bool isF8(mlir::Type type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type);
}

/// How an op is called in plans, profiles and messages: "nn.matmul h.0.attn (model.mlir:12)". The
/// middle is the instance of an nn.module that inline-modules took the op from (for a parameter,
/// its name); either of the last two parts is missing where the op's location does not know it.
std::string sourceName(mlir::Operation *op);

} // namespace descent::nn

#include "dialects/NN/NNDialect.h.inc"
#include "dialects/NN/NNEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"

#endif // DESCENT_DIALECTS_NN_NN_H
