//===- Interpreter.cpp - Programs on tensors, in double precision ---------===//
//
// Values live in a frame until it ends: programs here are test-sized, and a debugger can look at
// all of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/Interpreter.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/Rounding.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace descent;
using namespace descent::reference;

static LogicalResult readParameter(Interpreter &interpreter, Operation *op, ArrayRef<Tensor>,
                                   SmallVectorImpl<Tensor> &results) {
  auto parameter = cast<nn::ParameterOp>(op);
  auto it = interpreter.parameters.find(parameter.getName());
  if (it == interpreter.parameters.end())
    return op->emitOpError() << "'" << parameter.getName() << "' has no value to start from";
  results.push_back(it->second);
  return success();
}

/// Ops whose region is isolated from above: a frame of its own.
static LogicalResult runRegion(Interpreter &interpreter, Operation *op, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results) {
  return interpreter.interpret(op->getRegion(0), operands, results);
}

static LogicalResult runCallee(Interpreter &interpreter, Operation *op, FlatSymbolRefAttr name,
                               ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Operation *callee = SymbolTable::lookupNearestSymbolFrom(op, name);
  if (!callee || callee->getNumRegions() == 0 || callee->getRegion(0).empty())
    return op->emitOpError() << "calls " << name << ", which has no body in this module";
  return interpreter.interpret(callee, operands, results);
}

Interpreter::Interpreter(Arithmetic arithmetic) : arithmetic(arithmetic) {
  handle(nn::ParameterOp::getOperationName(), readParameter);
  handle(exec::FusionOp::getOperationName(), runRegion);
  handle(exec::LaunchOp::getOperationName(), [](Interpreter &interpreter, Operation *op,
                                                ArrayRef<Tensor> operands,
                                                SmallVectorImpl<Tensor> &results) {
    return runCallee(interpreter, op, cast<exec::LaunchOp>(op).getKernelAttr(), operands, results);
  });
  handle(func::CallOp::getOperationName(), [](Interpreter &interpreter, Operation *op,
                                              ArrayRef<Tensor> operands,
                                              SmallVectorImpl<Tensor> &results) {
    return runCallee(interpreter, op, cast<func::CallOp>(op).getCalleeAttr(), operands, results);
  });
}

LogicalResult Interpreter::interpret(Operation *function, ArrayRef<Tensor> inputs,
                                     SmallVectorImpl<Tensor> &outputs) {
  if (function->getNumRegions() == 0 || !function->getRegion(0).hasOneBlock())
    return function->emitOpError("cannot be interpreted: its body must be one block");
  return interpret(function->getRegion(0), inputs, outputs);
}

LogicalResult Interpreter::interpret(Region &region, ArrayRef<Tensor> inputs,
                                     SmallVectorImpl<Tensor> &outputs) {
  Frame own;
  Frame *outer = std::exchange(frame, &own);
  LogicalResult result = interpretBlock(region.front(), inputs, outputs);
  frame = outer;
  return result;
}

/// The shape that the program says; a mismatch would read out of bounds.
static LogicalResult checkShape(Operation *op, StringRef what, unsigned index, Type type,
                                const Tensor &value) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.getShape() == ArrayRef(value.shape))
    return success();
  InFlightDiagnostic error = op->emitOpError() << what << " " << index << " is " << type
                                               << " but its value has shape [";
  llvm::interleaveComma(value.shape, error);
  return error << "]; the batch must be bound before the program can run";
}

LogicalResult Interpreter::interpretBlock(Block &block, ArrayRef<Tensor> inputs,
                                          SmallVectorImpl<Tensor> &outputs) {
  Operation *parent = block.getParentOp();
  if (inputs.size() != block.getNumArguments())
    return parent->emitOpError() << "has " << block.getNumArguments() << " arguments and was given "
                                 << inputs.size() << " values";
  for (auto [argument, input] : llvm::zip_equal(block.getArguments(), inputs)) {
    if (failed(checkShape(parent, "argument", argument.getArgNumber(), argument.getType(), input)))
      return failure();
    Tensor &value = (*frame)[argument] = input;
    if (arithmetic == Arithmetic::Rounded)
      nn::roundTensor(value, argument.getType());
  }
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>() && !handlers.contains(op.getName().getStringRef())) {
      for (Value operand : op.getOperands())
        outputs.push_back(frame->at(operand));
      return success();
    }
    SmallVector<Tensor> results;
    if (failed(interpretOp(op, results)))
      return failure();
    if (op.hasTrait<OpTrait::IsTerminator>()) { // a handler's terminator yields what the handler
                                                // appended
      llvm::move(results, std::back_inserter(outputs));
      return success();
    }
    if (results.size() != op.getNumResults())
      return op.emitOpError() << "was interpreted to " << results.size() << " results and has "
                              << op.getNumResults();
    if (observer)
      observer(op, results);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
      if (failed(checkShape(&op, "result", result.getResultNumber(), result.getType(), value)))
        return failure();
      (*frame)[result] = std::move(value);
    }
  }
  return success();
}

LogicalResult Interpreter::interpretOp(Operation &op, SmallVectorImpl<Tensor> &results) {
  SmallVector<Tensor> operands;
  for (Value operand : op.getOperands()) {
    auto it = frame->find(operand);
    if (it == frame->end())
      return op.emitOpError("uses a value from outside the interpreted region");
    operands.push_back(it->second);
  }
  bool rounds = arithmetic == Arithmetic::Rounded;
  if (auto it = handlers.find(op.getName().getStringRef()); it != handlers.end()) {
    LogicalResult done = it->second(*this, &op, operands, results);
    return rounds && results.size() == op.getNumResults() ? roundResults(&op, done, results) : done;
  }
  if (auto reference = dyn_cast<ReferenceOp>(op))
    return rounds ? reference.evaluateRounded(operands, results)
                  : reference.evaluate(operands, results);
  return op.emitOpError("has no double-precision reference");
}
