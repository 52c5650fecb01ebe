//===- Run.cpp - What descent-run can do with a function ------------------===//

#include "Run.h"

#include "compiler/Reference/FunctionGradient.h"
#include "compiler/Reference/Interpreter.h"
#include "compiler/Reference/LinalgExecution.h"
#include "dialects/Check/Check.h"
#include "dialects/NN/NNReference.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace descent;
using reference::Interpreter;
using reference::Tensor;

using Tensors = SmallVector<Tensor>;

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

/// The inputs that the attributes of the arguments ask for. Random ones are keyed by the argument's number.
static FailureOr<Tensors> makeInputs(func::FuncOp function) {
  Tensors inputs;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return function.emitError() << "argument " << index << " must be a tensor of static shape to be run, not " << type;
    if (auto value = function.getArgAttrOfType<ElementsAttr>(index, "check.value")) {
      if (value.getShapedType() != tensor)
        return function.emitError() << "check.value of argument " << index << " is " << value.getShapedType() << ", not "
                                    << tensor;
      inputs.push_back(nn::toReference(value));
      continue;
    }
    double low = isFloat(type) ? -2.0 : 0.0, high = 2.0;
    if (auto range = function.getArgAttrOfType<ArrayAttr>(index, "check.range")) {
      if (range.size() != 2 || !llvm::all_of(range, [](Attribute bound) { return isa<FloatAttr>(bound); }))
        return function.emitError() << "check.range of argument " << index << " must be two floats, as in [-1.0, 1.0]";
      low = cast<FloatAttr>(range[0]).getValueAsDouble();
      high = cast<FloatAttr>(range[1]).getValueAsDouble();
    }
    inputs.push_back(check::randomTensor(tensor, index + 1, low, high));
  }
  return inputs;
}

static FailureOr<Tensors> evaluate(func::FuncOp function, ArrayRef<Tensor> inputs) {
  Tensors outputs;
  Interpreter interpreter;
  if (failed(interpreter.interpret(function, inputs, outputs)))
    return failure();
  return outputs;
}

/// One gradient per float result, ones or random values (which catch what cancels in a sum).
static Tensors makeResultGradients(func::FuncOp function, bool ones) {
  Tensors gradients;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isFloat(type))
      gradients.push_back(ones ? Tensor(cast<RankedTensorType>(type).getShape().vec(), 1.0)
                               : check::randomTensor(cast<RankedTensorType>(type), 1000 + index, -1.0, 1.0));
  return gradients;
}

static LogicalResult decompose(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createDecomposeOps());
  pm.addPass(createCSEPass());
  return pm.run(module);
}

//===----------------------------------------------------------------------===//
// Print
//===----------------------------------------------------------------------===//

static void printTensor(const Tensor &tensor) {
  llvm::outs() << "[";
  llvm::interleaveComma(tensor.values, llvm::outs(), [](double value) {
    // Ten digits pin a value of semantics and hide the last bits of libm.
    llvm::outs() << llvm::format("%.10g", value == 0.0 ? 0.0 : value);
  });
  llvm::outs() << "]";
}

LogicalResult descent::printResults(func::FuncOp function, bool gradients) {
  FailureOr<Tensors> inputs = makeInputs(function);
  if (failed(inputs))
    return failure();
  FailureOr<Tensors> outputs = evaluate(function, *inputs);
  if (failed(outputs))
    return failure();
  for (auto [index, output] : llvm::enumerate(*outputs)) {
    llvm::outs() << "@" << function.getSymName() << " result " << index << " = ";
    printTensor(output);
    llvm::outs() << "\n";
  }
  if (!gradients)
    return success();
  FailureOr<func::FuncOp> gradient = buildFunctionGradient(function);
  if (failed(gradient))
    return failure();
  Tensors all = *inputs;
  llvm::append_range(all, makeResultGradients(function, /*ones=*/true));
  FailureOr<Tensors> values = evaluate(*gradient, all);
  if (failed(values))
    return failure();
  size_t next = 0;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isFloat(type))
      continue;
    llvm::outs() << "@" << function.getSymName() << " gradient of argument " << index << " = ";
    printTensor((*values)[next++]);
    llvm::outs() << "\n";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Finite differences
//===----------------------------------------------------------------------===//

/// sum over results of result . gradient.
static FailureOr<double> scalarLoss(func::FuncOp function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> resultGradients) {
  FailureOr<Tensors> outputs = evaluate(function, inputs);
  if (failed(outputs))
    return failure();
  double loss = 0.0;
  size_t next = 0;
  for (auto [type, output] : llvm::zip_equal(function.getResultTypes(), *outputs)) {
    if (!isFloat(type))
      continue;
    for (auto [value, gradient] : llvm::zip_equal(output.values, resultGradients[next].values))
      loss += value * gradient;
    ++next;
  }
  return loss;
}

/// Largest error of `actual` in units of max(1, |expected|); infinite where one is NaN.
static double worstError(const Tensor &actual, const Tensor &expected) {
  double worst = 0.0;
  for (auto [a, e] : llvm::zip_equal(actual.values, expected.values)) {
    double error = a == e ? 0.0 : std::fabs(a - e) / std::max(1.0, std::fabs(e));
    if (std::isnan(a) && std::isnan(e))
      continue;
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

/// One line of the table; false above the tolerance.
static bool report(func::FuncOp function, const std::string &what, double error, double tolerance) {
  bool good = error <= tolerance;
  llvm::outs() << llvm::format("%-28s %-34s %10.2e  ", function.getSymName().str().c_str(), what.c_str(), error)
               << (good ? "ok" : "WRONG") << "\n";
  return good;
}

LogicalResult descent::checkGradients(func::FuncOp function, double tolerance) {
  FailureOr<Tensors> inputs = makeInputs(function);
  FailureOr<func::FuncOp> gradient = buildFunctionGradient(function);
  if (failed(inputs) || failed(gradient))
    return failure();
  Tensors resultGradients = makeResultGradients(function, /*ones=*/false);
  Tensors all = *inputs;
  llvm::append_range(all, resultGradients);
  FailureOr<Tensors> outputs = evaluate(function, *inputs);
  FailureOr<Tensors> analytic = evaluate(*gradient, all);
  if (failed(outputs) || failed(analytic))
    return failure();

  bool good = true;
  size_t next = 0;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isFloat(type))
      continue;
    Tensor numeric((*inputs)[index].shape);
    for (int64_t i = 0; i < numeric.size(); ++i) {
      double &x = (*inputs)[index].values[i], kept = x, step = 1e-5 * std::max(1.0, std::fabs(x));
      x = kept + step;
      FailureOr<double> above = scalarLoss(function, *inputs, resultGradients);
      x = kept - step;
      FailureOr<double> below = scalarLoss(function, *inputs, resultGradients);
      x = kept;
      if (failed(above) || failed(below))
        return failure();
      numeric.values[i] = (*above - *below) / (2.0 * step);
    }
    good &= report(function, "d argument " + std::to_string(index), worstError((*analytic)[next++], numeric), tolerance);
  }

  // The same meaning after decomposition: forward, then gradient.
  if (failed(decompose(function->getParentOfType<ModuleOp>())))
    return failure();
  FailureOr<Tensors> decomposed = evaluate(function, *inputs);
  FailureOr<Tensors> decomposedGradient = evaluate(*gradient, all);
  if (failed(decomposed) || failed(decomposedGradient))
    return failure();
  for (size_t i = 0; i < outputs->size(); ++i)
    good &= report(function, "decomposed result " + std::to_string(i), worstError((*decomposed)[i], (*outputs)[i]), tolerance);
  for (size_t i = 0; i < analytic->size(); ++i)
    good &= report(function, "decomposed gradient " + std::to_string(i),
                   worstError((*decomposedGradient)[i], (*analytic)[i]), tolerance);
  return success(good);
}

//===----------------------------------------------------------------------===//
// Compiled
//===----------------------------------------------------------------------===//

/// Interprets `function` before and compiles it after decomposition.
static FailureOr<bool> compareCompiled(func::FuncOp function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> expected,
                                       double tolerance) {
  Tensors actual;
  if (failed(executeThroughLinalg(function, inputs, actual)))
    return failure();
  bool good = true;
  for (size_t i = 0; i < actual.size(); ++i)
    good &= report(function, "compiled result " + std::to_string(i), worstError(actual[i], expected[i]), tolerance);
  return good;
}

LogicalResult descent::checkLinalg(func::FuncOp function, bool gradients, double tolerance) {
  FailureOr<Tensors> inputs = makeInputs(function);
  if (failed(inputs))
    return failure();
  FailureOr<Tensors> expected = evaluate(function, *inputs);
  if (failed(expected))
    return failure();
  func::FuncOp gradient;
  Tensors all = *inputs, expectedGradients;
  if (gradients) {
    FailureOr<func::FuncOp> built = buildFunctionGradient(function);
    if (failed(built))
      return failure();
    gradient = *built;
    llvm::append_range(all, makeResultGradients(function, /*ones=*/false));
    FailureOr<Tensors> values = evaluate(gradient, all);
    if (failed(values))
      return failure();
    expectedGradients = *values;
  }
  if (failed(decompose(function->getParentOfType<ModuleOp>())))
    return failure();
  FailureOr<bool> good = compareCompiled(function, *inputs, *expected, tolerance);
  if (failed(good) || !gradients)
    return success(succeeded(good) && *good);
  FailureOr<bool> goodGradients = compareCompiled(gradient, all, expectedGradients, tolerance);
  return success(succeeded(goodGradients) && *good && *goodGradients);
}
