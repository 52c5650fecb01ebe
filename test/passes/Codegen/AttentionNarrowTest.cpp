//===- AttentionNarrowTest.cpp - Attention on bf16 and f16 against double precision ===//
//
// Sizes off and on the boundaries of vectors, panels and blocks; operands apart and as parts of one
// tensor. Inputs are rounded to the type before the reference sees them, so what is left is one
// rounding of each result and the sums' own error in f32.
//
//===----------------------------------------------------------------------===//

#include "KernelOracle.h"
#include "passes/Codegen/Attention.h"

using namespace mlir;

namespace descent::testing {
namespace {

struct Size {
  int64_t batch, length, heads, depth;
};
// One row; odd everything; whole vectors; a rest of half a vector; more than one block of keys
// (288) and run of queries (384); more than one block of the gradient (96).
const Size sizes[] = {{1, 1, 1, 1},   {2, 7, 3, 5},   {1, 33, 2, 16}, {1, 100, 1, 20},
                      {2, 64, 2, 32}, {1, 300, 1, 9}, {1, 450, 1, 8}};

std::string fillIn(std::string text, const Size &size, const std::string &type,
                   const std::string &causal) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string rows = number(size.batch) + "x" + number(size.length) + "x";
  text = replaceAll(text, "$PART",
                    "tensor<" + rows + number(size.heads * size.depth) + "x" + type + ">");
  text = replaceAll(text, "$WHOLE",
                    "tensor<" + rows + number(3 * size.heads * size.depth) + "x" + type + ">");
  text = replaceAll(text, "$LOG",
                    "tensor<" + number(size.batch) + "x" + number(size.heads) + "x" +
                        number(size.length) + "xf32>");
  text = replaceAll(text, "$HEADS", number(size.heads));
  return replaceAll(text, "$CAUSAL", causal);
}

/// A rounding of the result, and for bf16 expectKernel's allowance (half a unit is 1/256) besides;
/// dK and dV sum up to `length` terms of magnitude ten or so in f32, before their rounding.
double toleranceOf(const std::string &type) { return type == "bf16" ? 1e-4 : 1.0 / 1024; }

void expectAttention(const std::string &text, EmitFunction emit,
                     std::function<double(unsigned, size_t)> fill) {
  int turn = 0;
  for (std::string type : {"bf16", "f16"})
    for (const Size &size : sizes)
      expectKernel(fillIn(text, size, type, ++turn % 3 ? "causal" : ""), emit, fill,
                   toleranceOf(type));
}

TEST(AttentionNarrow, ForwardApart) {
  expectAttention(R"(
    exec.kernel @k "attention" (%q: $PART, %k: $PART, %v: $PART) -> ($PART, $LOG) {
      %o, %l = nn.attention %q, %k, %v heads $HEADS $CAUSAL save_logsumexp : $PART, $PART, $PART
      exec.yield %o, %l : $PART, $LOG
    })",
                  emitAttentionKernel, noise);
}

TEST(AttentionNarrow, ForwardOnPartsOfOneTensor) {
  expectAttention(R"(
    exec.kernel @k "attention" (%x: $WHOLE) -> $PART {
      %q, %k, %v = nn.split %x axis 2 sections 3 : $WHOLE
      %o = nn.attention %q, %k, %v heads $HEADS $CAUSAL : $PART, $PART, $PART
      exec.yield %o : $PART
    })",
                  emitAttentionKernel, noise);
}

/// Operands of the gradient; a logsumexp above the scores, so that probabilities stay below one.
double gradientNoise(unsigned logsumexp, unsigned input, size_t k) {
  return input == logsumexp ? 9 + noise(input, k) : noise(input, k) / 2;
}

TEST(AttentionNarrow, GradientApart) {
  expectAttention(R"(
    exec.kernel @k "attention_grad" (%d: $PART, %q: $PART, %k: $PART, %v: $PART, %o: $PART, %l: $LOG)
        -> ($PART, $PART, $PART) {
      %dq, %dk, %dv = nn.attention_grad %d, %q, %k, %v, %o, %l heads $HEADS $CAUSAL : $PART, $PART, $PART, $PART, $PART, $LOG
      exec.yield %dq, %dk, %dv : $PART, $PART, $PART
    })",
                  emitAttentionGradKernel,
                  [](unsigned input, size_t k) { return gradientNoise(5, input, k); });
}

TEST(AttentionNarrow, GradientOnPartsOfOneTensor) {
  expectAttention(R"(
    exec.kernel @k "attention_grad" (%d: $PART, %x: $WHOLE, %o: $PART, %l: $LOG) -> $WHOLE {
      %q, %k, %v = nn.split %x axis 2 sections 3 : $WHOLE
      %dq, %dk, %dv = nn.attention_grad %d, %q, %k, %v, %o, %l heads $HEADS $CAUSAL : $PART, $PART, $PART, $PART, $PART, $LOG
      %dx = nn.concat %dq, %dk, %dv axis 2 : $PART, $PART, $PART
      exec.yield %dx : $WHOLE
    })",
                  emitAttentionGradKernel,
                  [](unsigned input, size_t k) { return gradientNoise(3, input, k); });
}

// What only some of the gradients' readers want is not computed, and nothing is written for it.
TEST(AttentionNarrow, SomeGradientsAlone) {
  expectAttention(R"(
    exec.kernel @k "attention_grad" (%d: $PART, %q: $PART, %k: $PART, %v: $PART, %o: $PART, %l: $LOG) -> $PART {
      %dq, %dk, %dv = nn.attention_grad %d, %q, %k, %v, %o, %l heads $HEADS $CAUSAL : $PART, $PART, $PART, $PART, $PART, $LOG
      exec.yield %dk : $PART
    })",
                  emitAttentionGradKernel,
                  [](unsigned input, size_t k) { return gradientNoise(5, input, k); });
}

} // namespace
} // namespace descent::testing
