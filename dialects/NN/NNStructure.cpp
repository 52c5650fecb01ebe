//===- NNStructure.cpp - Modules, the model, instances --------------------===//
//
// Both containers read like functions. Names are checked where they are written: a parameter or
// instance name twice in one container is refused there, a clash that only appears when instances
// are inlined is refused by inline-modules.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace descent;
using namespace descent::nn;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

template <typename Op>
static ParseResult parseContainer(OpAsmParser &parser, OperationState &result) {
  auto build = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                  function_interface_impl::VariadicFlag,
                  std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, Op::getFunctionTypeAttrName(result.name), build,
      Op::getArgAttrsAttrName(result.name), Op::getResAttrsAttrName(result.name));
}

template <typename Op> static void printContainer(OpAsmPrinter &printer, Op op) {
  function_interface_impl::printFunctionOp(printer, op, /*isVariadic=*/false,
                                           op.getFunctionTypeAttrName(), op.getArgAttrsAttrName(),
                                           op.getResAttrsAttrName());
}

ParseResult nn::ModuleOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseContainer<nn::ModuleOp>(parser, result);
}
void nn::ModuleOp::print(OpAsmPrinter &printer) { printContainer(printer, *this); }
/// A model's inputs are known to users by the names they have in the file: recipes and data files
/// speak of them. So the name of each argument is kept as nn.name, unless it is stated.
ParseResult ModelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes, argumentTypes;
  SmallVector<DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  Builder &builder = parser.getBuilder();
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes, resultAttributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (OpAsmParser::Argument &argument : arguments) {
    argumentTypes.push_back(argument.type);
    NamedAttrList attributes(argument.attrs);
    if (!attributes.get("nn.name"))
      attributes.set("nn.name", builder.getStringAttr(argument.ssaName.name.drop_front()));
    argument.attrs = attributes.getDictionary(builder.getContext());
  }
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttributes,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}
void ModelOp::print(OpAsmPrinter &printer) { printContainer(printer, *this); }

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

/// Tensors of the dialect's element types, with '?' on the leading axis at most.
static LogicalResult verifyArgument(Operation *op, unsigned number, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : Type();
  bool known = tensor && (element.isF32() || element.isBF16() || element.isF16() ||
                          element.isInteger(32) || element.isInteger(64) || element.isInteger(1));
  if (!known)
    return op->emitOpError() << "argument " << number << " is " << type
                             << "; arguments are ranked tensors of f32, bf16, f16, i32, i64 or i1";
  for (int64_t axis = 0; axis < tensor.getRank(); ++axis) {
    if (axis > 0 && tensor.isDynamicDim(axis))
      return op->emitOpError() << "argument " << number << " is " << type << " with '?' on axis "
                               << axis << "; '?' is the batch and only ever the leading axis";
    if (tensor.getDimSize(axis) == 0)
      return op->emitOpError() << "argument " << number << " is " << type
                               << ", which holds no elements";
  }
  return success();
}

/// No two parameters, and no two instances, share a name.
static LogicalResult verifyNames(Operation *container) {
  llvm::StringMap<Operation *> parameters, instances;
  for (Operation &op : container->getRegion(0).front()) {
    StringRef name, what;
    llvm::StringMap<Operation *> *known;
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      name = parameter.getName(), what = "parameter", known = &parameters;
    } else if (auto instance = dyn_cast<InstantiateOp>(op)) {
      name = instance.getName(), what = "instance", known = &instances;
    } else {
      continue;
    }
    auto [entry, isNew] = known->try_emplace(name, &op);
    if (isNew)
      continue;
    InFlightDiagnostic error =
        op.emitOpError() << "a second " << what << " named '" << name << "'; names must be unique"
                         << (what == "parameter" ? " (to share one parameter, use its value twice)"
                                                 : "");
    error.attachNote(entry->second->getLoc()) << "the first is here";
    return error;
  }
  return success();
}

LogicalResult nn::ModuleOp::verifyRegions() {
  for (auto [number, type] : llvm::enumerate(getArgumentTypes()))
    if (failed(verifyArgument(*this, number, type))) // C1
      return failure();
  if (getResultTypes().empty()) // C2
    return emitOpError("yields nothing; declare results with -> and return them with nn.return");
  return verifyNames(*this); // C3
}

LogicalResult ReturnOp::verify() {
  auto module = cast<nn::ModuleOp>((*this)->getParentOp());
  ArrayRef<Type> declared = module.getResultTypes();
  if (TypeRange(getValues()) == TypeRange(declared)) // C1
    return success();
  InFlightDiagnostic error = emitOpError()
                             << "returns (" << getValues().getTypes() << ") but nn.module @"
                             << module.getSymName() << " declares (" << declared << ")";
  error.attachNote(module.getLoc()) << "declared here";
  return error;
}

LossOp ModelOp::getLoss() { return cast<LossOp>(getBody().front().getTerminator()); }

LogicalResult ModelOp::verifyRegions() {
  Block &body = getBody().front();
  if (!getResultTypes().empty()) // C1
    return emitOpError() << "declares results; a model ends in nn.loss and returns nothing";
  if (body.empty() || !isa<LossOp>(body.back())) // C1
    return emitOpError("must end in nn.loss %sum, %weight, %predictions");
  bool hasData = false;
  for (auto [number, type] : llvm::enumerate(getArgumentTypes())) {
    if (failed(verifyArgument(*this, number, type))) // C2
      return failure();
    auto attributes = getArgAttrsAttr();
    auto dictionary = attributes ? cast<DictionaryAttr>(attributes[number]) : DictionaryAttr();
    auto role = dictionary ? dictionary.getAs<StringAttr>("nn.role") : StringAttr();
    for (NamedAttribute attribute : dictionary ? dictionary.getValue() : ArrayRef<NamedAttribute>())
      if (StringRef name = attribute.getName();
          name.starts_with("nn.") &&
          !llvm::is_contained({"nn.name", "nn.role", "nn.range", "nn.ignore_index"}, name)) // C3
        return emitOpError()
               << "argument " << number << " has an unknown attribute '" << name
               << "'; known are nn.name, nn.role and (added by bound-inputs) nn.range and "
                  "nn.ignore_index";
    if (!role) // C3
      return emitOpError() << "argument " << number
                           << " has no role; write {nn.role = \"data\"} or {nn.role = \"target\"}";
    if (!llvm::is_contained({"data", "target", "row_weights", "rng"}, role.getValue())) // C3
      return emitOpError() << "argument " << number << " has the unknown role '" << role.getValue()
                           << "'; roles are data, target, and (added by attach-row-weights) "
                              "row_weights and rng";
    hasData |= role.getValue() == "data";
  }
  if (!hasData) // C4
    return emitOpError("has no input of role \"data\"; there is nothing to learn from");
  return verifyNames(*this); // C5
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

/// Finds the nn.module named `name`, or names the nearest one in the error.
static FailureOr<nn::ModuleOp> findModule(InstantiateOp op, SymbolTableCollection &symbols) {
  if (auto module = symbols.lookupNearestSymbolFrom<nn::ModuleOp>(op, op.getCalleeAttr()))
    return module;
  StringRef wanted = op.getCallee(), nearest;
  unsigned best = std::max<size_t>(wanted.size() / 2, 1) + 1;
  Operation *table = SymbolTable::getNearestSymbolTable(op);
  for (auto module : table->getRegion(0).getOps<nn::ModuleOp>()) {
    unsigned distance = wanted.edit_distance(module.getSymName());
    if (distance < best)
      best = distance, nearest = module.getSymName();
  }
  InFlightDiagnostic error = op.emitOpError() << "no nn.module @" << wanted << " in this file";
  if (!nearest.empty())
    error << "; did you mean @" << nearest << "?";
  return error;
}

/// Whether instances inside `from` lead back to `target`.
static bool reaches(nn::ModuleOp from, nn::ModuleOp target, SymbolTableCollection &symbols) {
  llvm::SetVector<Operation *> modules;
  modules.insert(from);
  for (size_t next = 0; next < modules.size(); ++next) {
    if (modules[next] == target)
      return true;
    for (auto instance : modules[next]->getRegion(0).getOps<InstantiateOp>())
      if (auto callee =
              symbols.lookupNearestSymbolFrom<nn::ModuleOp>(instance, instance.getCalleeAttr()))
        modules.insert(callee);
  }
  return false;
}

LogicalResult InstantiateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<nn::ModuleOp> module = findModule(*this, symbols); // C1
  if (failed(module))
    return failure();
  if (getName().empty()) // C2
    return emitOpError("needs a name; it prefixes the names of the parameters inside");
  ArrayRef<Type> arguments = module->getArgumentTypes(), declared = module->getResultTypes();
  auto fail = [&](const Twine &message) {
    InFlightDiagnostic error = emitOpError(message);
    error.attachNote(module->getLoc()) << "@" << getCallee() << " is here";
    return error;
  };
  if (getOperands().size() != arguments.size()) // C3
    return fail("passes " + Twine(getOperands().size()) + " operands; @" + getCallee() + " takes " +
                Twine(arguments.size()));
  for (auto [number, passed] : llvm::enumerate(getOperands()))
    if (passed.getType() != arguments[number]) // C3
      return fail("") << "operand " << number << " is " << passed.getType() << " but @"
                      << getCallee() << " takes " << arguments[number]
                      << "; modules take one shape: change the argument, or nn.reshape or nn.cast "
                         "the operand";
  if (getOutputs().getTypes() != TypeRange(declared)) // C4
    return fail("") << "results are (" << getOutputs().getTypes() << ") but @" << getCallee()
                    << " yields (" << declared << ")";
  if (auto parent = dyn_cast<nn::ModuleOp>((*this)->getParentOp()))
    if (reaches(*module, parent, symbols)) // C5
      return fail("@" + parent.getSymName() + " contains an instance of itself through @" +
                  getCallee() + "; modules are inlined, so they cannot recur");
  return success();
}
