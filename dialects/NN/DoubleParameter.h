//===- DoubleParameter.h - Attribute parameters of type double ------------===//

#ifndef DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H
#define DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H

#include "mlir/IR/DialectImplementation.h"

namespace descent {

/// Writes the shortest decimal text that reads back to the same bits; always with a point or an exponent, as the IR's lexer wants it.
void printDouble(llvm::raw_ostream &os, double value);

mlir::FailureOr<double> parseDouble(mlir::AsmParser &parser);

} // namespace descent

#endif // DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H
