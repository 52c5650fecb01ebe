//===- Nonfinite.h - Losses and gradients that are no numbers -------------------------------===//
//
// The compiled step decides by itself whether to commit, and with a dynamic loss scale it also
// lowers the scale. What is left to the trainer is the policy: is a step that changed nothing part
// of finding the right scale, or is the run broken? A scale that can still fall is given the time
// to do so; what no smaller scale can cure ends the run after a few steps.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_NONFINITE_H
#define DESCENT_RUNTIME_TRAINER_NONFINITE_H

#include "runtime/trainer/Model.h"

#include "descent/abi.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace descent {

class Settings;

/// The loss scale of a program between two steps; a step says itself which one it used.
class LossScale {
public:
  LossScale(const Model &model, const Settings &settings);

  bool isDynamic() const { return state != nullptr; }
  /// The scale that the next step will use, where it is dynamic; else 1.
  float next() const { return state ? model.get<float>(*state) : 1.0f; }
  /// The scale that this step left to the next.
  float after(const StepResult &result) const {
    return result.nextLossScale ? *result.nextLossScale : next();
  }
  /// Whether a gradient that overflowed in this step may fit in the next.
  bool canFall(const StepResult &result) const {
    return state && result.lossScale && *result.lossScale > floor;
  }

private:
  const Model &model;
  const descent_tensor *state;
  float floor = 1.0f;
};

/// What --on-nonfinite says.
enum class OnNonfinite { Skip, Stop };

/// Counts the steps that changed nothing and says when enough is enough.
class NonfinitePolicy {
public:
  /// Steps in a row that no smaller scale can cure, and steps in a row of any kind, after which a
  /// run that skips is called off.
  static constexpr int64_t maximumIncurable = 10, maximumSkips = 100;

  explicit NonfinitePolicy(OnNonfinite action) : action(action) {}

  enum class Cause {
    None,      ///< the step was committed and its loss is a number
    NoTargets, ///< no target of the batch counts: a skip that is nobody's fault
    Loss,      ///< the loss is not finite: the forward pass
    Gradient   ///< the loss is, the gradient is not
  };
  struct Verdict {
    Cause cause = Cause::None;
    bool stop = false;
    int64_t skips = 0;     ///< in a row, this step included
    int64_t incurable = 0; ///< of these, at the end, those that a smaller scale cannot cure
    bool isNonfinite() const { return cause == Cause::Loss || cause == Cause::Gradient; }
  };

  /// To be called once a step. `scaleCanFall`: see LossScale::canFall.
  Verdict judge(const StepResult &result, bool scaleCanFall);

private:
  OnNonfinite action;
  int64_t skips = 0, incurable = 0;
};

/// The first value that is not finite.
struct Finding {
  enum class Place {
    Input,     ///< it came with the batch
    Parameter, ///< the weights or states held it before the step
    Gradient,  ///< a gradient that --inject-nonfinite wrote to
    Output     ///< a launch made it from finite values
  } place = Place::Output;
  std::string tensor; ///< "nn.exp h.0 (model.mlir:12)", "input 'x'", "gradient of w"
  std::string type;   ///< "f16 [64, 128]"
  std::vector<int64_t> index;
  float value = 0;
  bool isHalf = false; ///< of type f16, whose largest value is 65504
  const descent_site *site = nullptr;
  int64_t launch = 0;

  /// One sentence with all of it, without an end.
  std::string text() const;
};

/// What a step did to the run: "the gradient's norm is inf, nothing was changed; the loss scale
/// becomes 32768".
std::string skipText(const NonfinitePolicy::Verdict &verdict, const StepResult &result,
                     const LossScale &scale);

/// Why this step is the last one, and what may keep the next run finite: sentences.
std::string stopText(const NonfinitePolicy::Verdict &verdict, const StepResult &result,
                     const Finding *finding, const LossScale &scale);

/// What --inject-nonfinite asks for: an inf in element 0 of a gradient, in one step.
struct Injection {
  int64_t step = 0; ///< from 1; 0 for never
  const descent_parameter *parameter = nullptr;
};

/// Reads "STEP" or "STEP:PARAMETER"; without a name the first trainable parameter is meant. Throws
/// Error with ExitUsage for a step before the first and for what is no trainable parameter.
Injection parseInjection(const std::string &text, const descent_program &program);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_NONFINITE_H
