//===- DoubleParameter.td - Attribute parameters of type double -----------===//
//
// MLIR has no parser for a bare double parameter, and its default printer keeps six digits. These print the shortest text that reads back to the
// same bits, so that IR written and read again is the same program.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_DIALECTS_NN_DOUBLEPARAMETER
#define DESCENT_DIALECTS_NN_DOUBLEPARAMETER

include "mlir/IR/AttrTypeBase.td"

def NN_Double : AttrOrTypeParameter<"::descent::Double", "a double", "double"> {
  let printer = "::descent::printDouble($_printer.getStream(), $_self)";
  let parser = "::descent::parseDouble($_parser)";
}

#endif // DESCENT_DIALECTS_NN_DOUBLEPARAMETER
