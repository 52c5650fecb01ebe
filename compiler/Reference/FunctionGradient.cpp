//===- FunctionGradient.cpp - The vector-Jacobian product of a function ---===//

#include "compiler/Reference/FunctionGradient.h"
#include "dialects/NN/NNGraph.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace descent;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

FailureOr<func::FuncOp> descent::buildFunctionGradient(func::FuncOp function) {
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  auto gradient = cast<func::FuncOp>(builder.clone(*function));
  gradient.setSymName((function.getSymName() + ".gradient").str());
  Block &body = gradient.getBody().front();
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  builder.setInsertionPoint(ret);

  SmallVector<Value> inputs(body.getArguments());
  DenseSet<Value> needed;
  for (Value input : inputs)
    if (isFloat(input))
      needed.insert(input);
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator()) {
    forward.push_back(&op);
    if (llvm::any_of(op.getOperands(), [&](Value v) { return needed.contains(v); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          needed.insert(result);
  }

  DenseMap<Value, Value> gradients; // looked up, never iterated
  auto contribute = [&](Value value, Value contribution) {
    Value &sum = gradients[value];
    sum = sum ? Value(nn::AddOp::create(builder, contribution.getLoc(), sum, contribution)) : contribution;
  };
  for (Value result : ret.getOperands())
    if (isFloat(result))
      contribute(result, body.addArgument(result.getType(), result.getLoc()));

  bool complete = true;
  for (Operation *op : llvm::reverse(forward)) {
    SmallVector<Value> resultGradients;
    for (Value result : op->getResults())
      resultGradients.push_back(needed.contains(result) ? gradients.lookup(result) : Value());
    SmallVector<Value> operands(op->getOperands());
    SmallVector<bool> operandNeeded;
    for (Value operand : operands)
      operandNeeded.push_back(needed.contains(operand));
    if (llvm::none_of(resultGradients, [](Value v) { return static_cast<bool>(v); }) ||
        llvm::none_of(operandNeeded, [](bool n) { return n; }))
      continue;
    auto differentiable = dyn_cast<DifferentiableOp>(op);
    if (!differentiable) {
      op->emitOpError("has no gradient");
      complete = false;
      continue;
    }
    SmallVector<Value> operandGradients;
    if (failed(differentiable.buildGradient(builder, resultGradients, operandNeeded, operandGradients)))
      return failure();
    if (operandGradients.size() != operands.size())
      return op->emitOpError() << "built " << operandGradients.size() << " gradients for " << operands.size() << " operands";
    for (auto [operand, value, isNeeded] : llvm::zip_equal(operands, operandGradients, operandNeeded)) {
      if (!isNeeded || !value)
        continue;
      if (value.getType() != operand.getType())
        return op->emitOpError() << "built a gradient of type " << value.getType() << " for an operand of type "
                                 << operand.getType();
      contribute(operand, value);
    }
  }
  if (!complete)
    return failure();

  nn::Graph graph{builder, ret.getLoc()};
  SmallVector<Value> results;
  for (Value input : inputs)
    if (isFloat(input)) {
      Value found = gradients.lookup(input);
      results.push_back(found ? found : graph.splat(0.0, nn::Graph::typeOf(input)));
    }
  func::ReturnOp::create(builder, ret.getLoc(), results);
  ret.erase();
  gradient.setArgAttrsAttr({});
  gradient.setResAttrsAttr({});
  gradient.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), ValueRange(results).getTypes()));
  return gradient;
}
