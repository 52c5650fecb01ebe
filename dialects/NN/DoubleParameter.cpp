//===- DoubleParameter.cpp - Attribute parameters of type double ----------===//
//
// std::to_chars gives the shortest text that round-trips. MLIR's lexer reads a float only with
// digits around a point, hence the repair.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/DoubleParameter.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace descent;

void descent::printDouble(llvm::raw_ostream &os, double value) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  llvm::StringRef digits(text, static_cast<size_t>(end - text));
  if (digits.contains('.') || !std::isfinite(value)) {
    os << digits;
    return;
  }
  auto [mantissa, exponent] = digits.split('e'); // "1e-08" has no point
  os << mantissa << ".0";
  if (!exponent.empty())
    os << 'e' << exponent;
}

FailureOr<Double> descent::parseDouble(AsmParser &parser) {
  double value;
  if (failed(parser.parseFloat(value)))
    return failure();
  return Double(value);
}
