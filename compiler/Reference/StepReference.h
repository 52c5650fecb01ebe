//===- StepReference.h - One training step in double precision ------------===//
//
// Interprets a module at any point before plan-memory: an nn.model (loss only), train.func @step
// before and after the optimizer, with updates or with slabs. So the same inputs can be followed
// through every pass.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H
#define DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H

#include "dialects/NN/ReferenceTensor.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace descent::reference {

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// What a step starts from.
struct StepInputs {
  NamedTensors values;        ///< parameters and states by name; states that are missing are zero
  std::vector<Tensor> inputs; ///< one for each argument of the model or function, in order
};

/// What it leaves behind; parts that do not exist yet at this level are empty.
struct StepResult {
  NamedTensors scalars;   ///< loss_sum, loss_weight, grad_norm, learning_rate, committed
  NamedTensors gradients; ///< of the sum of losses, by parameter
  NamedTensors updated;   ///< parameters and states after the step
};

/// Fails after emitting an error at the op that could not be interpreted.
mlir::FailureOr<StepResult> interpretStep(mlir::ModuleOp module, const StepInputs &inputs);

/// Values of the kind the program expects: parameters by their initialisers, normal data, integers
/// in their ranges, row weights of one. A pure function of the module and the seed. The module
/// holds an nn.model after the Import phase.
StepInputs makeInputs(mlir::ModuleOp module, uint64_t seed);

/// The largest difference, relative to the largest magnitude of the first; infinite where shapes
/// differ or one is not a number.
double relativeDifference(const Tensor &expected, const Tensor &actual);

} // namespace descent::reference

#endif // DESCENT_COMPILER_REFERENCE_STEPREFERENCE_H
