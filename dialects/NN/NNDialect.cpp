//===- NNDialect.cpp - Registration, attributes and names -----------------===//
//
// What the dialect is made of: its ops, its initialisers with their short spelling inside
// nn.parameter, and the name under which an op appears in plans, profiles and messages.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

#include "dialects/NN/NNDialect.cpp.inc"
#include "dialects/NN/NNEnums.cpp.inc"

#include "dialects/NN/Interfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttributes.cpp.inc"

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NN/NNAttributes.cpp.inc"
      >();
  registerNNDialectOperations(this); // the shards' common entry
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

/// zeros | ones | constant(v) | normal(mean, deviation) | uniform(low, high).
ParseResult nn::parseInitialiser(OpAsmParser &parser, Attribute &init) {
  MLIRContext *context = parser.getContext();
  SMLoc loc = parser.getCurrentLocation();
  StringRef kind;
  if (parser.parseOptionalKeyword(&kind))
    return parser.emitError(loc, "expected an initialiser: zeros, ones, constant(value), "
                                 "normal(mean, deviation) or uniform(low, high)");
  if (kind == "zeros" || kind == "ones") {
    init = ConstantInitAttr::get(context, kind == "ones" ? 1.0 : 0.0);
    return success();
  }
  double first = 0, second = 0;
  if (kind == "constant") {
    if (parser.parseLParen() || parser.parseFloat(first) || parser.parseRParen())
      return failure();
    init = ConstantInitAttr::get(context, first);
    return success();
  }
  if (kind != "normal" && kind != "uniform")
    return parser.emitError(loc)
           << "unknown initialiser '" << kind
           << "'; known are zeros, ones, constant(value), normal(mean, deviation) and "
              "uniform(low, high)";
  if (parser.parseLParen() || parser.parseFloat(first) || parser.parseComma() ||
      parser.parseFloat(second) || parser.parseRParen())
    return failure();
  init = kind == "normal" ? Attribute(NormalInitAttr::get(context, first, second))
                          : Attribute(UniformInitAttr::get(context, first, second));
  return success();
}

void nn::printInitialiser(OpAsmPrinter &printer, Operation *, Attribute init) {
  auto pair = [&](StringRef kind, double first, double second) {
    printer << kind << '(';
    printDouble(printer.getStream(), first);
    printer << ", ";
    printDouble(printer.getStream(), second);
    printer << ')';
  };
  if (auto normal = dyn_cast<NormalInitAttr>(init))
    return pair("normal", normal.getMean(), normal.getDeviation());
  if (auto uniform = dyn_cast<UniformInitAttr>(init))
    return pair("uniform", uniform.getLow(), uniform.getHigh());
  double value = cast<ConstantInitAttr>(init).getValue();
  if (value == 1.0 || (value == 0.0 && !std::signbit(value))) {
    printer << (value == 1.0 ? "ones" : "zeros");
    return;
  }
  printer << "constant(";
  printDouble(printer.getStream(), value);
  printer << ')';
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The instance an op was inlined from and its place in a file, whichever of them `loc` knows. The
/// first found wins: the locations of an op made from several are listed with the main one in
/// front.
static void findName(Location loc, StringRef &instance, FileLineColLoc &file) {
  loc->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part); name && instance.empty())
      instance = name.getName();
    if (auto place = dyn_cast<FileLineColLoc>(part); place && !file)
      file = place;
    return WalkResult::advance();
  });
}

std::string nn::sourceName(Operation *op) {
  StringRef instance;
  FileLineColLoc file;
  findName(op->getLoc(), instance, file);
  std::string name = op->getName().getStringRef().str();
  if (auto parameter = dyn_cast<ParameterOp>(op))
    name += " " + parameter.getName().str();
  else if (!instance.empty())
    name += " " + instance.str();
  if (file)
    name += " (" + llvm::sys::path::filename(file.getFilename().strref()).str() + ":" +
            std::to_string(file.getLine()) + ")";
  return name;
}
