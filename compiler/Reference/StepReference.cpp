//===- StepReference.cpp - One training step in double precision ----------===//
//
// Teaches the interpreter the train ops. State changes are collected, not applied, so that every
// read sees the value before the step, as train.read says.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/StepReference.h"

#include "dialects/NN/Rounding.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace descent::reference {

namespace {

class StepInterpreter {
public:
  StepInterpreter(ModuleOp module, const StepInputs &inputs, Arithmetic arithmetic)
      : module(module), inputs(inputs), arithmetic(arithmetic), interpreter(arithmetic) {}
  void observe(const Interpreter::Observer &observer) { interpreter.observer = observer; }
  FailureOr<StepResult> run();
  LogicalResult reapply(const NamedTensors &gradients, StepResult &known);

private:
  using Operands = ArrayRef<Tensor>;
  using Results = SmallVectorImpl<Tensor>;

  void installHandlers();
  Tensor valueOf(StringRef name, RankedTensorType type);
  Tensor readSlab(train::SlabOp slab);
  void writeSlab(train::SlabOp slab, const Tensor &value, NamedTensors &into);
  LogicalResult update(train::UpdateOp op);
  LogicalResult applyRule(train::UpdateOp op, StringRef parameter, Tensor gradient,
                          const UpdateFactors &factors, bool isCommitted);

  ModuleOp module;
  const StepInputs &inputs;
  Arithmetic arithmetic;
  Interpreter interpreter;
  StepResult result;
  bool committed = true;
  bool gradientsAreScaled = false; // as they lie in memory
};

} // namespace

static std::vector<int64_t> shapeOf(Type type) {
  return cast<RankedTensorType>(type).getShape().vec();
}

/// The type of a member of a slab.
static RankedTensorType typeOf(Operation *symbol) {
  if (auto parameter = dyn_cast<train::ParameterOp>(symbol))
    return parameter.getTensorType();
  if (auto copy = dyn_cast<train::WorkingCopyOp>(symbol))
    return copy.getTensorType();
  return cast<train::StateOp>(symbol).getTensorType();
}

/// The value before the step, as its type keeps it. A working copy is its parameter, rounded.
Tensor StepInterpreter::valueOf(StringRef name, RankedTensorType type) {
  if (auto copy = module.lookupSymbol<train::WorkingCopyOp>(name))
    name = copy.getParameter();
  auto found = inputs.values.find(name);
  Tensor value;
  if (found != inputs.values.end()) {
    value = found->second;
  } else {
    auto state = module.lookupSymbol<train::StateOp>(name);
    value = Tensor(type.getShape().vec(), state ? state.getInitial().convertToDouble() : 0.0);
  }
  if (arithmetic == Arithmetic::Rounded)
    nn::roundTensor(value, type);
  return value;
}

Tensor StepInterpreter::readSlab(train::SlabOp slab) {
  Tensor packed(shapeOf(slab.getType()));
  for (auto [member, offset] :
       llvm::zip(slab.getMembers().getAsRange<FlatSymbolRefAttr>(), slab.getOffsets())) {
    RankedTensorType type = typeOf(module.lookupSymbol(member.getAttr()));
    llvm::copy(valueOf(member.getValue(), type).values, packed.values.begin() + offset);
  }
  return packed;
}

void StepInterpreter::writeSlab(train::SlabOp slab, const Tensor &value, NamedTensors &into) {
  for (auto [member, offset] :
       llvm::zip(slab.getMembers().getAsRange<FlatSymbolRefAttr>(), slab.getOffsets())) {
    RankedTensorType type = typeOf(module.lookupSymbol(member.getAttr()));
    Tensor part(type.getShape().vec());
    std::copy_n(value.values.begin() + offset, part.size(), part.values.begin());
    into[member.getValue().str()] = std::move(part);
  }
}

/// Builds the rule for one parameter as a function and interprets that: the rule is defined by the
/// ops it builds.
LogicalResult StepInterpreter::applyRule(train::UpdateOp op, StringRef parameter, Tensor gradient,
                                         const UpdateFactors &factors, bool isCommitted) {
  auto optimizer = cast<train::OptimizerAttrInterface>(op.getOptimizer());
  RankedTensorType type = typeOf(module.lookupSymbol(parameter));
  for (double &element : gradient.values)
    element *= factors.scale.values[0];
  if (arithmetic == Arithmetic::Rounded)
    nn::roundTensor(gradient, Float32Type::get(op.getContext()));
  SmallVector<Tensor> arguments{valueOf(parameter, type), gradient, factors.rate, factors.count};
  SmallVector<std::string> names{parameter.str()};
  for (StringRef state : optimizer.getStateNames()) {
    names.push_back((parameter + "." + state).str());
    arguments.push_back(valueOf(names.back(), typeOf(module.lookupSymbol(names.back()))));
  }
  // The arithmetic of an update is f32 whatever its operands are stored in.
  auto wide = RankedTensorType::get(type.getShape(), Float32Type::get(op.getContext()));
  auto scalar = RankedTensorType::get({}, Float32Type::get(op.getContext()));
  SmallVector<Type> types{wide, wide, scalar, scalar};
  types.append(optimizer.getStateNames().size(), wide);

  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(scratch->getBody());
  auto function =
      func::FuncOp::create(builder, op.getLoc(), "rule",
                           builder.getFunctionType(types, SmallVector<Type>(names.size(), wide)));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  SmallVector<Value> after =
      optimizer.buildUpdate(builder, op.getLoc(), body->getArgument(0), body->getArgument(1),
                            body->getArguments().drop_front(4), body->getArgument(2),
                            body->getArgument(3), op.getWeightDecay().convertToDouble());
  func::ReturnOp::create(builder, op.getLoc(), after);
  SmallVector<Tensor> updated;
  if (failed(Interpreter(arithmetic).interpret(function, arguments, updated)))
    return failure();
  for (auto [index, target] : llvm::enumerate(names)) {
    size_t before = index == 0 ? 0 : 3 + index;
    result.updated[target] = isCommitted ? updated[index] : arguments[before];
  }
  return success();
}

LogicalResult StepInterpreter::update(train::UpdateOp op) {
  UpdateFactors factors{interpreter.lookup(op.getScale()), interpreter.lookup(op.getRate()),
                        interpreter.lookup(op.getCount())};
  result.factors[op.getGroup().str()] = factors;
  for (auto [name, value] :
       llvm::zip(op.getParameters().getAsRange<FlatSymbolRefAttr>(), op.getGradients())) {
    const Tensor &gradient = interpreter.lookup(value);
    result.gradients[name.getValue().str()] = gradient;
    if (failed(applyRule(op, name.getValue(), gradient, factors, committed)))
      return failure();
  }
  return success();
}

LogicalResult StepInterpreter::reapply(const NamedTensors &gradients, StepResult &known) {
  auto step = module.lookupSymbol<train::FuncOp>("step");
  bool isCommitted = known.scalars["committed"].values[0] != 0.0;
  WalkResult walked = step.walk([&](train::UpdateOp op) {
    const UpdateFactors &factors = known.factors.at(op.getGroup().str());
    for (auto name : op.getParameters().getAsRange<FlatSymbolRefAttr>()) {
      auto found = gradients.find(name.getValue());
      if (found == gradients.end())
        continue;
      if (failed(applyRule(op, name.getValue(), found->second, factors, isCommitted)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  for (auto &[name, value] : result.updated)
    known.updated[name] = std::move(value);
  return failure(walked.wasInterrupted());
}

void StepInterpreter::installHandlers() {
  interpreter.parameters = inputs.values;
  interpreter.handle(
      "train.read", [this](Interpreter &, Operation *op, Operands, Results &results) {
        auto read = cast<train::ReadOp>(op);
        if (auto slab = module.lookupSymbol<train::SlabOp>(read.getSymbolAttr()))
          results.push_back(readSlab(slab));
        else
          results.push_back(
              valueOf(read.getSymbol(), cast<RankedTensorType>(read.getValue().getType())));
        return success();
      });
  interpreter.handle(
      "train.gradient", [this](Interpreter &, Operation *op, Operands operands, Results &) {
        result.gradients[cast<train::GradientOp>(op).getParameter().str()] = operands[0];
        return success();
      });
  interpreter.handle("train.norm",
                     [](Interpreter &, Operation *, Operands operands, Results &results) {
                       double sum = 0.0;
                       for (const Tensor &operand : operands)
                         for (double element : operand.values)
                           sum += element * element;
                       results.push_back(Tensor({}, std::sqrt(sum)));
                       return success();
                     });
  interpreter.handle("train.seed", [](Interpreter &, Operation *, Operands, Results &results) {
    results.push_back(Tensor({}, 1.0));
    return success();
  });
  interpreter.handle(
      "train.scale_loss", [](Interpreter &, Operation *op, Operands operands, Results &results) {
        double expected = cast<train::ScaleLossOp>(op).getExpected().convertToDouble();
        results.push_back(Tensor({}, operands[0].values[0] / expected));
        return success();
      });
  interpreter.handle("train.unscale",
                     [](Interpreter &, Operation *, Operands operands, Results &results) {
                       Tensor unscaled = operands[0];
                       for (double &element : unscaled.values)
                         element *= operands[1].values[0];
                       results.push_back(std::move(unscaled));
                       return success();
                     });
  interpreter.handle(
      "train.all_finite", [](Interpreter &, Operation *, Operands operands, Results &results) {
        bool finite = llvm::all_of(operands, [](const Tensor &operand) {
          return llvm::all_of(operand.values, [](double x) { return std::isfinite(x); });
        });
        results.push_back(Tensor({}, finite));
        return success();
      });
  interpreter.handle("train.pack",
                     [this](Interpreter &, Operation *op, Operands operands, Results &results) {
                       auto pack = cast<train::PackOp>(op);
                       auto slab = module.lookupSymbol<train::SlabOp>(pack.getSlabAttr());
                       Tensor packed(shapeOf(slab.getType()));
                       for (auto [operand, offset] : llvm::zip(operands, slab.getOffsets()))
                         llvm::copy(operand.values, packed.values.begin() + offset);
                       writeSlab(slab, packed, result.gradients);
                       gradientsAreScaled = true;
                       results.push_back(std::move(packed));
                       return success();
                     });
  interpreter.handle(
      "train.commit", [this](Interpreter &self, Operation *op, Operands operands, Results &) {
        auto commit = cast<train::CommitOp>(op);
        committed = operands[0].values[0] != 0.0;
        SmallVector<Tensor> none;
        if (failed(self.interpretBlock(commit.getBody().front(), {}, none)))
          return failure();
        if (committed || commit.getSkipped().empty())
          return success();
        committed = true; // of the writes that only a skipped step makes
        LogicalResult skipped = self.interpretBlock(commit.getSkipped().front(), {}, none);
        committed = false;
        return skipped;
      });
  interpreter.handle("train.update", [this](Interpreter &, Operation *op, Operands, Results &) {
    return update(cast<train::UpdateOp>(op));
  });
  interpreter.handle("train.write",
                     [this](Interpreter &, Operation *op, Operands operands, Results &) {
                       auto write = cast<train::WriteOp>(op);
                       if (auto slab = module.lookupSymbol<train::SlabOp>(write.getSymbolAttr()))
                         writeSlab(slab, operands[0], result.updated);
                       else if (committed)
                         result.updated[write.getSymbol().str()] = operands[0];
                       return success();
                     });
}

FailureOr<StepResult> StepInterpreter::run() {
  installHandlers();
  Operation *function = module.lookupSymbol<train::FuncOp>("step");
  std::vector<std::string> names{"loss_sum", "loss_weight"};
  if (function) {
    names.clear();
    for (StringRef name :
         cast<train::FuncOp>(function).getReturn().getNames().getAsValueRange<StringAttr>())
      names.push_back(name.str());
  } else {
    auto models = module.getOps<nn::ModelOp>();
    if (models.empty())
      return module.emitError("has neither train.func @step nor an nn.model to interpret");
    function = *models.begin();
  }
  SmallVector<Tensor> arguments(ArrayRef<Tensor>(inputs.inputs)), outputs;
  // Storage that is rounded stochastically brings a generator's key as one more input.
  if (function->getRegion(0).getNumArguments() == arguments.size() + 1)
    arguments.push_back(inputs.rng);
  if (failed(interpreter.interpret(function, arguments, outputs)))
    return failure();
  for (auto [name, output] : llvm::zip(names, outputs))
    result.scalars[name] = output;
  if (auto unscale = result.scalars.find("unscale");
      gradientsAreScaled && unscale != result.scalars.end())
    for (auto &[name, gradient] : result.gradients)
      for (double &element : gradient.values)
        element *= unscale->second.values[0];
  return std::move(result);
}

FailureOr<StepResult> interpretStep(ModuleOp module, const StepInputs &inputs,
                                    Arithmetic arithmetic, const Interpreter::Observer &observer) {
  module.getContext()
      ->loadDialect<func::FuncDialect>(); // update rules are interpreted as functions
  StepInterpreter interpreter(module, inputs, arithmetic);
  interpreter.observe(observer);
  return interpreter.run();
}

LogicalResult applyUpdates(ModuleOp module, const StepInputs &inputs, const NamedTensors &gradients,
                           Arithmetic arithmetic, StepResult &result) {
  return StepInterpreter(module, inputs, arithmetic).reapply(gradients, result);
}

bool areFinite(const NamedTensors &tensors) {
  return llvm::all_of(tensors, [](const auto &entry) {
    return llvm::all_of(entry.second.values, [](double x) { return std::isfinite(x); });
  });
}

StepInputs makeInputs(ModuleOp module, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  StepInputs inputs;
  inputs.rng = Tensor({4});
  inputs.rng.values[0] = static_cast<double>(seed & 0x7fffffff);
  // Every value is rounded to f32, so that the compiled program can start from exactly the same.
  auto rounded = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  nn::ModelOp model = *module.getOps<nn::ModelOp>().begin();
  for (auto parameter : model.getBody().front().getOps<nn::ParameterOp>()) {
    Tensor tensor(shapeOf(parameter.getValue().getType()));
    for (double &element : tensor.values) {
      if (auto constant = dyn_cast<nn::ConstantInitAttr>(parameter.getInit()))
        // Not exactly the constant: gradients at zero biases and unit gains hide mistakes.
        element = rounded(constant.getValue() + 0.05 * normal(generator));
      else if (auto init = dyn_cast<nn::NormalInitAttr>(parameter.getInit()))
        element = rounded(init.getMean() + init.getDeviation() * normal(generator));
      else if (auto uniform = dyn_cast<nn::UniformInitAttr>(parameter.getInit()))
        element = rounded(
            std::uniform_real_distribution<double>(uniform.getLow(), uniform.getHigh())(generator));
    }
    inputs.values[parameter.getName().str()] = std::move(tensor);
  }
  for (auto [number, type] : llvm::enumerate(model.getArgumentTypes())) {
    Tensor tensor(shapeOf(type));
    auto role = model.getArgAttrOfType<StringAttr>(number, "nn.role");
    auto range = model.getArgAttrOfType<DenseI64ArrayAttr>(number, "nn.range");
    Type element = cast<RankedTensorType>(type).getElementType();
    if (role && role.getValue() == "row_weights")
      llvm::fill(tensor.values, 1.0);
    else if (role && role.getValue() == "rng")
      tensor = inputs.rng;
    else
      for (double &value : tensor.values)
        value = isa<FloatType>(element)
                    ? rounded(normal(generator))
                    : static_cast<double>(std::uniform_int_distribution<int64_t>(
                          range ? std::max<int64_t>(0, range[0]) : 0,
                          range ? range[1] - 1 : 1)(generator));
    inputs.inputs.push_back(std::move(tensor));
  }
  return inputs;
}

double relativeDifference(const Tensor &expected, const Tensor &actual) {
  if (expected.size() != actual.size())
    return INFINITY;
  double largest = 0.0, difference = 0.0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double here = std::abs(expected.values[i] - actual.values[i]);
    if (std::isnan(here))
      return INFINITY;
    largest = std::max(largest, std::abs(expected.values[i]));
    difference = std::max(difference, here);
  }
  return difference == 0.0 ? 0.0 : difference / std::max(largest, 1e-30);
}

} // namespace descent::reference
