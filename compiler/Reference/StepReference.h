//===- StepReference.h - One training step in double precision ------------===//
//
// Interprets a module at any point before plan-memory: an nn.model (loss only), train.func @step
// before and after the optimizer, with updates or with slabs. So the same inputs can be followed
// through every pass.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H
#define DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H

#include "compiler/Reference/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace descent::reference {

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// What a step starts from.
struct StepInputs {
  NamedTensors values; ///< parameters and states by name; missing states have their initial value
  std::vector<Tensor> inputs; ///< one for each argument of the model, in order
  Tensor rng; ///< for a function that draws random numbers where the model drew none
};

/// What an update multiplies with.
struct UpdateFactors {
  Tensor scale, rate, count;
};

/// What it leaves behind; parts that do not exist yet at this level are empty.
struct StepResult {
  NamedTensors scalars;   ///< loss_sum, loss_weight, grad_norm, learning_rate, committed, unscale
  NamedTensors gradients; ///< of the sum of losses, without a loss scale, by parameter
  NamedTensors updated;   ///< parameters and states after the step
  std::map<std::string, UpdateFactors> factors; ///< by group, while there are train.update ops
};

/// `observer` sees the ops of the step. Fails after emitting an error at the op that could not be
/// interpreted.
mlir::FailureOr<StepResult> interpretStep(mlir::ModuleOp module, const StepInputs &inputs,
                                          Arithmetic arithmetic = Arithmetic::Exact,
                                          const Interpreter::Observer &observer = nullptr);

/// Replaces what `result.updated` says of parameters and their states by what the updates of @step
/// make of other gradients (of the sum of losses). Needs the level that `result.factors` is from.
/// Where tiny gradients decide signs, as in Adam's first step, an update can only be judged by the
/// gradients it got.
mlir::LogicalResult applyUpdates(mlir::ModuleOp module, const StepInputs &inputs,
                                 const NamedTensors &gradients, Arithmetic arithmetic,
                                 StepResult &result);

/// Whether every element of every tensor is finite.
bool areFinite(const NamedTensors &tensors);

/// Values of the kind the program expects: parameters by their initialisers, normal data, integers
/// in their ranges, row weights of one. A pure function of the module and the seed. The module
/// holds an nn.model after the Import phase.
StepInputs makeInputs(mlir::ModuleOp module, uint64_t seed);

/// The largest difference, relative to the largest magnitude of the first; infinite where shapes
/// differ or one is not a number.
double relativeDifference(const Tensor &expected, const Tensor &actual);

} // namespace descent::reference

#endif // DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H
