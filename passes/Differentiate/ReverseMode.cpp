//===- ReverseMode.cpp - Gradients through a straight line of ops ---------===//
//
// The one place where gradients flow backwards: `differentiate` uses it for models, the reference
// for single functions, so that what the tests of ops differentiate is what models are
// differentiated by.
//
//===----------------------------------------------------------------------===//

#include "passes/Differentiate/ReverseMode.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace descent;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

ReverseMode::ReverseMode(Block &block, ValueRange sources) {
  needed.insert(sources.begin(), sources.end());
  for (Operation &op : block.without_terminator()) {
    forward.push_back(&op);
    if (llvm::any_of(op.getOperands(), [&](Value v) { return needed.contains(v); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          needed.insert(result);
  }
}

void ReverseMode::contribute(OpBuilder &builder, Value value, Value gradient) {
  Value &sum = gradients[value];
  accumulated += static_cast<bool>(sum);
  sum = sum ? Value(nn::AddOp::create(builder, gradient.getLoc(), sum, gradient)) : gradient;
}

LogicalResult ReverseMode::visit(OpBuilder &builder, Operation *op, bool &isComplete) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(needed.contains(result) ? gradients.lookup(result) : Value());
  SmallVector<Value> operands(op->getOperands());
  SmallVector<bool> operandNeeded;
  for (Value operand : operands)
    operandNeeded.push_back(needed.contains(operand));
  if (llvm::none_of(resultGradients, [](Value v) { return static_cast<bool>(v); }) ||
      llvm::none_of(operandNeeded, [](bool n) { return n; })) {
    ++skipped;
    return success();
  }
  auto differentiable = dyn_cast<DifferentiableOp>(op);
  if (!differentiable) {
    op->emitOpError("has no gradient but stands between the loss and a parameter; freeze the "
                    "parameters behind it, or write the "
                    "model without it");
    isComplete = false;
    return success();
  }
  SmallVector<Value> operandGradients;
  if (failed(
          differentiable.buildGradient(builder, resultGradients, operandNeeded, operandGradients)))
    return failure();
  // The op may have been re-created while its gradient was built (attention saves its log-sum-exp),
  // so it is not touched from here on.
  Location loc =
      resultGradients.front() ? resultGradients.front().getLoc() : builder.getUnknownLoc();
  if (operandGradients.size() != operands.size())
    return emitError(loc) << "internal: an op built " << operandGradients.size()
                          << " gradients for " << operands.size() << " operands";
  ++differentiated;
  for (auto [operand, gradient, isNeeded] :
       llvm::zip_equal(operands, operandGradients, operandNeeded)) {
    if (!isNeeded || !gradient)
      continue;
    if (gradient.getType() != operand.getType())
      return emitError(loc) << "internal: a gradient of type " << gradient.getType()
                            << " was built for an operand of type " << operand.getType();
    contribute(builder, operand, gradient);
  }
  return success();
}

LogicalResult ReverseMode::run(OpBuilder &builder) {
  bool isComplete = true; // all ops without a gradient are named before it fails
  for (Operation *op : llvm::reverse(forward))
    if (failed(visit(builder, op, isComplete)))
      return failure();
  return success(isComplete);
}
