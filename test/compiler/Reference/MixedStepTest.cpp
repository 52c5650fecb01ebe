//===- MixedStepTest.cpp - Steps in narrow types, interpreted -------------===//
//
// What semantics demand of loss scaling and of skipped steps, on the program as the precision
// passes leave it: no code generation between the claim and the numbers.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Compile.h"
#include "compiler/Pipelines/Register.h"
#include "compiler/Reference/StepReference.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace descent;
using namespace descent::reference;

namespace {

class MixedStep : public testing::Test {
protected:
  MixedStep() {
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  }

  CompileOptions optionsOf(const std::string &precision) {
    std::vector<RecipeError> errors;
    std::optional<Recipe> recipe = parseRecipeText("[data]\nformat = \"npz\"\n"
                                                   "[batch]\nsize = 4\n"
                                                   "[optimizer]\nkind = \"adamw\"\n"
                                                   "[precision]\n" +
                                                       precision,
                                                   "/models/mlp/recipe.toml", {}, errors);
    for (const RecipeError &error : errors)
      ADD_FAILURE() << error.text();
    CompileOptions options;
    options.modelPath = DESCENT_SOURCE_DIR "/test/Inputs/mlp-tiny.mlir";
    options.recipe = *recipe;
    return options;
  }

  /// One step from the same parameters and inputs whatever the precision, with `states` set.
  StepResult step(const std::string &precision, Arithmetic arithmetic, NamedTensors states = {}) {
    CompileOptions options = optionsOf(precision);
    Compilation model(*context, options), train(*context, options);
    FailureOr<ModuleOp> nn = model.lowerTo(Level::NN), module = train.lowerTo(Level::Train);
    if (failed(nn) || failed(module)) {
      ADD_FAILURE() << "the model does not compile with " << precision;
      return {};
    }
    start = makeInputs(*nn, /*seed=*/3);
    for (auto &[name, value] : states)
      start.values[name] = value;
    FailureOr<StepResult> result = interpretStep(*module, start, arithmetic);
    if (failed(result)) {
      ADD_FAILURE() << "the step cannot be interpreted";
      return {};
    }
    return *result;
  }

  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  StepInputs start;
};

bool isParameterOrMoment(const std::string &name) {
  return name.find("fc") == 0; // parameters and the states named after them
}

} // namespace

TEST_F(MixedStep, ExactArithmeticIsThatOfFp32WhateverTheTypes) {
  StepResult fp32 = step("compute = \"fp32\"", Arithmetic::Exact);
  for (const char *compute : {"bf16", "fp16", "tf32"}) {
    StepResult narrow = step("compute = \"" + std::string(compute) + "\"", Arithmetic::Exact);
    for (const auto &[name, gradient] : fp32.gradients)
      EXPECT_LE(relativeDifference(gradient, narrow.gradients.at(name)), 1e-12)
          << compute << " " << name;
  }
}

// In f16 from a scale at which nothing is subnormal to one just below overflow, in bf16 far beyond.
TEST_F(MixedStep, EveryPowerOfTwoScaleGivesTheSameBits) {
  for (auto [compute, least, most] : {std::tuple("bf16", 0, 60), std::tuple("fp16", 10, 16)}) {
    StepResult first;
    for (int exponent = least; exponent <= most; ++exponent) {
      std::string scale = std::to_string(static_cast<int64_t>(std::ldexp(1.0, exponent)));
      StepResult result = step("compute = \"" + std::string(compute) + "\"\nloss_scale = " + scale,
                               Arithmetic::Rounded);
      ASSERT_EQ(result.scalars["committed"].values[0], 1.0) << compute << " " << scale;
      if (exponent == least) {
        first = result;
        continue;
      }
      EXPECT_EQ(result.scalars["grad_norm"].values, first.scalars["grad_norm"].values);
      for (const auto &[name, value] : first.updated)
        EXPECT_EQ(result.updated.at(name).values, value.values)
            << compute << " " << name << " at scale " << scale;
    }
  }
}

TEST_F(MixedStep, ASkippedStepChangesTheScaleAlone) {
  Tensor huge({}, 0x1p40), clean({}, 7.0), skipped({}, 2.0);
  StepResult result =
      step("compute = \"fp16\"", Arithmetic::Rounded,
           {{"loss_scale", huge}, {"clean_steps", clean}, {"skipped_steps", skipped}});
  EXPECT_EQ(result.scalars["committed"].values[0], 0.0);
  EXPECT_FALSE(areFinite(result.gradients));
  int kept = 0;
  for (const auto &[name, value] : result.updated)
    if (isParameterOrMoment(name)) {
      auto before = start.values.find(name);
      Tensor expected = before == start.values.end() ? Tensor(value.shape) : before->second;
      EXPECT_EQ(value.values, expected.values) << name;
      ++kept;
    }
  EXPECT_EQ(kept, 12); // four parameters with two moments each
  EXPECT_EQ(result.updated.count("updates"), 0u);
  EXPECT_EQ(result.updated.at("loss_scale").values[0], 0x1p39);
  EXPECT_EQ(result.updated.at("clean_steps").values[0], 0.0);
  EXPECT_EQ(result.updated.at("skipped_steps").values[0], 3.0);
}

TEST_F(MixedStep, TheScaleGrowsAfterEnoughCleanStepsAndStopsAtItsFloor) {
  StepResult grown = step("compute = \"fp16\"", Arithmetic::Rounded,
                          {{"loss_scale", Tensor({}, 512.0)}, {"clean_steps", Tensor({}, 1999.0)}});
  EXPECT_EQ(grown.updated.at("loss_scale").values[0], 1024.0);
  EXPECT_EQ(grown.updated.at("clean_steps").values[0], 0.0);
  StepResult floor =
      step("compute = \"fp16\"\nloss_scale_floor = 65536", Arithmetic::Rounded,
           {{"loss_scale", Tensor({}, 65536.0)}, {"fc0.weight", Tensor({4, 5}, INFINITY)}});
  EXPECT_EQ(floor.scalars["committed"].values[0], 0.0);
  EXPECT_EQ(floor.updated.at("loss_scale").values[0], 65536.0);
}
