//===- RulesTest.cpp - Update rules, schedules and patterns ---------------===//
//
// Each rule is built as nn ops and compared, over 20 updates, with its textbook formula written out
// here in double. It runs twice: in double by the interpreter, which shows the formula, and
// compiled in f32, which shows that nothing cancels: 1 - beta^t computed the plain way would lose
// five digits at t = 1.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Reference/Interpreter.h"
#include "compiler/Reference/LinalgExecution.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numbers>

using namespace mlir;
using namespace descent;
using reference::Tensor;

namespace {

MLIRContext &context() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    auto *result = new MLIRContext(registry);
    result->loadAllAvailableDialects();
    return result;
  }();
  return *context;
}

using Body = std::function<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

/// A function of f32 tensors of the given shapes whose results are what `body` builds.
OwningOpRef<ModuleOp> makeFunction(ArrayRef<std::vector<int64_t>> shapes, const Body &body) {
  Location loc = UnknownLoc::get(&context());
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  SmallVector<Type> types;
  for (const std::vector<int64_t> &shape : shapes)
    types.push_back(RankedTensorType::get(shape, builder.getF32Type()));
  auto function = func::FuncOp::create(builder, loc, "rule", builder.getFunctionType(types, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  SmallVector<Value> results = body(builder, loc, function.getArguments());
  func::ReturnOp::create(builder, loc, results);
  function.setFunctionType(builder.getFunctionType(types, ValueRange(results).getTypes()));
  return module;
}

SmallVector<Tensor> run(ModuleOp module, ArrayRef<Tensor> inputs, bool compiled) {
  SmallVector<Tensor> outputs;
  auto function = *module.getOps<func::FuncOp>().begin();
  LogicalResult ran = compiled ? executeThroughLinalg(function, inputs, outputs)
                               : reference::Interpreter().interpret(function, inputs, outputs);
  EXPECT_TRUE(succeeded(ran));
  return outputs;
}

/// NaN-safe; relative to the larger of the value and 1e-3, the size of what the tests compare.
void expectClose(double actual, double expected, double tolerance, const std::string &what) {
  EXPECT_TRUE(std::fabs(actual - expected) <= tolerance * std::max(std::fabs(expected), 1e-3))
      << what << ": " << actual << ", expected " << expected;
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

/// The state of one element.
struct Element {
  double parameter, first = 0.0, second = 0.0;
};
using Textbook = std::function<void(Element &, double gradient, double rate, double count)>;

void checkOptimizer(Attribute attribute, double decay, const Textbook &textbook) {
  constexpr int64_t size = 5, updates = 20;
  auto optimizer = cast<train::OptimizerAttrInterface>(attribute);
  size_t states = optimizer.getStateNames().size();
  std::vector<std::vector<int64_t>> shapes = {
      {size}, {size}, {}, {}}; // parameter, gradient, rate, count
  shapes.insert(shapes.end(), states, {size});
  auto module = makeFunction(shapes, [&](OpBuilder &builder, Location loc, ValueRange a) {
    return optimizer.buildUpdate(builder, loc, a[0], a[1], a.drop_front(4), a[2], a[3], decay);
  });
  for (bool compiled : {false, true}) {
    SCOPED_TRACE(compiled ? "compiled in f32" : "interpreted in double");
    std::vector<Element> expected(size);
    std::vector<Tensor> state(1 + states, Tensor({size}));
    for (int64_t i = 0; i < size; ++i)
      state[0].values[i] = expected[i].parameter = 0.25 * static_cast<double>(i) - 0.5;
    for (int64_t t = 1; t <= updates; ++t) {
      double rate = 0.0625 / static_cast<double>(t);
      Tensor gradient({size});
      for (int64_t i = 0; i < size; ++i) // element 4 never gets a gradient: only decay may move it
        gradient.values[i] =
            i == 4 ? 0.0
                   : std::ldexp(std::round(1024 * std::sin(static_cast<double>(3 * t + i))), -10);
      SmallVector<Tensor> inputs = {state[0], gradient, Tensor({}, rate),
                                    Tensor({}, static_cast<double>(t))};
      inputs.append(state.begin() + 1, state.end());
      SmallVector<Tensor> outputs = run(*module, inputs, compiled);
      ASSERT_EQ(outputs.size(), 1 + states);
      state.assign(outputs.begin(), outputs.end());
      for (int64_t i = 0; i < size; ++i) {
        textbook(expected[i], gradient.values[i], rate, static_cast<double>(t));
        // Constants such as 1 - beta are f32 in both; f32 sums of 20 updates add a few roundings.
        expectClose(state[0].values[i], expected[i].parameter, compiled ? 4e-6 : 1e-6,
                    "update " + std::to_string(t) + ", element " + std::to_string(i));
      }
    }
  }
}

Textbook sgd(double momentum, bool nesterov, double decay) {
  return [=](Element &e, double gradient, double rate, double) {
    gradient += decay * e.parameter;
    if (momentum != 0.0) {
      e.first = momentum * e.first + gradient;
      gradient = nesterov ? gradient + momentum * e.first : e.first;
    }
    e.parameter -= rate * gradient;
  };
}

Textbook adam(double beta1, double beta2, double epsilon, bool decoupled, double decay) {
  return [=](Element &e, double gradient, double rate, double count) {
    if (decoupled)
      e.parameter -= rate * decay * e.parameter;
    else
      gradient += decay * e.parameter;
    e.first = beta1 * e.first + (1.0 - beta1) * gradient;
    e.second = beta2 * e.second + (1.0 - beta2) * gradient * gradient;
    double first = e.first / (1.0 - std::pow(beta1, count)),
           second = e.second / (1.0 - std::pow(beta2, count));
    e.parameter -= rate * first / (std::sqrt(second) + epsilon);
  };
}

TEST(Optimizers, Sgd) {
  checkOptimizer(train::SgdAttr::get(&context(), 0.0, false), 0.0, sgd(0.0, false, 0.0));
}
TEST(Optimizers, SgdWithDecay) {
  checkOptimizer(train::SgdAttr::get(&context(), 0.0, false), 0.1, sgd(0.0, false, 0.1));
}
TEST(Optimizers, Momentum) {
  checkOptimizer(train::SgdAttr::get(&context(), 0.9, false), 0.01, sgd(0.9, false, 0.01));
}
TEST(Optimizers, Nesterov) {
  checkOptimizer(train::SgdAttr::get(&context(), 0.9, true), 0.01, sgd(0.9, true, 0.01));
}
TEST(Optimizers, Adam) {
  checkOptimizer(train::AdamAttr::get(&context(), 0.9, 0.999, 1e-8, false), 0.0,
                 adam(0.9, 0.999, 1e-8, false, 0.0));
}
TEST(Optimizers, AdamWithDecay) {
  checkOptimizer(train::AdamAttr::get(&context(), 0.9, 0.95, 1e-6, false), 0.05,
                 adam(0.9, 0.95, 1e-6, false, 0.05));
}
TEST(Optimizers, AdamW) {
  checkOptimizer(train::AdamAttr::get(&context(), 0.9, 0.999, 1e-8, true), 0.1,
                 adam(0.9, 0.999, 1e-8, true, 0.1));
}

/// With the first moment (1 - beta1) and the second (1 - beta2), the parameter moves by rate x (1 -
/// beta1) / (1 - beta1^t) / sqrt(...): the corrections show.
TEST(Optimizers, BiasCorrectionsKeepTheirDigits) {
  for (double beta : {0.9, 0.99, 0.999, 0.9999}) {
    auto optimizer = cast<train::OptimizerAttrInterface>(
        Attribute(train::AdamAttr::get(&context(), 0.0, beta, 0.0, false)));
    auto module = makeFunction(
        {{1}, {1}, {}, {}, {1}, {1}}, [&](OpBuilder &builder, Location loc, ValueRange a) {
          return optimizer.buildUpdate(builder, loc, a[0], a[1], a.drop_front(4), a[2], a[3], 0.0);
        });
    for (double count : {1.0, 2.0, 3.0, 10.0, 100.0, 1000.0, 100000.0}) {
      // Gradient 1, second moment so that its new value is exactly 1: p = -rate * sqrt(1 - beta^t).
      SmallVector<Tensor> outputs = run(*module,
                                        {Tensor({1}, 0.0), Tensor({1}, 1.0), Tensor({}, 1.0),
                                         Tensor({}, count), Tensor({1}, 0.0), Tensor({1}, 1.0)},
                                        /*compiled=*/true);
      double expected = -std::sqrt(-std::expm1(count * std::log(beta)));
      // f32 keeps about 2^-24 in each of the handful of operations, and log(beta) itself is rounded
      // once.
      EXPECT_TRUE(std::fabs(outputs[0].values[0] / expected - 1.0) <= 1e-6)
          << beta << "^" << count << ": " << outputs[0].values[0] << ", expected " << expected;
    }
  }
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

void checkSchedule(Attribute attribute, ArrayRef<double> counts,
                   const std::function<double(double)> &textbook) {
  auto schedule = cast<train::ScheduleAttrInterface>(attribute);
  auto module = makeFunction({{}}, [&](OpBuilder &builder, Location loc, ValueRange a) {
    return SmallVector<Value>{schedule.buildRate(builder, loc, a[0])};
  });
  for (bool compiled : {false, true})
    for (double count : counts)
      expectClose(run(*module, {Tensor({}, count)}, compiled)[0].values[0], textbook(count), 2e-6,
                  "update " + std::to_string(count) + (compiled ? " compiled" : " interpreted"));
}

const double counts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                         12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 40};

double warmedUp(double rate, double warmup, double count, double after) {
  return count <= warmup ? rate * count / warmup : after;
}
double progress(double warmup, double steps, double count) {
  return std::min(1.0, (count - warmup) / (steps - warmup));
}

TEST(Schedules, Constant) {
  checkSchedule(train::ConstantScheduleAttr::get(&context(), 0.1, 0), counts,
                [](double) { return 0.1; });
  checkSchedule(train::ConstantScheduleAttr::get(&context(), 0.1, 5), counts,
                [](double t) { return warmedUp(0.1, 5, t, 0.1); });
}
TEST(Schedules, Linear) {
  checkSchedule(train::LinearScheduleAttr::get(&context(), 0.5, 0.05, 4, 20), counts, [](double t) {
    return warmedUp(0.5, 4, t, 0.5 + (0.05 - 0.5) * progress(4, 20, t));
  });
}
TEST(Schedules, Cosine) {
  checkSchedule(train::CosineScheduleAttr::get(&context(), 0.5, 0.05, 4, 20), counts, [](double t) {
    return warmedUp(0.5, 4, t,
                    0.05 + (0.5 - 0.05) * 0.5 *
                               (1.0 + std::cos(std::numbers::pi * progress(4, 20, t))));
  });
}
TEST(Schedules, WarmUpEndsAtTheFullRateAndTheEndHoldsTheLeast) {
  auto rateAt = [](Attribute schedule, double count) {
    auto module = makeFunction({{}}, [&](OpBuilder &builder, Location loc, ValueRange a) {
      return SmallVector<Value>{
          cast<train::ScheduleAttrInterface>(schedule).buildRate(builder, loc, a[0])};
    });
    return run(*module, {Tensor({}, count)}, true)[0].values[0];
  };
  Attribute cosine = train::CosineScheduleAttr::get(&context(), 0.5, 0.05, 4, 20);
  EXPECT_EQ(rateAt(cosine, 4), 0.5);
  EXPECT_NEAR(rateAt(cosine, 20), 0.05, 1e-7);
  EXPECT_EQ(rateAt(cosine, 20), rateAt(cosine, 1e6));
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

TEST(Patterns, StarsAndQuestionMarks) {
  for (auto [name, pattern] : {std::pair("h.0.mlp.w", "h.0.mlp.w"),
                               {"h.0.mlp.w", "*"},
                               {"", "*"},
                               {"", ""},
                               {"h.0.mlp.w", "h.*"},
                               {"h.0.mlp.w", "*.w"},
                               {"h.0.mlp.w", "h.?.mlp.?"},
                               {"h.0.mlp.w", "*mlp*"},
                               {"h.0.mlp.w", "**w**"},
                               {"aaab", "*aab"},
                               {"abab", "a*ab"},
                               {"h.10.w", "h.*0.w"}})
    EXPECT_TRUE(train::matchesPattern(name, pattern)) << name << " and " << pattern;
  for (auto [name, pattern] : {std::pair("h.0.mlp.w", "h.0.mlp"),
                               {"h.0.mlp.w", "0*"},
                               {"", "?"},
                               {"a", ""},
                               {"h.10.w", "h.?.w"},
                               {"h.0.mlp.w", "*.b"},
                               {"aaab", "*aaab?"},
                               {"wte", "WTE"},
                               {"h.0", "h.0.*"}})
    EXPECT_FALSE(train::matchesPattern(name, pattern)) << name << " and " << pattern;
}

} // namespace
