//===- Nonfinite.cpp - Losses and gradients that are no numbers -----------------------------===//
#include "runtime/trainer/Nonfinite.h"
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

using namespace descent;

LossScale::LossScale(const Model &model, const Settings &settings)
    : model(model), state(findState(model.program, DESCENT_LOSS_SCALE_STATE)),
      floor(static_cast<float>(settings.real("precision.loss_scale_floor", 1.0))) {}

NonfinitePolicy::Verdict NonfinitePolicy::judge(const StepResult &result, bool scaleCanFall) {
  Verdict verdict;
  if (result.lossWeight == 0)
    verdict.cause = Cause::NoTargets;
  else if (!std::isfinite(result.lossSum) || !std::isfinite(result.lossWeight))
    verdict.cause = Cause::Loss;
  else if (!result.committed)
    verdict.cause = Cause::Gradient;

  skips = result.committed ? 0 : skips + 1;
  // A batch without targets says nothing about the steps around it.
  if (verdict.cause != Cause::NoTargets) {
    bool cures = verdict.cause == Cause::None || (verdict.cause == Cause::Gradient && scaleCanFall);
    incurable = cures ? 0 : incurable + 1;
  }
  verdict.skips = skips;
  verdict.incurable = incurable;
  verdict.stop = (verdict.isNonfinite() && action == OnNonfinite::Stop) ||
                 incurable >= maximumIncurable || skips >= maximumSkips;
  return verdict;
}

/// "-nan" would say something that means nothing.
static std::string numberText(float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string Finding::text() const {
  bool made = place == Place::Output;
  return fmt::format("{}{} of {} ({}), which {} {} (launch {}, kernel {})", numberText(value),
                     index.empty() ? "" : fmt::format(" at [{}]", fmt::join(index, ", ")), tensor,
                     type, made ? "comes out of" : "goes into", site->source, launch,
                     site->kernel->name);
}

std::string descent::skipText(const NonfinitePolicy::Verdict &verdict, const StepResult &result,
                              const LossScale &scale) {
  using Cause = NonfinitePolicy::Cause;
  std::string text;
  if (verdict.cause == Cause::NoTargets)
    text = "no target of the batch counts";
  else if (verdict.cause == Cause::Loss)
    text = fmt::format("the loss is {}", numberText(result.loss()));
  else
    text = fmt::format("the gradient's norm is {}", numberText(result.gradientNorm));
  if (!result.committed)
    text += ", nothing was changed";
  if (verdict.isNonfinite() && scale.isDynamic()) {
    float after = scale.after(result);
    text += fmt::format("; the loss scale {} {:g}", after == result.lossScale ? "stays" : "becomes",
                        after);
  }
  return text;
}

std::string descent::stopText(const NonfinitePolicy::Verdict &verdict, const StepResult &result,
                              const Finding *finding, const LossScale &scale) {
  std::string text;
  if (verdict.skips >= NonfinitePolicy::maximumSkips)
    text = fmt::format("{} steps in a row changed nothing. ", verdict.skips);
  else if (verdict.incurable >= NonfinitePolicy::maximumIncurable)
    text = fmt::format("{} steps in a row were not finite, and no smaller loss scale cures that. ",
                       verdict.incurable);
  if (!verdict.isNonfinite())
    return text + "Data whose targets are all ignored teaches nothing.";
  if (!finding)
    text += "A second run of the step found no value that is not finite. ";
  else
    text += fmt::format("The first value that is not finite is {}. ", finding->text());
  switch (finding ? finding->place : Finding::Place::Output) {
  case Finding::Place::Input:
    return text + "Values that are no numbers must leave the data.";
  case Finding::Place::Parameter:
    return text +
           "It was there before the step: start from an earlier checkpoint or other weights.";
  case Finding::Place::Gradient:
    return text + "--inject-nonfinite put it there.";
  case Finding::Place::Output:
    break;
  }
  if (finding && finding->isHalf)
    text += "f16 ends at 65504: precision.compute = \"bf16\", or an override that gives this op "
            "another type, holds larger values. ";
  bool fixedScale = !scale.isDynamic() && result.lossScale.value_or(1.0f) > 1.0f;
  return text + fmt::format("{} lower optimizer.lr, a longer schedule.warmup or optimizer.clip "
                            "keeps a run finite; data with values that are no numbers never is.",
                            fixedScale ? "A smaller precision.loss_scale, a" : "A");
}

Injection descent::parseInjection(const std::string &text, const descent_program &program) {
  size_t colon = text.find(':');
  std::string number = text.substr(0, colon);
  Injection injection;
  auto [stop, error] =
      std::from_chars(number.data(), number.data() + number.size(), injection.step);
  if (error != std::errc() || stop != number.data() + number.size() || injection.step < 1)
    throw Error(fmt::format("--inject-nonfinite {}: '{}' is no step; steps count from 1, and "
                            "STEP:PARAMETER chooses a gradient",
                            text, number),
                ExitUsage);
  bool named = colon != std::string::npos;
  std::string name = named ? text.substr(colon + 1) : "";
  const descent_parameter *frozen = nullptr;
  std::string trainable;
  for (uint64_t i = 0; i < program.parameter_count; ++i) {
    const descent_parameter &parameter = program.parameters[i];
    bool wanted = !named || name == parameter.tensor.name;
    if (!parameter.trainable) {
      frozen = named && wanted ? &parameter : frozen;
      continue;
    }
    if (wanted && !injection.parameter)
      injection.parameter = &parameter;
    if (trainable.size() < 400)
      trainable += fmt::format("{}{}", trainable.empty() ? "" : ", ", parameter.tensor.name);
    else if (!trainable.ends_with(", ..."))
      trainable += ", ...";
  }
  if (frozen)
    throw Error(fmt::format("--inject-nonfinite {}: parameter '{}' is frozen and has no gradient",
                            text, name),
                ExitUsage);
  if (!injection.parameter)
    throw Error(fmt::format("--inject-nonfinite {}: model '{}' has no trainable parameter{}; it "
                            "has {}",
                            text, program.name, named ? " '" + name + "'" : "",
                            trainable.empty() ? "none" : trainable),
                ExitUsage);
  if (findFunction(program, "step").gradients_ready == DESCENT_NO_LAUNCH)
    throw Error(fmt::format("--inject-nonfinite: the step of model '{}' keeps no whole gradients",
                            program.name),
                ExitUsage);
  return injection;
}
