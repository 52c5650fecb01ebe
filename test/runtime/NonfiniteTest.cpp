//===- NonfiniteTest.cpp - Skipped steps: what they leave, when they end a run, where they come from
//
// The specimen scales its loss: targets beyond 1e15 make its gradients overflow until the scale has
// fallen far enough, targets beyond 1e19 its loss.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/trainer/Nonfinite.h"
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace descent;
using Cause = NonfinitePolicy::Cause;

extern "C" const descent_program specimen __asm__(DESCENT_PROGRAM_SYMBOL);

namespace {

/// A specimen before its first step, with a batch.
class Specimen : public ::testing::Test {
protected:
  Specimen() : model(specimen, 2, false), settings(specimen), scale(model, settings) {
    model.initialize(1);
    model.refresh();
    for (uint64_t i = 0; i < 2; ++i)
      fillUniform(input(i), static_cast<int64_t>(specimen.inputs[i].tensor.bytes / 4), 1,
                  specimen.inputs[i].tensor.name, 0.5, 1.0);
    std::fill_n(input(2), 8, 1.0f);
  }

  float *input(uint64_t i) {
    return reinterpret_cast<float *>(model.at(specimen.inputs[i].tensor));
  }
  float *inputX() { return input(0); }
  float *inputY() { return input(1); }
  template <typename T> T &state(const char *name) {
    return *reinterpret_cast<T *>(model.at(*findState(specimen, name)));
  }
  /// Everything that a step which does not commit must leave alone.
  std::string committedBytes() {
    std::string bytes;
    auto add = [&](const descent_tensor &tensor) {
      bytes.append(reinterpret_cast<const char *>(model.at(tensor)), tensor.bytes);
    };
    for (uint64_t i = 0; i < specimen.parameter_count; ++i)
      add(specimen.parameters[i].tensor);
    for (uint64_t i = 0; i < 3; ++i) // Momenta and the counter of updates.
      add(specimen.states[i].tensor);
    bytes.append(reinterpret_cast<const char *>(model.at(640)), 64); // Working copies.
    return bytes;
  }
  std::string allStates() {
    std::string bytes = committedBytes();
    for (uint64_t i = 3; i < specimen.state_count; ++i)
      bytes.append(reinterpret_cast<const char *>(model.at(specimen.states[i].tensor)),
                   specimen.states[i].tensor.bytes);
    return bytes;
  }

  Model model;
  Settings settings;
  LossScale scale;
};

StepResult resultOf(float lossSum, float lossWeight, bool committed) {
  return {lossSum, lossWeight, committed ? 1.0f : INFINITY, 0.1f, committed};
}
const StepResult good = resultOf(1, 8, true), badGradient = resultOf(1, 8, false),
                 badLoss = resultOf(NAN, 8, false), noTargets = resultOf(0, 0, false);

} // namespace

//===----------------------------------------------------------------------------------------===//
// The policy
//===----------------------------------------------------------------------------------------===//

TEST(NonfinitePolicy, StopEndsTheRunAtOnce) {
  for (const StepResult &result : {badGradient, badLoss}) {
    NonfinitePolicy policy(OnNonfinite::Stop);
    EXPECT_FALSE(policy.judge(good, true).stop);
    EXPECT_TRUE(policy.judge(result, true).stop);
  }
  // The loss of a committed step counts as well.
  EXPECT_TRUE(NonfinitePolicy(OnNonfinite::Stop).judge(resultOf(INFINITY, 8, true), true).stop);
}

TEST(NonfinitePolicy, BatchesWithoutTargetsAreNobodysFault) {
  NonfinitePolicy policy(OnNonfinite::Stop);
  for (int64_t i = 1; i < NonfinitePolicy::maximumSkips; ++i) {
    NonfinitePolicy::Verdict verdict = policy.judge(noTargets, false);
    EXPECT_EQ(verdict.cause, Cause::NoTargets);
    ASSERT_FALSE(verdict.stop) << i;
  }
  EXPECT_TRUE(policy.judge(noTargets, false).stop);
}

TEST(NonfinitePolicy, SkipEndsTheRunAfterTenThatNoSmallerScaleCures) {
  struct Case {
    StepResult result;
    bool scaleCanFall;
  };
  for (const Case &one : {Case{badGradient, false}, Case{badLoss, true}, Case{badLoss, false},
                          Case{resultOf(NAN, 8, true), true}}) {
    NonfinitePolicy policy(OnNonfinite::Skip);
    for (int64_t i = 1; i < NonfinitePolicy::maximumIncurable; ++i)
      ASSERT_FALSE(policy.judge(one.result, one.scaleCanFall).stop) << i;
    // A good step starts the count anew, a batch without targets does not.
    policy.judge(good, true);
    for (int64_t i = 1; i < NonfinitePolicy::maximumIncurable; ++i)
      ASSERT_FALSE(policy.judge(one.result, one.scaleCanFall).stop) << i;
    ASSERT_FALSE(policy.judge(noTargets, one.scaleCanFall).stop);
    EXPECT_TRUE(policy.judge(one.result, one.scaleCanFall).stop);
  }
}

TEST(NonfinitePolicy, SkipGivesTheScaleTimeToFall) {
  NonfinitePolicy policy(OnNonfinite::Skip);
  for (int64_t i = 1; i < NonfinitePolicy::maximumSkips; ++i)
    ASSERT_FALSE(policy.judge(badGradient, true).stop) << i;
  EXPECT_TRUE(policy.judge(badGradient, true).stop);
}

//===----------------------------------------------------------------------------------------===//
// Skipped steps
//===----------------------------------------------------------------------------------------===//

TEST_F(Specimen, KnowsItsScale) {
  EXPECT_TRUE(scale.isDynamic());
  EXPECT_EQ(scale.next(), 65536.0f);
  StepResult result = model.step();
  EXPECT_EQ(result.lossScale, 65536.0f);
  EXPECT_TRUE(scale.canFall(result));
  result.lossScale = 1.0f;
  EXPECT_FALSE(scale.canFall(result)); // The default floor.

  descent_program program = specimen;
  program.state_count = 3; // A static scale has no state.
  Model fixed(program, 1, false);
  result.lossScale = 1024.0f;
  EXPECT_FALSE(LossScale(fixed, settings).isDynamic());
  EXPECT_FALSE(LossScale(fixed, settings).canFall(result));
}

TEST_F(Specimen, ASkippedStepIsAtomicAndHalvesTheScale) {
  Inspector inspector(model, parseInjection("3", specimen));
  for (int64_t step = 1; step <= 2; ++step)
    EXPECT_TRUE(inspector.step(step).committed);
  std::string before = committedBytes();
  EXPECT_FALSE(inspector.step(3).committed);
  EXPECT_EQ(committedBytes(), before);
  EXPECT_EQ(scale.next(), 32768.0f);
  EXPECT_EQ(state<int64_t>("clean_steps"), 0);
  EXPECT_EQ(state<int64_t>("skipped_steps"), 1);
  EXPECT_TRUE(inspector.step(4).committed);
  EXPECT_NE(committedBytes(), before);
  EXPECT_EQ(scale.next(), 32768.0f);
}

TEST_F(Specimen, TheScaleFallsUntilGradientsFitAndGrowsAgain) {
  std::fill_n(inputY(), 8, 1e17f);
  Inspector inspector(model, {});
  NonfinitePolicy policy(OnNonfinite::Skip);
  int64_t skips = 0;
  for (StepResult result = inspector.step(1); !result.committed; result = inspector.step(1)) {
    EXPECT_EQ(result.lossScale, scale.next() * 2);
    NonfinitePolicy::Verdict verdict = policy.judge(result, scale.canFall(result));
    EXPECT_EQ(verdict.cause, Cause::Gradient);
    ASSERT_FALSE(verdict.stop);
    ++skips;
  }
  EXPECT_GT(skips, NonfinitePolicy::maximumIncurable);
  float found = scale.next();
  EXPECT_EQ(found, std::ldexp(65536.0f, static_cast<int>(-skips)));
  std::fill_n(inputY(), 8, 1.0f);
  for (int step = 1; step < 20; ++step)
    model.step();
  EXPECT_EQ(scale.next(), 2 * found);
}

// The scale is a power of two: it changes exponents and no digits.
TEST_F(Specimen, TheScaleChangesNoBit) {
  std::string first;
  std::vector<float> gradients;
  for (float value : {1.0f, 1024.0f, 0x1p40f}) {
    model.initialize(1);
    model.refresh();
    state<float>("loss_scale") = value;
    StepResult result{};
    for (int step = 0; step < 5; ++step)
      result = model.step();
    EXPECT_EQ(result.unscale, 1.0f / value);
    std::vector<float> unscaled;
    const float *stored =
        reinterpret_cast<const float *>(model.at(specimen.parameters[0].gradient_offset));
    for (int i = 0; i < 3; ++i)
      unscaled.push_back(stored[i] * result.unscale);
    if (first.empty()) {
      first = committedBytes();
      gradients = unscaled;
    }
    EXPECT_EQ(committedBytes(), first) << value;
    EXPECT_EQ(unscaled, gradients) << value;
  }
}

TEST_F(Specimen, RefreshMakesTheWorkingCopies) {
  float *w = reinterpret_cast<float *>(model.at(specimen.parameters[0].tensor));
  w[1] = 1.0f + 3 * 0x1p-8f;
  model.refresh();
  uint16_t working[3];
  std::memcpy(working, model.at(640), sizeof working);
  EXPECT_EQ(working[1], 0x3F82);
}

//===----------------------------------------------------------------------------------------===//
// Where it comes from
//===----------------------------------------------------------------------------------------===//

TEST_F(Specimen, FindsTheOpThatOverflows) {
  inputY()[3] = 1e25f;
  Inspector inspector(model, {});
  StepResult result = inspector.step(1);
  EXPECT_FALSE(std::isfinite(result.lossSum));
  std::string states = allStates();
  std::optional<Finding> finding = inspector.find(result);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->place, Finding::Place::Output);
  EXPECT_EQ(finding->tensor, "nn.mse (specimen.mlir:5)");
  EXPECT_EQ(finding->value, INFINITY);
  EXPECT_TRUE(finding->index.empty());
  EXPECT_EQ(finding->text(), "inf of nn.mse (specimen.mlir:5) (f32 []), which comes out of nn.mse "
                             "(specimen.mlir:5) (launch 1, kernel loss_8)");
  // Nothing of the run changes, the counters included.
  EXPECT_EQ(allStates(), states);
  EXPECT_EQ(model.backend.observer, nullptr);
}

TEST_F(Specimen, FindsTheFirstElementOfAnOutput) {
  std::fill_n(inputX(), 24, 0.0f);
  inputX()[3 * 5] = 3e38f;
  reinterpret_cast<float *>(model.at(specimen.parameters[0].tensor))[0] = 100.0f;
  model.refresh();
  Inspector inspector(model, {});
  StepResult result = inspector.step(1);
  std::optional<Finding> finding = inspector.find(result);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->tensor, "nn.add (specimen.mlir:4)");
  EXPECT_EQ(finding->index, (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(finding->type, "f32 [8, 1]");
}

TEST_F(Specimen, FindsWhatTheBatchBrought) {
  inputX()[3 * 6 + 2] = NAN;
  Inspector inspector(model, {});
  std::optional<Finding> finding = inspector.find(inspector.step(1));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->place, Finding::Place::Input);
  EXPECT_EQ(finding->tensor, "input 'x'");
  EXPECT_EQ(finding->index, (std::vector<int64_t>{6, 2}));
  EXPECT_TRUE(std::isnan(finding->value));
  EXPECT_NE(
      stopText({Cause::Loss, true, 1, 1}, badLoss, &*finding, scale).find("must leave the data"),
      std::string::npos);
}

TEST_F(Specimen, FindsWeightsThatAreNoNumbers) {
  reinterpret_cast<float *>(model.at(specimen.parameters[1].tensor))[0] = INFINITY;
  model.refresh();
  Inspector inspector(model, {});
  std::optional<Finding> finding = inspector.find(inspector.step(1));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->place, Finding::Place::Parameter);
  EXPECT_EQ(finding->tensor, "the working copy of a parameter");
}

TEST_F(Specimen, FindsAnInjectedGradientOfTheParameterThatWasAskedFor) {
  for (const char *name : {"w", "b"}) {
    model.initialize(1);
    model.refresh();
    Inspector inspector(model, parseInjection(std::string("1:") + name, specimen));
    StepResult result = inspector.step(1);
    EXPECT_FALSE(result.committed);
    EXPECT_TRUE(std::isfinite(result.lossSum));
    std::string states = allStates();
    std::optional<Finding> finding = inspector.find(result);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->place, Finding::Place::Gradient);
    EXPECT_EQ(finding->tensor, std::string("the gradient of ") + name);
    EXPECT_EQ(finding->index, std::vector<int64_t>(*name == 'w' ? 2 : 1, 0));
    EXPECT_EQ(finding->launch, 3);
    EXPECT_EQ(allStates(), states);
  }
}

// A step that was committed is not run a second time: that would change the run.
TEST_F(Specimen, LooksForTheLossOfACommittedStepInItsForwardPass) {
  inputY()[3] = 1e25f;
  Inspector inspector(model, {});
  StepResult result = inspector.step(1);
  result.committed = true;
  std::string states = allStates();
  std::optional<Finding> finding = inspector.find(result);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->tensor, "nn.mse (specimen.mlir:5)");
  EXPECT_EQ(allStates(), states);
}

TEST_F(Specimen, FindsNothingInAGoodStep) {
  std::fill_n(input(2), 8, 0.0f); // No row counts, so the step changes nothing.
  Inspector inspector(model, {});
  StepResult result = inspector.step(1);
  EXPECT_FALSE(result.committed);
  EXPECT_FALSE(inspector.find(result));
}

//===----------------------------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------------------------===//

TEST(Injection, ReadsStepAndParameter) {
  EXPECT_EQ(parseInjection("3", specimen).step, 3);
  EXPECT_EQ(parseInjection("3", specimen).parameter, &specimen.parameters[0]);
  EXPECT_EQ(parseInjection("12:b", specimen).parameter, &specimen.parameters[1]);
  std::vector<descent_parameter> parameters(specimen.parameters, specimen.parameters + 2);
  parameters[0].trainable = 0;
  descent_program program = specimen;
  program.parameters = parameters.data();
  EXPECT_EQ(parseInjection("3", program).parameter, &parameters[1]);
  for (auto [text, part] : {std::pair("0", "'0' is no step"),
                            {"x", "'x' is no step"},
                            {"", "'' is no step"},
                            {"1.5", "'1.5' is no step"},
                            {"-1:w", "'-1' is no step"},
                            {"3:", "no trainable parameter ''"},
                            {"3:v", "no trainable parameter 'v'; it has b"},
                            {"3:w", "'w' is frozen"}}) {
    try {
      parseInjection(text, program);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error &error) {
      EXPECT_EQ(error.exitStatus(), ExitUsage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST_F(Specimen, SaysWhatASkippedStepDid) {
  NonfinitePolicy::Verdict verdict{Cause::Gradient, false, 1, 0};
  StepResult result = badGradient;
  result.lossScale = 2 * 65536.0f;
  EXPECT_EQ(skipText(verdict, result, scale),
            "the gradient's norm is inf, nothing was changed; the loss scale becomes 65536");
  result.lossScale = 65536.0f;
  EXPECT_EQ(skipText(verdict, result, scale),
            "the gradient's norm is inf, nothing was changed; the loss scale stays 65536");
  verdict.cause = Cause::NoTargets;
  EXPECT_EQ(skipText(verdict, noTargets, scale),
            "no target of the batch counts, nothing was changed");
  verdict.cause = Cause::Loss;
  result = resultOf(NAN, 8, true);
  result.lossScale = 2 * 65536.0f;
  EXPECT_EQ(skipText(verdict, result, scale), "the loss is nan; the loss scale becomes 65536");
}

TEST_F(Specimen, SaysWhatMayHelp) {
  NonfinitePolicy::Verdict verdict{Cause::Gradient, true, 1, 1};
  StepResult result = badGradient;
  EXPECT_TRUE(stopText(verdict, result, nullptr, scale)
                  .starts_with("A second run of the step found no value that is not finite. A "
                               "lower optimizer.lr"));
  // A static scale may be too large.
  descent_program program = specimen;
  program.state_count = 3;
  Model fixed(program, 1, false);
  result.lossScale = 1024.0f;
  EXPECT_NE(stopText(verdict, result, nullptr, LossScale(fixed, settings))
                .find("A smaller precision.loss_scale, a lower optimizer.lr"),
            std::string::npos);
  // What overflows in f16 may fit into another type.
  Finding finding;
  finding.site = &specimen.functions[0].sites[0];
  finding.isHalf = true;
  EXPECT_NE(stopText(verdict, result, &finding, scale).find("precision.compute = \"bf16\""),
            std::string::npos);
  verdict = {Cause::NoTargets, true, 100, 0};
  EXPECT_EQ(stopText(verdict, noTargets, nullptr, scale),
            "100 steps in a row changed nothing. Data whose targets are all ignored teaches "
            "nothing.");
}
