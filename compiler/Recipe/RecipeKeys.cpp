//===- RecipeKeys.cpp - The table of recipe keys --------------------------===//
//
// Everything that is known of a key stands in its row here and nowhere else. Rules that tie two
// keys together (warmup < steps) are in CheckRecipe.cpp.
//
//===----------------------------------------------------------------------===//

#include "compiler/Recipe/RecipeKeys.h"

#include <charconv>

namespace descent {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr KeyRange any{};
constexpr KeyRange notNegative{.low = 0};
constexpr KeyRange positive{.low = 0, .high = infinity, .lowOpen = true};
constexpr KeyRange fraction{.low = 0, .high = 1, .highOpen = true}; // [0, 1)
constexpr KeyRange count{.low = 1, .high = 2147483647};
constexpr KeyRange countOrNone{.low = 0, .high = 2147483647};
// Far above any useful scale, and low enough that the scale and its reciprocal are normal numbers
// in f32 whatever weight multiplies them.
constexpr KeyRange scale{.low = 1, .high = 1e30};

} // namespace

#define MEMBER(path)                                                                               \
  [](auto &owner) -> auto & { return owner.path; }

const std::vector<Key<Recipe>> &recipeKeys() {
  using enum KeyKind;
  using R = Recipe;
  // A generic lambda does not convert to a variant of function pointers by itself, so each row
  // names its type.
  using TextField = std::string &(*)(R &);
  using NamesField = std::vector<std::string> &(*)(R &);
  using IntegerField = int64_t &(*)(R &);
  using MaybeIntegerField = std::optional<int64_t> &(*)(R &);
  using NumberField = double &(*)(R &);
  using MaybeNumberField = std::optional<double> &(*)(R &);
  using PairField = std::array<double, 2> &(*)(R &);
  using BooleanField = bool &(*)(R &);
  static const std::vector<Key<Recipe>> keys = {
      {{"model", "file", Path, "\"model.mlir\"", "", "The model file."},
       TextField(MEMBER(model.file))},

      {{.table = "loss",
        .key = "kind",
        .kind = Text,
        .standard = "",
        .unit = "",
        .text = "The loss of an imported model. A model.mlir holds its loss itself.",
        .later = "a loss in the recipe (for imported models)"},
       TextField(MEMBER(loss.kind))},
      {{.table = "loss",
        .key = "ignore_index",
        .kind = Integer,
        .standard = "",
        .unit = "",
        .text = "Targets with this value do not count. In a model.mlir an attribute of the loss.",
        .later = "a loss in the recipe (for imported models)"},
       MaybeIntegerField(MEMBER(loss.ignoreIndex))},
      {{.table = "loss",
        .key = "label_smoothing",
        .kind = Number,
        .standard = "",
        .unit = "",
        .text = "Mass spread evenly over all classes. In a model.mlir an attribute of the loss.",
        .range = fraction,
        .later = "a loss in the recipe (for imported models)"},
       MaybeNumberField(MEMBER(loss.labelSmoothing))},

      {{.table = "data",
        .key = "format",
        .kind = Text,
        .standard = "\"text\"",
        .unit = "",
        .text = "`text`: the bytes of a file, targets are the next byte. `tokens`: a `.bin` of "
                "token ids, with or without llm.c's header. `npz`, `npy`: NumPy arrays, samples "
                "along the first axis. `idx`: MNIST's format, gzipped or not.",
        .choices = {"text", "tokens", "npz", "npy", "idx", "cifar", "csv"},
        .later = "this data format",
        .laterChoices = {"cifar", "csv"}},
       TextField(MEMBER(data.format))},
      {{"data", "path", Path, "", "",
        "The training data: a file, or a folder for `idx` and `npy`. The binary's `--data` "
        "overrides it."},
       TextField(MEMBER(data.path))},
      {{"data", "validation_path", Path, "", "",
        "Validation data of its own. The binary's `--validation` overrides it."},
       TextField(MEMBER(data.validationPath))},
      {{"data", "validation", Number, "0.0", "fraction",
        "The end of the training file that is held out for validation.", fraction},
       NumberField(MEMBER(data.validation))},
      {{"data", "sequence", Integer, "0", "tokens",
        "Length of a sample of `text` and `tokens`; must be the length of the model's inputs, "
        "which "
        "0 takes it from.",
        countOrNone},
       IntegerField(MEMBER(data.sequence))},
      {{"data", "inputs", Names, "", "",
        "Array that feeds the model's data input; an array of names for a model with several. "
        "Without it, arrays have the names of the model's inputs."},
       NamesField(MEMBER(data.inputs))},
      {{"data", "targets", Names, "", "", "The same for the model's targets."},
       NamesField(MEMBER(data.targets))},
      {{"data", "scale", Number, "", "",
        "Factor for data (not targets) that feeds inputs of a float type. Without it, 1/255 for "
        "`idx` pixels and 1 for everything else.",
        any},
       MaybeNumberField(MEMBER(data.scale))},
      {{.table = "data",
        .key = "token_type",
        .kind = Text,
        .standard = "",
        .unit = "",
        .text = "Type of an id in a `tokens` file. Without it, what the file's header says, or "
                "`uint16` if it has none.",
        .choices = {"uint16", "uint32"}},
       TextField(MEMBER(data.tokenType))},
      {{.table = "data",
        .key = "vocabulary",
        .kind = Text,
        .standard = "\"bytes\"",
        .unit = "",
        .text = "Token ids of `text`. `bytes`: the byte's value, 256 ids. `characters`: only the "
                "byte values that occur in the training file, numbered in increasing order.",
        .choices = {"bytes", "characters"}},
       TextField(MEMBER(data.vocabulary))},
      {{"data", "shuffle", Boolean, "true", "",
        "Visit the samples of each epoch in a random order that depends on `run.seed` and the "
        "epoch "
        "alone."},
       BooleanField(MEMBER(data.shuffle))},

      {{"batch", "size", Integer, "32", "samples", "Samples of one optimizer step.", count},
       IntegerField(MEMBER(batch.size))},
      {{"batch", "micro", Integer, "", "samples",
        "Samples that are computed at once. Without it, `batch.size`; accumulation over several "
        "micro-batches is not supported yet.",
        count},
       MaybeIntegerField(MEMBER(batch.micro))},

      {{.table = "optimizer",
        .key = "kind",
        .kind = Text,
        .standard = "\"adamw\"",
        .unit = "",
        .text = "`sgd`, `adam` (decay is added to the gradient) or `adamw` (decay is decoupled).",
        .choices = {"sgd", "adam", "adamw"}},
       TextField(MEMBER(optimizer.kind))},
      {{"optimizer", "lr", Number, "1e-3", "", "Learning rate; the schedule's highest.",
        notNegative},
       NumberField(MEMBER(optimizer.lr))},
      {{"optimizer", "momentum", Number, "0.0", "", "`sgd` only.", fraction},
       NumberField(MEMBER(optimizer.momentum))},
      {{"optimizer", "nesterov", Boolean, "false", "", "`sgd` with momentum only."},
       BooleanField(MEMBER(optimizer.nesterov))},
      {{"optimizer", "betas", Pair, "[0.9, 0.999]", "",
        "Decay of the first and second moment; `adam` and `adamw` only.", fraction},
       PairField(MEMBER(optimizer.betas))},
      {{"optimizer", "eps", Number, "1e-8", "",
        "Added to the root of the second moment; `adam` and `adamw` only.", positive},
       NumberField(MEMBER(optimizer.eps))},
      {{"optimizer", "weight_decay", Number, "0.0", "",
        "Decay of parameters with two or more dimensions. Biases, norm gains and other vectors are "
        "not decayed unless a group says so.",
        notNegative},
       NumberField(MEMBER(optimizer.weightDecay))},
      {{"optimizer", "clip", Number, "0.0", "",
        "Largest norm of all gradients together; a longer one is scaled down to it. 0 turns it "
        "off.",
        notNegative},
       NumberField(MEMBER(optimizer.clip))},

      {{.table = "schedule",
        .key = "kind",
        .kind = Text,
        .standard = "\"constant\"",
        .unit = "",
        .text = "After the warm-up, the learning rate stays (`constant`) or falls to `min_lr` at "
                "step `steps` along a `linear` or `cosine` curve, and stays there.",
        .choices = {"constant", "linear", "cosine"}},
       TextField(MEMBER(schedule.kind))},
      {{"schedule", "warmup", Integer, "0", "steps",
        "The learning rate rises linearly over these first steps.", countOrNone},
       IntegerField(MEMBER(schedule.warmup))},
      {{"schedule", "steps", Integer, "", "steps",
        "Length of the schedule, and of a run without `--steps` or `--epochs`. Required by "
        "`linear` "
        "and `cosine`.",
        count},
       MaybeIntegerField(MEMBER(schedule.steps))},
      {{"schedule", "min_lr", Number, "0.0", "", "Where `linear` and `cosine` end.", notNegative},
       NumberField(MEMBER(schedule.minLr))},

      {{.table = "precision",
        .key = "compute",
        .kind = Text,
        .standard = "\"fp32\"",
        .unit = "",
        .text = "Type of matrix products, convolutions and attention, and of what follows its "
                "input; sums are fp32 in every case. `bf16`, `fp16`: operands and results in that "
                "type. `fp8`: as `bf16`, with the operands of products in fp8 (E4M3 forward, E5M2 "
                "backward) under a scale for each tensor. `tf32`: fp32, with the operands of "
                "products rounded to 10 bits.",
        .choices = {"fp32", "tf32", "bf16", "fp16", "fp8"}},
       TextField(MEMBER(precision.compute))},
      {{.table = "precision",
        .key = "loss_scale",
        .kind = ChoiceOrNumber,
        .standard = "",
        .unit = "",
        .text = "Factor on the loss in the backward pass, so that small gradients do not vanish in "
                "a narrow type; the update divides by it. `dynamic`: as large as the gradients "
                "allow. Without it, `dynamic` where something runs in `fp16` and `none` elsewhere.",
        .range = scale,
        .choices = {"none", "dynamic"}},
       TextField(MEMBER(precision.lossScale))},
      {{"precision", "loss_scale_initial", Number, "65536.0", "", "Where the dynamic scale starts.",
        scale},
       NumberField(MEMBER(precision.scaleInitial))},
      {{"precision",
        "loss_scale_growth",
        Number,
        "2.0",
        "",
        "Factor on the dynamic scale after `loss_scale_interval` steps without an overflow.",
        {.low = 1, .high = 65536, .lowOpen = true}},
       NumberField(MEMBER(precision.scaleGrowth))},
      {{"precision",
        "loss_scale_backoff",
        Number,
        "0.5",
        "",
        "Factor on the dynamic scale after a step whose gradients overflowed, which is skipped.",
        {.low = 0, .high = 1, .highOpen = true, .lowOpen = true}},
       NumberField(MEMBER(precision.scaleBackoff))},
      {{"precision", "loss_scale_interval", Integer, "2000", "steps",
        "Steps without an overflow before the dynamic scale grows.", count},
       IntegerField(MEMBER(precision.scaleInterval))},
      {{"precision", "loss_scale_floor", Number, "1.0", "",
        "The dynamic scale does not fall below this.", scale},
       NumberField(MEMBER(precision.scaleFloor))},
      {{"precision", "master", Boolean, "true", "",
        "Parameters are fp32 (the master weights), and products read a narrow copy that the update "
        "writes. `false`: parameters are stored in bf16 alone; with compute `bf16` only."},
       BooleanField(MEMBER(precision.master))},
      {{.table = "precision",
        .key = "state",
        .kind = Text,
        .standard = "\"fp32\"",
        .unit = "",
        .text = "Type in which the optimizer's state is stored. Its arithmetic is fp32.",
        .choices = {"fp32", "bf16"}},
       TextField(MEMBER(precision.state))},
      {{.table = "precision",
        .key = "rounding",
        .kind = Text,
        .standard = "\"stochastic\"",
        .unit = "",
        .text = "How an update rounds what it stores in bf16 (`master = false`, `state = "
                "\"bf16\"`). `stochastic` keeps small updates alive on average; under `nearest` "
                "those below half a unit in the last place vanish.",
        .choices = {"stochastic", "nearest"}},
       TextField(MEMBER(precision.rounding))},
      {{.table = "precision",
        .key = "fp8_scaling",
        .kind = Text,
        .standard = "\"delayed\"",
        .unit = "",
        .text = "Where the scale of an fp8 operand comes from: the largest magnitude of the last "
                "`fp8_history` steps (`delayed`) or of the tensor itself (`current`).",
        .choices = {"delayed", "current"}},
       TextField(MEMBER(precision.fp8Scaling))},
      {{"precision",
        "fp8_history",
        Integer,
        "1024",
        "steps",
        "Steps that delayed scaling looks back.",
        {.low = 1, .high = 65536}},
       IntegerField(MEMBER(precision.fp8History))},
      {{"precision",
        "fp8_margin",
        Integer,
        "0",
        "",
        "Powers of two that the scale of an fp8 operand stays below the largest possible one.",
        {.low = 0, .high = 16}},
       IntegerField(MEMBER(precision.fp8Margin))},

      {{.table = "memory",
        .key = "recompute",
        .kind = Text,
        .standard = "\"none\"",
        .unit = "",
        .text = "Values that the backward pass computes again instead of keeping them.",
        .later = "recompute",
        .neutral = "none"},
       TextField(MEMBER(memory.recompute))},
      {{.table = "memory",
        .key = "budget",
        .kind = Size,
        .standard = "",
        .unit = "bytes",
        .text = "Memory that the plan must fit, as `2GiB`.",
        .range = positive,
        .later = "a memory budget"},
       MaybeIntegerField(MEMBER(memory.budget))},

      {{.table = "parallel",
        .key = "zero",
        .kind = Integer,
        .standard = "0",
        .unit = "",
        .text = "Level of sharding of the training state over the ranks.",
        .range = {.low = 0, .high = 3},
        .later = "sharded training state",
        .neutral = "0"},
       IntegerField(MEMBER(parallel.zero))},
      {{.table = "parallel",
        .key = "bucket",
        .kind = Size,
        .standard = "",
        .unit = "bytes",
        .text = "Gradients that are reduced together, as `25MiB`.",
        .range = positive,
        .later = "training on several ranks"},
       MaybeIntegerField(MEMBER(parallel.bucket))},
      {{.table = "parallel",
        .key = "tensor",
        .kind = Integer,
        .standard = "1",
        .unit = "ranks",
        .text = "Ranks that share each matrix product.",
        .range = count,
        .later = "tensor parallelism",
        .neutral = "1"},
       IntegerField(MEMBER(parallel.tensor))},
      {{.table = "parallel",
        .key = "pipeline",
        .kind = Integer,
        .standard = "1",
        .unit = "ranks",
        .text = "Stages of a pipeline over the layers.",
        .range = count,
        .later = "pipeline parallelism",
        .neutral = "1"},
       IntegerField(MEMBER(parallel.pipeline))},

      {{"run", "seed", Integer, "0", "",
        "Seed of initial values, data order and dropout. The binary's `--seed` overrides it.",
        notNegative},
       IntegerField(MEMBER(run.seed))},
      {{.table = "run",
        .key = "target",
        .kind = Text,
        .standard = "\"cpu\"",
        .unit = "",
        .text =
            "What to compile for: this machine's CPU, an NVIDIA GPU of a compute capability, or "
            "that GPU's code run by an emulator on the CPU, for tests. `descent compile "
            "--target` overrides it.",
        .choices = {"cpu", "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_90", "cuda:sm_100",
                    "cuda-emulated"}},
       TextField(MEMBER(run.target))},
      {{"run",
        "threads",
        Integer,
        "0",
        "threads",
        "Threads of the binary; 0 is one for each core it may use. `--threads` overrides it.",
        {.low = 0, .high = 4096}},
       IntegerField(MEMBER(run.threads))},
      {{"run", "log_every", Integer, "10", "steps",
        "Steps from one line of progress to the next; 0 prints none. metrics.jsonl has every step.",
        countOrNone},
       IntegerField(MEMBER(run.logEvery))},
      {{"run", "checkpoint_every", Integer, "1000", "steps",
        "Steps from one checkpoint to the next; 0 saves at the end only.", countOrNone},
       IntegerField(MEMBER(run.checkpointEvery))},
      {{"run", "validate_every", Integer, "500", "steps",
        "Steps from one validation to the next, where there is validation data; 0 validates at the "
        "end only.",
        countOrNone},
       IntegerField(MEMBER(run.validateEvery))},
  };
  return keys;
}

const std::vector<Key<OptimizerGroup>> &groupKeys() {
  using enum KeyKind;
  using G = OptimizerGroup;
  static const char table[] = "optimizer.group";
  static const std::vector<Key<OptimizerGroup>> keys = {
      {{table, "match", Names, "", "",
        "Pattern of parameter names, or an array of patterns: `*` stands for any characters, `?` "
        "for "
        "one. Of several groups that match a parameter, the last counts. Required."},
       static_cast<std::vector<std::string> &(*)(G &)>(MEMBER(match))},
      {{table, "lr_scale", Number, "1.0", "", "Factor on the learning rate.", notNegative},
       static_cast<double &(*)(G &)>(MEMBER(lrScale))},
      {{table, "weight_decay", Number, "", "",
        "Decay of the group's parameters, whatever their rank. Without it, as for all others.",
        notNegative},
       static_cast<std::optional<double> &(*)(G &)>(MEMBER(weightDecay))},
      {{table, "frozen", Boolean, "false", "", "The group's parameters keep their values."},
       static_cast<bool &(*)(G &)>(MEMBER(frozen))},
  };
  return keys;
}

const std::vector<Key<PrecisionOverride>> &overrideKeys() {
  using enum KeyKind;
  using O = PrecisionOverride;
  static const char table[] = "precision.override";
  static const std::vector<Key<PrecisionOverride>> keys = {
      {{table, "op", Text, "", "", "Kind of op, as in `matmul` or `softmax`. Without it, any."},
       static_cast<std::string &(*)(O &)>(MEMBER(op))},
      {{table, "match", Names, "", "",
        "Pattern, or an array of patterns, of the path of instances that holds the op, with or "
        "without its kind (`h.0.attn`, `h.0.attn.matmul`), or of the name of a parameter among its "
        "operands: `*` stands for any characters, `?` for one. "
        "Without it, any. Of several overrides that match an op, the last counts; one that matches "
        "nothing is an error."},
       static_cast<std::vector<std::string> &(*)(O &)>(MEMBER(match))},
      {{.table = table,
        .key = "type",
        .kind = Text,
        .standard = "",
        .unit = "",
        .text =
            "Type that the op runs in. Required. Under `fp8` and `tf32` the operands of a product "
            "that an override names are not rounded any further.",
        .choices = {"fp32", "bf16", "fp16"}},
       static_cast<std::string &(*)(O &)>(MEMBER(type))},
  };
  return keys;
}

#undef MEMBER

//===----------------------------------------------------------------------===//
// Values as text
//===----------------------------------------------------------------------===//

std::string tomlText(const std::string &value, KeyKind) { return value; }

std::string tomlText(const std::vector<std::string> &value, KeyKind) {
  if (value.size() == 1 &&
      value[0].front() != '[') // A name that looks like an array is written as one.
    return value[0];
  std::string text = "[";
  for (const std::string &name : value) {
    text += text.size() > 1 ? ", \"" : "\"";
    for (char c : name) {
      if (c == '"' || c == '\\')
        text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "]";
}

std::string tomlText(int64_t value, KeyKind) { return std::to_string(value); }

std::string tomlText(double value, KeyKind) {
  // The shortest text that reads back as the same double, and as a TOML float rather than an
  // integer.
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (text.find_first_of(".en") == std::string::npos)
    text += ".0";
  return text;
}

std::string tomlText(const std::array<double, 2> &value, KeyKind kind) {
  std::string text = "[";
  text += tomlText(value[0], kind);
  text += ", ";
  text += tomlText(value[1], kind);
  return text + "]";
}

std::string tomlText(bool value, KeyKind) { return value ? "true" : "false"; }

} // namespace descent
