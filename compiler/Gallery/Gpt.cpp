//===- Gpt.cpp - A GPT to start from --------------------------------------===//
//
// Initial values follow GPT-2: normal with deviation 0.02, projections onto the residual stream
// scaled by 1/sqrt(2 layers), so that the stream's variance does not grow with depth.
//
//===----------------------------------------------------------------------===//

#include "compiler/Gallery/Gallery.h"
#include "compiler/Gallery/Text.h"

#include <cmath>

namespace descent {

using namespace gallery;

namespace {

constexpr const char *modelText =
    R"(// A GPT: $layers$ pre-norm blocks of width $width$ with $heads$ heads over windows of $sequence$ tokens.
// The `?` in the types is the batch; the recipe binds it.

// Multi-head causal self-attention: queries, keys and values from one product, then a projection.
nn.module @attention(%x: $x$) -> $x$ {
  %w = nn.parameter "qkv.weight" normal(0.0, 0.02) : $qkvWeight$
  %b = nn.parameter "qkv.bias" zeros : $qkvBias$
  %product = nn.matmul %x, %w : $x$, $qkvWeight$
  %qkv = nn.add %product, %b : $qkv$, $qkvBias$
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : $qkv$
  %heads = nn.attention %q, %k, %v heads $heads$ causal : $x$, $x$, $x$
  %wo = nn.parameter "out.weight" normal(0.0, $residual$) : $outWeight$
  %bo = nn.parameter "out.bias" zeros : $vector$
  %mixed = nn.matmul %heads, %wo : $x$, $outWeight$
  %y = nn.add %mixed, %bo : $x$, $vector$
  nn.return %y : $x$
}

// Two linear layers, the inner one four times as wide.
nn.module @mlp(%x: $x$) -> $x$ {
  %w1 = nn.parameter "up.weight" normal(0.0, 0.02) : $upWeight$
  %b1 = nn.parameter "up.bias" zeros : $upBias$
  %product = nn.matmul %x, %w1 : $x$, $upWeight$
  %wide = nn.add %product, %b1 : $hidden$, $upBias$
  %active = nn.gelu %wide tanh : $hidden$
  %w2 = nn.parameter "down.weight" normal(0.0, $residual$) : $downWeight$
  %b2 = nn.parameter "down.bias" zeros : $vector$
  %narrow = nn.matmul %active, %w2 : $hidden$, $downWeight$
  %y = nn.add %narrow, %b2 : $x$, $vector$
  nn.return %y : $x$
}

nn.module @block(%x: $x$) -> $x$ {
  %gain1 = nn.parameter "ln1.gain" ones : $vector$
  %bias1 = nn.parameter "ln1.bias" zeros : $vector$
  %n1 = nn.layer_norm %x, %gain1, %bias1 : $x$, $vector$, $vector$
  %a = nn.instantiate @attention as "attn" (%n1) : ($x$) -> $x$
  %h = nn.add %x, %a : $x$, $x$
  %gain2 = nn.parameter "ln2.gain" ones : $vector$
  %bias2 = nn.parameter "ln2.bias" zeros : $vector$
  %n2 = nn.layer_norm %h, %gain2, %bias2 : $x$, $vector$, $vector$
  %m = nn.instantiate @mlp as "mlp" (%n2) : ($x$) -> $x$
  %y = nn.add %h, %m : $x$, $x$
  nn.return %y : $x$
}

nn.model @gpt(%tokens: $ids$ {nn.role = "data"}, %targets: $ids$ {nn.role = "target"}) {
  %wte = nn.parameter "wte" normal(0.0, 0.02) : $wte$
  %wpe = nn.parameter "wpe" normal(0.0, 0.02) : $wpe$
  %e = nn.embedding %tokens, %wte : $ids$, $wte$
  %x0 = nn.add %e, %wpe : $x$, $wpe$
$blocks$
  %gain = nn.parameter "ln_f.gain" ones : $vector$
  %bias = nn.parameter "ln_f.bias" zeros : $vector$
  %f = nn.layer_norm %x$layers$, %gain, %bias : $x$, $vector$, $vector$

  // The output is tied to the embedding: the same parameter, transposed.
  %logits = nn.matmul %f, %wte {transpose_b} : $x$, $wte$
  %sum, %weight = nn.cross_entropy %logits, %targets : $logits$, $ids$
  nn.loss %sum, %weight, %logits : $logits$
}
)";

constexpr const char *recipeText = R"(# How the model is trained. Every key: docs/recipe.md.
[model]
file = "model.mlir"

[data]
$data$
sequence = $sequence$
validation = 0.1

[batch]
size = $batch$

[optimizer]
kind = "adamw"
lr = 1e-3
betas = [0.9, 0.95]
weight_decay = 0.1
clip = 1.0

[schedule]
kind = "cosine"
warmup = 100
steps = 2000
min_lr = 1e-4

[run]
seed = 0
)";

constexpr const char *readmeText = R"(# $name$

A GPT: $layers$ layers, $heads$ heads, width $width$, sequence $sequence$, vocabulary $vocabulary$.
`model.mlir` is the model, `recipe.toml` says how it is trained; both are meant to be changed.
$needs$

    descent plan    $name$                  # memory and kernels, before anything runs
    descent compile $name$ -o train
    ./train --data $file$ --out run
    $sample$

The last tenth of the data is held out: the run prints the loss on it as well.
)";

} // namespace

std::optional<GalleryFiles> galleryGpt(const GptSizes &sizes, const std::string &name,
                                       std::vector<std::string> &errors) {
  size_t before = errors.size();
  checkSize("layers", sizes.layers, 1, 1000, errors);
  checkSize("heads", sizes.heads, 1, 1024, errors);
  checkSize("width", sizes.width, 1, 65536, errors);
  checkSize("sequence", sizes.sequence, 1, 1 << 20, errors);
  checkSize("vocabulary", sizes.vocabulary, 2, 1 << 24, errors);
  checkSize("batch", sizes.batch, 1, 1 << 20, errors);
  if (errors.size() == before && sizes.width % sizes.heads != 0)
    errors.push_back("width is " + std::to_string(sizes.width) +
                     ", which is not a multiple of heads (" + std::to_string(sizes.heads) +
                     "): each head takes an equal part of the width");
  if (errors.size() != before)
    return std::nullopt;

  int64_t c = sizes.width, t = sizes.sequence, v = sizes.vocabulary;
  std::string x = batchOf({t, c}), blocks;
  for (int64_t i = 0; i < sizes.layers; ++i)
    blocks += fill("$line$  %x$next$ = nn.instantiate @block as \"h.$i$\" (%x$i$) : ($x$) -> $x$",
                   {{"line", i ? "\n" : ""},
                    {"next", std::to_string(i + 1)},
                    {"i", std::to_string(i)},
                    {"x", x}});
  // Text has a vocabulary of bytes; a smaller one gets the characters of the file, a larger one
  // needs a tokenizer's ids.
  const char *data = v > 65536 ? "format = \"tokens\"\ntoken_type = \"uint32\""
                     : v > 256 ? "format = \"tokens\""
                     : v < 256 ? "format = \"text\"\nvocabulary = \"characters\""
                               : "format = \"text\"";
  const char *needs =
      v > 65536 ? "The data is a file of uint32 token ids, as a tokenizer's script writes it."
      : v > 256 ? "The data is a file of uint16 token ids, as a tokenizer's script writes it."
      : v < 256 ? "The data is a text file with at most $vocabulary$ different byte values, which "
                  "are the tokens."
                : "The data is any text file; its bytes are the tokens.";
  std::vector<std::pair<std::string, std::string>> values = {
      {"x", x},
      {"qkv", batchOf({t, 3 * c})},
      {"hidden", batchOf({t, 4 * c})},
      {"logits", batchOf({t, v})},
      {"ids", batchOf({t}, "i32")},
      {"vector", tensor({c})},
      {"qkvWeight", tensor({c, 3 * c})},
      {"qkvBias", tensor({3 * c})},
      {"outWeight", tensor({c, c})},
      {"upWeight", tensor({c, 4 * c})},
      {"upBias", tensor({4 * c})},
      {"downWeight", tensor({4 * c, c})},
      {"wte", tensor({v, c})},
      {"wpe", tensor({t, c})},
      {"residual", decimal(0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers)))},
      {"blocks", blocks},
      {"layers", std::to_string(sizes.layers)},
      {"heads", std::to_string(sizes.heads)},
      {"width", std::to_string(c)},
      {"sequence", std::to_string(t)},
      {"vocabulary", std::to_string(v)},
      {"batch", std::to_string(sizes.batch)},
      {"data", data},
      {"needs", fill(needs, {{"vocabulary", std::to_string(v)}})},
      {"name", name},
      {"file", v > 256 ? "tokens.bin" : "corpus.txt"},
      {"sample", v > 256 ? "./train --describe" : "./train sample --out run --prompt \"The \""}};
  return GalleryFiles{fill(modelText, values), fill(recipeText, values), fill(readmeText, values)};
}

} // namespace descent
