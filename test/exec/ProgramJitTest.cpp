//===- ProgramJitTest.cpp - Programs through the real code generator ------===//
//
// Each .mlir file beside this one is a function of nn ops. It goes through the Fusion phase and the
// kernel generators, runs in this process, and every result is compared with the double-precision
// reference of the ops as they were written. Then it runs again in ways that must not change a bit:
// tasks one by one, tasks backwards, results over operands that die.
//
// Tolerance: a value is a sum of products over at most a few hundred terms, through a few such sums
// in a row. Random rounding errors of f32 (2^-24 each) grow with the square root of that number;
// 2^-24 * 256 of the tensor's largest element leaves a margin of about four.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/ProgramJit.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Pipelines/Register.h"
#include "compiler/Reference/Interpreter.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace descent;

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

/// Indices below 7, or values in [-1, 1) as f32 holds them, so that both sides start from the same
/// numbers.
reference::Tensor randomTensor(RankedTensorType type, std::mt19937 &engine) {
  reference::Tensor tensor{std::vector<int64_t>(type.getShape())};
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (double &value : tensor.values)
    value = type.getElementType().isInteger() ? static_cast<double>(engine() % 7)
                                              : static_cast<double>(uniform(engine));
  return tensor;
}

class ProgramJitTest : public ::testing::TestWithParam<const char *> {};

TEST_P(ProgramJitTest, MatchesTheReference) {
  std::string path = std::string(DESCENT_SOURCE_DIR "/test/exec/") + GetParam() + ".mlir";
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, ParserConfig(&context()));
  ASSERT_TRUE(module);
  auto function = *module->getOps<func::FuncOp>().begin();
  std::mt19937 engine(1);
  SmallVector<reference::Tensor> inputs, expected;
  for (Type type : function.getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), engine));
  ASSERT_TRUE(succeeded(reference::Interpreter().interpret(function, inputs, expected)));

  PassManager pm(&context());
  buildFusionPhase(pm);
  ASSERT_TRUE(succeeded(pm.run(*module)));
  std::vector<CpuTarget> targets = {llvm::cantFail(CpuTarget::named("haswell"))};
  if (CpuTarget host = llvm::cantFail(CpuTarget::host()); host.vectorBits > targets[0].vectorBits)
    targets.push_back(host);
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(target.name);
    FailureOr<std::unique_ptr<ProgramJit>> program = ProgramJit::create(*module, target);
    ASSERT_TRUE(succeeded(program));
    SmallVector<reference::Tensor> results;
    ASSERT_TRUE(succeeded((*program)->run(function.getName(), inputs, results)));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t r = 0; r < results.size(); ++r) {
      ASSERT_EQ(results[r].shape, expected[r].shape);
      double largest = 0;
      for (double value : expected[r].values)
        largest = std::max(largest, std::abs(value));
      double tolerance = std::ldexp(256.0, -24) * std::max(largest, 1e-6);
      int64_t wrong = 0, first = 0;
      for (int64_t i = results[r].size(); i-- > 0;)
        if (!(std::abs(results[r].values[i] - expected[r].values[i]) <= tolerance)) {
          ++wrong;
          first = i;
        }
      EXPECT_EQ(wrong, 0) << "result " << r << ", tolerance " << tolerance << ": element " << first
                          << " is " << results[r].values[first] << ", expected "
                          << expected[r].values[first];
    }

    for (ProgramRunOptions options :
         {ProgramRunOptions{1, false, false}, ProgramRunOptions{3, true, false},
          ProgramRunOptions{0, false, true}, ProgramRunOptions{1, true, true}}) {
      SmallVector<reference::Tensor> again;
      ASSERT_TRUE(succeeded((*program)->run(function.getName(), inputs, again, options)));
      for (size_t r = 0; r < results.size(); ++r)
        EXPECT_EQ(results[r].values, again[r].values)
            << "result " << r << " with " << options.tasksPerCall << " tasks a call"
            << (options.backwards ? ", backwards" : "") << (options.inPlace ? ", in place" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramJitTest,
                         ::testing::Values("mlp", "gpt-block", "convnet", "embedding-update"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
