//===- ExecDialect.cpp - Kernels and launches: registration and rules -----===//
//
// A fusion and a kernel are the same region in two places; both are checked by one function. What
// kinds of kernel may hold is checked where they are made (verify-kernels), not here: the op only
// knows that its region computes its results from its inputs.
//
//===----------------------------------------------------------------------===//

#include "dialects/Exec/Exec.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace descent;
using namespace descent::exec;

#include "dialects/Exec/ExecDialect.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Exec/ExecOps.cpp.inc"
      >();
}

/// The region's arguments are the inputs, its yield's operands the results.
static LogicalResult verifyComputation(Operation *op, Block &body, TypeRange inputs,
                                       TypeRange outputs) {
  if (body.getArgumentTypes() != inputs) // C1
    return op->emitOpError() << "the region takes (" << body.getArgumentTypes()
                             << ") but the inputs are (" << inputs << ")";
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield) // C2
    return op->emitOpError("the region must end in exec.yield");
  if (yield.getValues().getTypes() != outputs) // C2
    return yield.emitOpError() << "yields (" << yield.getValues().getTypes()
                               << ") but the results are (" << outputs << ")";
  if (outputs.empty()) // C3
    return op->emitOpError("computes nothing: it has no results");
  return success();
}

LogicalResult FusionOp::verifyRegions() {
  return verifyComputation(*this, getBody().front(), getInputs().getTypes(),
                           getOutputs().getTypes());
}

LogicalResult KernelOp::verifyRegions() {
  return verifyComputation(*this, getBody().front(), getArgumentTypes(), getResultTypes());
}

//===----------------------------------------------------------------------===//
// KernelOp's assembly: exec.kernel @name "kind" (arguments) -> results attributes {...} {...}
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name, kind;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  Builder &builder = parser.getBuilder();
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseAttribute(kind, builder.getNoneType()))
    return failure();
  result.addAttribute(getKindAttrName(result.name), kind);
  if (function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes, resultAttributes))
    return failure();
  SmallVector<Type> argumentTypes;
  for (const OpAsmParser::Argument &argument : arguments)
    argumentTypes.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttributes,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << ' ' << getKindAttr() << ' ';
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(),
                                                  /*isVariadic=*/false, getResultTypes());
  function_interface_impl::printFunctionAttributes(
      printer, *this,
      {getFunctionTypeAttrName(), getKindAttrName(), getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // C1
    return emitOpError() << "launches @" << getKernel() << ", but no exec.kernel has that name";
  auto report = [&](StringRef what, TypeRange here, TypeRange there) {
    InFlightDiagnostic error = emitOpError() << what << " are (" << here << ") but exec.kernel @"
                                             << getKernel() << " has (" << there << ")";
    error.attachNote(kernel.getLoc()) << "the kernel is here";
    return error;
  };
  if (getInputs().getTypes() != TypeRange(kernel.getArgumentTypes())) // C2
    return report("inputs", getInputs().getTypes(), kernel.getArgumentTypes());
  if (getOutputs().getTypes() != TypeRange(kernel.getResultTypes())) // C2
    return report("results", getOutputs().getTypes(), kernel.getResultTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// On buffers
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isa<BufferOp, GetOp, RunOp, OutputOp>(op)) // C1
      return op.emitOpError("cannot stand in exec.program; a program is exec.buffer, exec.get, "
                            "exec.run and exec.output");
  return success();
}

/// The same bytes as a memref; i1 is stored as one byte.
static bool holds(Type buffer, Type tensor) {
  auto memref = cast<MemRefType>(buffer);
  auto ranked = cast<RankedTensorType>(tensor);
  return memref.getShape() == ranked.getShape() &&
         memref.getElementType() == ranked.getElementType();
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // C1
    return emitOpError() << "runs @" << getKernel() << ", but no exec.kernel has that name";
  if (!llvm::equal(getInputs().getTypes(), kernel.getArgumentTypes(), holds)) // C2
    return emitOpError() << "inputs are (" << getInputs().getTypes() << ") but exec.kernel @"
                         << getKernel() << " takes (" << kernel.getArgumentTypes() << ")";
  if (!llvm::equal(getOutputs().getTypes(), kernel.getResultTypes(), holds)) // C2
    return emitOpError() << "outputs are (" << getOutputs().getTypes() << ") but exec.kernel @"
                         << getKernel() << " gives (" << kernel.getResultTypes() << ")";
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.cpp.inc"
