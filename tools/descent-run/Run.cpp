//===- Run.cpp - What descent-run can do with a function ------------------===//

#include "Run.h"

#include "EmulatedExecutor.h"

#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Reference/FunctionGradient.h"
#include "compiler/Reference/Interpreter.h"
#include "compiler/Reference/LinalgExecution.h"
#include "compiler/Target/ProgramJit.h"
#include "dialects/Check/Check.h"
#include "dialects/NN/NNReference.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace descent;
using reference::Arithmetic;
using reference::Interpreter;
using reference::Tensor;

using Tensors = SmallVector<Tensor>;

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

/// The inputs that the attributes of the arguments ask for. Random ones are keyed by the argument's
/// number.
static FailureOr<Tensors> makeInputs(func::FuncOp function) {
  Tensors inputs;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return function.emitError() << "argument " << index
                                  << " must be a tensor of static shape to be run, not " << type;
    if (auto value = function.getArgAttrOfType<ElementsAttr>(index, "check.value")) {
      if (value.getShapedType() != tensor)
        return function.emitError() << "check.value of argument " << index << " is "
                                    << value.getShapedType() << ", not " << tensor;
      inputs.push_back(nn::toReference(value));
      continue;
    }
    double low = isFloat(type) ? -2.0 : 0.0, high = 2.0;
    if (auto range = function.getArgAttrOfType<ArrayAttr>(index, "check.range")) {
      if (range.size() != 2 ||
          !llvm::all_of(range, [](Attribute bound) { return isa<FloatAttr>(bound); }))
        return function.emitError()
               << "check.range of argument " << index << " must be two floats, as in [-1.0, 1.0]";
      low = cast<FloatAttr>(range[0]).getValueAsDouble();
      high = cast<FloatAttr>(range[1]).getValueAsDouble();
    }
    inputs.push_back(check::randomTensor(tensor, index + 1, low, high));
  }
  return inputs;
}

static FailureOr<Tensors> evaluate(func::FuncOp function, ArrayRef<Tensor> inputs,
                                   Arithmetic arithmetic = Arithmetic::Exact) {
  Tensors outputs;
  Interpreter interpreter(arithmetic);
  if (failed(interpreter.interpret(function, inputs, outputs)))
    return failure();
  return outputs;
}

/// One gradient per float result, ones or random values (which catch what cancels in a sum).
static Tensors makeResultGradients(func::FuncOp function, bool ones) {
  Tensors gradients;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isFloat(type))
      gradients.push_back(
          ones ? Tensor(cast<RankedTensorType>(type).getShape().vec(), 1.0)
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

LogicalResult descent::printResults(func::FuncOp function, bool gradients, Arithmetic arithmetic) {
  FailureOr<Tensors> inputs = makeInputs(function);
  if (failed(inputs))
    return failure();
  FailureOr<Tensors> outputs = evaluate(function, *inputs, arithmetic);
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
  FailureOr<Tensors> values = evaluate(*gradient, all, arithmetic);
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
static FailureOr<double> scalarLoss(func::FuncOp function, ArrayRef<Tensor> inputs,
                                    ArrayRef<Tensor> resultGradients) {
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
  llvm::outs() << llvm::format("%-28s %-34s %10.2e  ", function.getSymName().str().c_str(),
                               what.c_str(), error)
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
    good &= report(function, "d argument " + std::to_string(index),
                   worstError((*analytic)[next++], numeric), tolerance);
  }

  // The same meaning after decomposition: forward, then gradient.
  if (failed(decompose(function->getParentOfType<ModuleOp>())))
    return failure();
  FailureOr<Tensors> decomposed = evaluate(function, *inputs);
  FailureOr<Tensors> decomposedGradient = evaluate(*gradient, all);
  if (failed(decomposed) || failed(decomposedGradient))
    return failure();
  for (size_t i = 0; i < outputs->size(); ++i)
    good &= report(function, "decomposed result " + std::to_string(i),
                   worstError((*decomposed)[i], (*outputs)[i]), tolerance);
  for (size_t i = 0; i < analytic->size(); ++i)
    good &= report(function, "decomposed gradient " + std::to_string(i),
                   worstError((*decomposedGradient)[i], (*analytic)[i]), tolerance);
  return success(good);
}

//===----------------------------------------------------------------------===//
// Compiled
//===----------------------------------------------------------------------===//

namespace {

/// A function with its inputs and, interpreted before any pass has touched it, its results.
struct Specimen {
  func::FuncOp function;
  Tensors inputs, expected;
  const char *what;
};

} // namespace

/// The function and, with `gradients`, its gradient.
static FailureOr<SmallVector<Specimen>> makeSpecimens(func::FuncOp function, bool gradients,
                                                      Arithmetic arithmetic) {
  SmallVector<Specimen> specimens;
  auto add = [&](func::FuncOp subject, Tensors inputs, const char *what) {
    FailureOr<Tensors> expected = evaluate(subject, inputs, arithmetic);
    if (succeeded(expected))
      specimens.push_back({subject, std::move(inputs), std::move(*expected), what});
    return LogicalResult(expected);
  };
  FailureOr<Tensors> inputs = makeInputs(function);
  if (failed(inputs) || failed(add(function, *inputs, "result")))
    return failure();
  if (gradients) {
    FailureOr<func::FuncOp> gradient = buildFunctionGradient(function);
    if (failed(gradient))
      return failure();
    llvm::append_range(*inputs, makeResultGradients(function, /*ones=*/false));
    if (failed(add(*gradient, *inputs, "gradient")))
      return failure();
  }
  return specimens;
}

static bool compare(const Specimen &specimen, ArrayRef<Tensor> actual, double tolerance) {
  bool good = true;
  for (auto [index, expected] : llvm::enumerate(specimen.expected))
    good &=
        report(specimen.function, ("compiled " + Twine(specimen.what) + " " + Twine(index)).str(),
               worstError(actual[index], expected), tolerance);
  return good;
}

LogicalResult descent::checkLinalg(func::FuncOp function, bool gradients, double tolerance,
                                   Arithmetic arithmetic) {
  FailureOr<SmallVector<Specimen>> specimens = makeSpecimens(function, gradients, arithmetic);
  if (failed(specimens) || failed(decompose(function->getParentOfType<ModuleOp>())))
    return failure();
  bool good = true;
  for (const Specimen &specimen : *specimens) {
    Tensors actual;
    if (failed(executeThroughLinalg(specimen.function, specimen.inputs, actual)))
      return failure();
    good &= compare(specimen, actual, tolerance);
  }
  return success(good);
}

static FailureOr<std::unique_ptr<ProgramJit>> compile(ModuleOp module, StringRef target,
                                                      StringRef cpu) {
  if (CudaTarget::isCuda(target)) {
    llvm::Expected<CudaTarget> cuda = CudaTarget::named(target);
    if (!cuda)
      return module.emitError() << llvm::toString(cuda.takeError());
    FailureOr<std::unique_ptr<KernelExecutor>> executor = createEmulatedExecutor(module, *cuda);
    if (failed(executor))
      return failure();
    return std::make_unique<ProgramJit>(module, std::move(*executor));
  }
  llvm::Expected<CpuTarget> machine = CpuTarget::named(cpu);
  if (!machine)
    return module.emitError() << llvm::toString(machine.takeError());
  return ProgramJit::create(module, *machine);
}

LogicalResult descent::checkCompiled(func::FuncOp function, double tolerance, Arithmetic arithmetic,
                                     StringRef target, StringRef cpu) {
  auto module = function->getParentOfType<ModuleOp>();
  FailureOr<SmallVector<Specimen>> specimens =
      makeSpecimens(function, /*gradients=*/true, arithmetic);
  if (failed(specimens))
    return failure();
  // Kernels of the file's other functions would be compiled as well, once for each function.
  for (auto other : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (llvm::none_of(*specimens,
                      [&](const Specimen &specimen) { return specimen.function == other; }))
      other.erase();
  PassManager pm(module.getContext());
  FusionOptions fusion;
  fusion.cuda = CudaTarget::isCuda(target);
  buildFusionPhase(pm, fusion);
  if (failed(pm.run(module)))
    return failure();
  FailureOr<std::unique_ptr<ProgramJit>> program = compile(module, target, cpu);
  if (failed(program))
    return failure();
  bool good = true;
  for (const Specimen &specimen : *specimens) {
    func::FuncOp subject = specimen.function;
    StringRef name = subject.getSymName();
    Tensors actual;
    if (failed((*program)->run(name, specimen.inputs, actual)))
      return failure();
    good &= compare(specimen, actual, tolerance);
    // Threads take tasks in any grouping and order, and the plan lets results lie over operands
    // that die: no bit may depend on either.
    Tensors again;
    if (failed((*program)->run(name, specimen.inputs, again,
                               {/*tasksPerCall=*/1, /*backwards=*/true, /*inPlace=*/true})))
      return failure();
    for (auto [index, first, second] : llvm::enumerate(actual, again))
      if (std::memcmp(first.values.data(), second.values.data(),
                      first.values.size() * sizeof(double)) != 0)
        good &=
            report(specimen.function,
                   ("bits of " + Twine(specimen.what) + " " + Twine(index)).str(), INFINITY, 0.0);
  }
  return success(good);
}
