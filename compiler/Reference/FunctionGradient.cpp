//===- FunctionGradient.cpp - The vector-Jacobian product of a function ---===//
//
// The function is cloned, gets one more argument for each float result, and ReverseMode does the
// rest.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/FunctionGradient.h"
#include "dialects/NN/NNGraph.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Differentiate/ReverseMode.h"

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

  SmallVector<Value> inputs(llvm::make_filter_range(body.getArguments(), isFloat));
  ReverseMode reverse(body, inputs);
  for (Value result : ret.getOperands())
    if (isFloat(result))
      reverse.contribute(builder, result, body.addArgument(result.getType(), result.getLoc()));
  if (failed(reverse.run(builder)))
    return failure();

  nn::Graph graph{builder, ret.getLoc()};
  SmallVector<Value> results;
  for (Value input : inputs) {
    Value found = reverse.gradientOf(input);
    results.push_back(found ? found : graph.splat(0.0, nn::Graph::typeOf(input)));
  }
  func::ReturnOp::create(builder, ret.getLoc(), results);
  ret.erase();
  gradient.setArgAttrsAttr({});
  gradient.setResAttrsAttr({});
  gradient.setFunctionType(
      builder.getFunctionType(body.getArgumentTypes(), ValueRange(results).getTypes()));
  return gradient;
}
