//===- AutocastTest.cpp - The published autocast lists, op kind by op kind ===//
//
// PyTorch documents, for torch.autocast on CUDA and on the CPU, which ops run in the narrow type,
// which in fp32 and which in the widest type among their operands; an op on no list runs in the
// type it gets, by ordinary promotion where it has several operands. The lists stand here as
// published, as far as an op of nn has a counterpart, and the class of each op kind is derived from
// them; the few rows that deviate say why. insert-precision-casts-table.mlir shows what the pass
// makes of the classes.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "dialects/NN/Interfaces.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

using namespace mlir;
using namespace descent;

namespace {

// From "Autocast Op Reference" (docs/source/amp.md) and, for attention, which only the source
// names, aten/src/ATen/autocast_mode.h.
const std::set<std::string> narrowOnCuda = {"__matmul__",
                                            "addbmm",
                                            "addmm",
                                            "addmv",
                                            "addr",
                                            "baddbmm",
                                            "bmm",
                                            "multi_dot",
                                            "conv1d",
                                            "conv2d",
                                            "conv3d",
                                            "conv_transpose1d",
                                            "matmul",
                                            "mm",
                                            "mv",
                                            "conv_transpose2d",
                                            "conv_transpose3d",
                                            "linear",
                                            "LSTMCell",
                                            "GRUCell",
                                            "prelu",
                                            "RNNCell",
                                            "scaled_dot_product_attention"};
const std::set<std::string> wideOnCuda = {"__pow__",     "__rdiv__",
                                          "__rpow__",    "acos",
                                          "asin",        "binary_cross_entropy_with_logits",
                                          "cosh",        "cross_entropy",
                                          "cumprod",     "cumsum",
                                          "erfinv",      "exp",
                                          "expm1",       "group_norm",
                                          "l1_loss",     "layer_norm",
                                          "log",         "log10",
                                          "log1p",       "log2",
                                          "log_softmax", "mse_loss",
                                          "nll_loss",    "norm",
                                          "pow",         "prod",
                                          "reciprocal",  "rsqrt",
                                          "sinh",        "smooth_l1_loss",
                                          "softmax",     "softmin",
                                          "softplus",    "sum",
                                          "tan"};
const std::set<std::string> widestOnCuda = {"addcdiv",     "addcmul",  "atan2",       "bilinear",
                                            "cross",       "dot",      "grid_sample", "index_put",
                                            "scatter_add", "tensordot"};
const std::set<std::string> widestOnCpu = {"cat", "stack", "index_copy"};

struct Row {
  const char *torch; ///< the counterpart; of a gradient or a helper, what it belongs to
  PrecisionClass expected;
  const char *deviation = ""; ///< why the class is not the one that the lists give
};

constexpr PrecisionClass Narrow = PrecisionClass::Narrow, Wide = PrecisionClass::Wide,
                         Widest = PrecisionClass::WidestOperand,
                         Follows = PrecisionClass::FollowsInput;

const std::map<std::string, Row> table = {
    // Products.
    {"matmul", {"matmul", Narrow}},
    {"conv2d", {"conv2d", Narrow}},
    {"conv2d_grad_input", {"conv2d", Narrow}},
    {"conv2d_grad_weight", {"conv2d", Narrow}},
    {"attention", {"scaled_dot_product_attention", Narrow}},
    {"attention_grad", {"scaled_dot_product_attention", Narrow}},
    // What grows fast, sums, norms and losses.
    {"exp", {"exp", Wide}},
    {"log", {"log", Wide}},
    {"pow", {"pow", Wide}},
    {"rsqrt", {"rsqrt", Wide}},
    {"softmax", {"softmax", Wide}},
    {"log_softmax", {"log_softmax", Wide}},
    {"layer_norm", {"layer_norm", Wide}},
    {"cross_entropy", {"cross_entropy", Wide}},
    {"mse", {"mse_loss", Wide}},
    {"reduce_sum", {"sum", Wide}},
    {"reduce_mean", {"mean", Wide, "a mean is a sum, and a sum over many rows needs fp32"}},
    // Arithmetic of several operands, by ordinary promotion, and cat.
    {"add", {"add", Widest}},
    {"sub", {"sub", Widest}},
    {"mul", {"mul", Widest}},
    {"div", {"div", Widest}},
    {"maximum", {"maximum", Widest}},
    {"minimum", {"minimum", Widest}},
    {"compare", {"gt", Widest}},
    {"where", {"where", Widest}},
    {"concat", {"cat", Widest}},
    // On no list.
    {"neg", {"neg", Follows}},
    {"abs", {"abs", Follows}},
    {"sqrt", {"sqrt", Follows}},
    {"sin", {"sin", Follows}},
    {"cos", {"cos", Follows}},
    {"tanh", {"tanh", Follows}},
    {"erf", {"erf", Follows}},
    {"sigmoid", {"sigmoid", Follows}},
    {"relu", {"relu", Follows}},
    {"silu", {"silu", Follows}},
    {"gelu", {"gelu", Follows}},
    {"gelu_grad", {"gelu", Follows}},
    {"reduce_max", {"amax", Follows}},
    {"dropout", {"dropout", Follows}},
    {"max_pool2d", {"max_pool2d", Follows}},
    {"max_pool2d_grad", {"max_pool2d", Follows}},
    {"embedding", {"embedding", Follows}},
    {"embedding_grad", {"embedding", Follows}},
    {"reshape", {"reshape", Follows}},
    {"transpose", {"permute", Follows}},
    {"broadcast", {"expand", Follows}},
    {"slice", {"slice", Follows}},
    {"pad", {"pad", Follows}},
    {"split", {"split", Follows}},
    {"cast", {"to", Follows}},
    {"constant", {"tensor", Follows}},
    {"iota", {"arange", Follows}},
    {"random", {"rand", Follows}},
};

/// Ops on no list take their operands by promotion where there are several, else as they come.
const std::set<std::string> promotes = {"add",     "sub",     "mul", "div",
                                        "maximum", "minimum", "gt",  "where"};

PrecisionClass publishedClass(const std::string &torch) {
  if (narrowOnCuda.count(torch))
    return Narrow;
  if (wideOnCuda.count(torch))
    return Wide;
  if (widestOnCuda.count(torch) || widestOnCpu.count(torch) || promotes.count(torch))
    return Widest;
  return Follows;
}

const char *nameOf(PrecisionClass value) {
  switch (value) {
  case Narrow:
    return "narrow";
  case Wide:
    return "wide";
  case Widest:
    return "widest operand";
  case Follows:
    break;
  }
  return "follows input";
}

TEST(Autocast, TableFollowsThePublishedLists) {
  for (const auto &[op, row] : table) {
    bool follows = row.expected == publishedClass(row.torch);
    EXPECT_EQ(follows, *row.deviation == 0)
        << "nn." << op << " is '" << nameOf(row.expected) << "', " << row.torch << " '"
        << nameOf(publishedClass(row.torch)) << "'";
  }
}

// The file that round-trips every op has one of each kind.
TEST(Autocast, EveryOpHasItsClass) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
      DESCENT_SOURCE_DIR "/test/dialects/nn/roundtrip.mlir", ParserConfig(&context));
  ASSERT_TRUE(module);
  std::set<std::string> seen;
  module->walk([&](PrecisionOp op) {
    std::string kind = op->getName().stripDialect().str();
    auto row = table.find(kind);
    ASSERT_NE(row, table.end()) << "nn." << kind << " has a precision class but no row here";
    EXPECT_EQ(op.getPrecisionClass(), row->second.expected)
        << "nn." << kind << " is '" << nameOf(op.getPrecisionClass()) << "', expected '"
        << nameOf(row->second.expected) << "'";
    seen.insert(kind);
  });
  for (const auto &[kind, row] : table)
    EXPECT_TRUE(seen.count(kind)) << "no nn." << kind << " in roundtrip.mlir";
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn")) {
    if (name.hasInterface<PrecisionOp>()) {
      EXPECT_TRUE(seen.count(name.stripDialect().str())) << name.getStringRef().str();
    }
  }
}

} // namespace
