//===- TrainDialect.cpp - Ops and symbols of the training step ------------===//
//
// Assembly, symbol checks and verifiers. Update rules are in Optimizers.cpp, learning rates in
// Schedules.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace descent;
using namespace descent::train;

#include "dialects/Train/TrainDialect.cpp.inc"
#include "dialects/Train/TrainInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Train/TrainAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Train/TrainOps.cpp.inc"
      >();
}

bool train::matchesPattern(StringRef name, StringRef pattern) {
  // Iterative glob: on a mismatch, go back to the last `*` and let it take one more character.
  size_t n = 0, p = 0, star = StringRef::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != StringRef::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.drop_front(p).find_first_not_of('*') == StringRef::npos;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static ParseResult parseFunction(OpAsmParser &parser, OperationState &result) {
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, FuncOp::getFunctionTypeAttrName(result.name),
      [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(arguments, results); },
      FuncOp::getArgAttrsAttrName(result.name), FuncOp::getResAttrsAttrName(result.name));
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunction(parser, result);
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

ReturnOp FuncOp::getReturn() { return cast<ReturnOp>(getBody().front().getTerminator()); }

LogicalResult FuncOp::verifyRegions() {
  auto ret = dyn_cast<ReturnOp>(getBody().front().getTerminator());
  if (!ret)
    return emitOpError("must end in train.return");
  if (TypeRange(ret.getValues()) != TypeRange(getResultTypes()))
    return ret.emitOpError("returns types other than those of the function's signature");
  return success();
}

LogicalResult ReturnOp::verify() {
  if (getNames().size() != getValues().size())
    return emitOpError() << "has " << getNames().size() << " names for " << getValues().size()
                         << " values";
  return success();
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

/// The type of a parameter, state or slab; null if there is no such symbol.
static RankedTensorType typeOfSymbol(Operation *from, SymbolTableCollection &tables,
                                     FlatSymbolRefAttr name) {
  Operation *symbol = tables.lookupNearestSymbolFrom(from, name);
  if (!symbol)
    return {};
  return llvm::TypeSwitch<Operation *, RankedTensorType>(symbol)
      .Case<ParameterOp, StateOp, WorkingCopyOp, SlabOp>([](auto op) { return op.getTensorType(); })
      .Default([](Operation *) { return RankedTensorType(); });
}

static LogicalResult verifyAccess(Operation *op, SymbolTableCollection &tables,
                                  FlatSymbolRefAttr name, Type type) {
  RankedTensorType declared = typeOfSymbol(op, tables, name);
  if (!declared)
    return op->emitOpError()
           << "names " << name
           << ", which is no parameter, state, working copy or slab of this module";
  if (declared != type)
    return op->emitOpError() << "has type " << type << " but " << name << " is declared "
                             << declared;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, tables, getSymbolAttr(), getValue().getType());
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, tables, getSymbolAttr(), getValue().getType());
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, tables, getParameterAttr(), getGradient().getType());
}

/// A gradient has its parameter's shape; it stays f32 where the parameter is kept in a narrower
/// type.
static LogicalResult verifyGradient(Operation *op, SymbolTableCollection &tables,
                                    FlatSymbolRefAttr name, Type type) {
  RankedTensorType declared = typeOfSymbol(op, tables, name);
  auto gradient = dyn_cast<RankedTensorType>(type);
  if (declared && gradient && gradient.getElementType().isF32() &&
      gradient.getShape() == declared.getShape())
    return success();
  return verifyAccess(op, tables, name, type);
}

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyAccess(*this, tables, getSlabAttr(), getPacked().getType())))
    return failure();
  auto slab = dyn_cast<SlabOp>(tables.lookupNearestSymbolFrom(*this, getSlabAttr()));
  if (!slab)
    return emitOpError() << getSlabAttr() << " is not a train.slab";
  if (slab.getMembers().size() != getMembers().size())
    return emitOpError() << "packs " << getMembers().size() << " tensors into a slab of "
                         << slab.getMembers().size() << " members";
  for (auto [member, value] : llvm::zip(slab.getMembers(), getMembers()))
    if (failed(verifyGradient(*this, tables, cast<FlatSymbolRefAttr>(member), value.getType())))
      return failure();
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  for (auto [parameter, gradient] : llvm::zip(getParameters(), getGradients()))
    if (failed(
            verifyGradient(*this, tables, cast<FlatSymbolRefAttr>(parameter), gradient.getType())))
      return failure();
  return success();
}

LogicalResult UpdateOp::verify() {
  if (getParameters().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " gradients for "
                         << getParameters().size() << " parameters";
  if (!isa<OptimizerAttrInterface>(getOptimizer()))
    return emitOpError() << getOptimizer()
                         << " is not an update rule; use #train.sgd or #train.adam";
  return success();
}

LogicalResult CommitOp::verifyRegions() {
  auto type = dyn_cast<RankedTensorType>(getCondition().getType());
  if (!type || type.getRank() != 0 || !type.getElementType().isInteger(1))
    return emitOpError() << "condition must be tensor<i1>, not " << getCondition().getType();
  for (Operation &op : getBody().front())
    if (!isa<UpdateOp, WriteOp>(op))
      return op.emitOpError(
          "cannot stand in train.commit; only train.update and train.write change state");
  if (!getSkipped().empty())
    for (Operation &op : getSkipped().front())
      if (!isa<WriteOp>(op))
        return op.emitOpError("cannot stand in the else of train.commit; a skipped step updates "
                              "nothing, it only keeps its own books");
  return success();
}
