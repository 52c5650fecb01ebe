//===- DoubleParameter.h - Attribute parameters of type double ------------===//

#ifndef DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H
#define DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H

#include "mlir/IR/DialectImplementation.h"

#include <bit>

namespace descent {

/// A double that can be the key of a uniqued attribute: equal and hashed by its bits, so that -0.0
/// and 0.0 stay two attributes.
struct Double {
  double value = 0.0;

  Double() = default;
  Double(double value) : value(value) {}
  operator double() const { return value; }

  bool operator==(const Double &other) const { return bits() == other.bits(); }
  friend llvm::hash_code hash_value(const Double &x) { return llvm::hash_value(x.bits()); }

private:
  uint64_t bits() const { return std::bit_cast<uint64_t>(value); }
};

/// Writes the shortest decimal text that reads back to the same bits; always with a point or an
/// exponent, as the IR's lexer wants it.
void printDouble(llvm::raw_ostream &os, double value);

mlir::FailureOr<Double> parseDouble(mlir::AsmParser &parser);

} // namespace descent

#endif // DESCENT_DIALECTS_NN_DOUBLEPARAMETER_H
