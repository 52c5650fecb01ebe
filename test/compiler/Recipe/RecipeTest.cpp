//===- RecipeTest.cpp - Parsing, refusing, flattening ---------------------===//

#include "compiler/Recipe/Recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace descent;

namespace {

std::optional<Recipe> parse(const std::string &text, std::vector<RecipeError> &errors,
                            const std::vector<std::string> &overrides = {}) {
  return parseRecipeText(text, "/models/gpt/recipe.toml", overrides, errors);
}

Recipe good(const std::string &text, const std::vector<std::string> &overrides = {}) {
  std::vector<RecipeError> errors;
  auto recipe = parse(text, errors, overrides);
  for (const RecipeError &error : errors)
    ADD_FAILURE() << error.text();
  return recipe.value_or(Recipe());
}

/// Expects exactly one error, with this place and all of these parts.
void refused(const std::string &text, const std::string &where,
             const std::vector<std::string> &parts,
             const std::vector<std::string> &overrides = {}) {
  std::vector<RecipeError> errors;
  EXPECT_FALSE(parse(text, errors, overrides)) << text;
  ASSERT_EQ(errors.size(), 1u) << text << (errors.size() > 1 ? errors[1].text() : "");
  std::string place = where.rfind("--", 0) == 0 ? where : "/models/gpt/recipe.toml" + where;
  EXPECT_EQ(errors[0].where, place) << errors[0].text();
  for (const std::string &part : parts)
    EXPECT_NE(errors[0].message.find(part), std::string::npos)
        << errors[0].message << "\nlacks: " << part;
}

std::string setting(const Recipe &recipe, const std::string &key) {
  for (const auto &[name, value] : recipe.flatten())
    if (name == key)
      return value;
  return "(absent)";
}

TEST(Recipe, DefaultsOfAnEmptyFile) {
  Recipe recipe = good("");
  EXPECT_EQ(recipe.model.file, "/models/gpt/model.mlir");
  EXPECT_EQ(recipe.data.format, "text");
  EXPECT_EQ(recipe.batch.size, 32);
  EXPECT_EQ(recipe.optimizer.kind, "adamw");
  EXPECT_EQ(recipe.optimizer.betas, (std::array<double, 2>{0.9, 0.999}));
  EXPECT_EQ(recipe.schedule.kind, "constant");
  EXPECT_TRUE(recipe.data.shuffle);
  EXPECT_TRUE(recipe.origins.empty());
  EXPECT_EQ(setting(recipe, "data.path"), "(absent)");
  EXPECT_EQ(setting(recipe, "optimizer.eps"), "1e-08");
}

// The recipe of the design, as far as its features exist.
TEST(Recipe, EveryTable) {
  Recipe recipe = good(R"(
[model]
file = "net/model.mlir"
[data]
format = "text"
path = "../corpus.txt"
sequence = 64
validation = 0.1
shuffle = false
vocabulary = "characters"
[batch]
size = 32
micro = 32
[optimizer]
kind = "adamw"
lr = 3e-4
betas = [0.9, 0.95]
eps = 1e-8
weight_decay = 0.1
clip = 1
[[optimizer.group]]
match = "*.bias"
weight_decay = 0.0
[[optimizer.group]]
match = ["wte", "wpe"]
lr_scale = 0.5
[[optimizer.group]]
match = "h.0.*"
frozen = true
[schedule]
kind = "cosine"
warmup = 100
steps = 2000
min_lr = 3e-5
[precision]
compute = "fp32"
loss_scale = "none"
[memory]
recompute = "none"
[parallel]
zero = 0
tensor = 1
pipeline = 1
[run]
seed = 7
target = "cpu"
threads = 2
log_every = 1
)");
  EXPECT_EQ(recipe.model.file, "/models/gpt/net/model.mlir");
  EXPECT_EQ(recipe.data.path, "/models/corpus.txt");
  EXPECT_EQ(recipe.optimizer.clip, 1.0); // An integer is a number.
  ASSERT_EQ(recipe.optimizer.groups.size(), 3u);
  EXPECT_EQ(recipe.optimizer.groups[0].where, "/models/gpt/recipe.toml:21:1");
  EXPECT_EQ(recipe.optimizer.groups[1].match, (std::vector<std::string>{"wte", "wpe"}));
  EXPECT_EQ(recipe.origins.at("optimizer.lr"), "/models/gpt/recipe.toml:16:1");
  EXPECT_EQ(setting(recipe, "optimizer.betas"), "[0.9, 0.95]");
  EXPECT_EQ(setting(recipe, "optimizer.lr"), "3e-04");
  EXPECT_EQ(setting(recipe, "optimizer.clip"), "1.0");
  EXPECT_EQ(setting(recipe, "data.shuffle"), "false");
  EXPECT_EQ(setting(recipe, "schedule.steps"), "2000");
  EXPECT_EQ(setting(recipe, "optimizer.group.0.match"), "*.bias");
  EXPECT_EQ(setting(recipe, "optimizer.group.1.match"), "[\"wte\", \"wpe\"]");
  EXPECT_EQ(setting(recipe, "optimizer.group.1.weight_decay"), "(absent)");
  EXPECT_EQ(setting(recipe, "optimizer.group.2.frozen"), "true");
}

TEST(Recipe, UnknownNamesGetTheNearest) {
  refused("[optimiser]\nlr = 1\n", ":1:2", {"unknown table [optimiser]", "[optimizer]"});
  refused("[optimizer]\nkind = \"sgd\"\n  learning_rte = 1\n", ":3:3",
          {"unknown key optimizer.learning_rte", "did you mean optimizer."});
  refused("[optimizer]\nwieght_decay = 1\n", ":2:1", {"did you mean optimizer.weight_decay?"});
  refused("[run]\nlr = 1\n", ":2:1", {"unknown key run.lr", "did you mean optimizer.lr?"});
  refused("lr = 1\n", ":1:1", {"outside of any table", "[optimizer]"});
  refused("batch = 32\n", ":1:1", {"expected a table [batch]"});
  refused("[optimizer]\nkind = \"adamv\"\n", ":2:1", {"'adamv'", "did you mean 'adamw'?"});
  refused("[[optimizer.group]]\nmatch = \"*\"\nweight_dacay = 1\n", ":3:1",
          {"optimizer.group.weight_dacay", "did you mean optimizer.group.weight_decay?"});
}

TEST(Recipe, WrongTypes) {
  refused("[batch]\nsize = \"32\"\n", ":2:1",
          {"a string ('32')", "expected an integer of at least 1"});
  refused("[batch]\nsize = 32.0\n", ":2:1", {"batch.size is a number", "expected an integer"});
  refused("[optimizer]\nlr = \"fast\"\n", ":2:1",
          {"a string ('fast')", "expected a finite number"});
  refused("[optimizer]\nlr = nan\n", ":2:1", {"expected a finite number"});
  refused("[optimizer]\nlr = inf\n", ":2:1", {"expected a finite number"});
  refused("[optimizer]\nbetas = 0.9\n", ":2:1", {"an array of two numbers"});
  refused("[optimizer]\nbetas = [0.9]\n", ":2:1", {"an array of two numbers"});
  refused("[optimizer]\nnesterov = 1\n", ":2:1", {"expected true or false"});
  refused("[data]\npath = 3\n", ":2:1", {"expected a path in quotes"});
  refused("[data]\npath = \"\"\n", ":2:1", {"expected a path in quotes"});
  refused("[data]\nformat = \"npz\"\ninputs = [1]\n", ":3:1", {"a name in quotes, or an array"});
  refused("[data]\nformat = \"npz\"\ninputs = []\n", ":3:1", {"a name in quotes, or an array"});
  refused("[data]\npath = 2026-01-01\n", ":2:1", {"a date or time"});
  refused("[batch]\nsize = { a = 1 }\n", ":2:1", {"a table"});
  refused("[optimizer]\ngroup = 3\n", ":2:1", {"expected one or more [[optimizer.group]] tables"});
}

TEST(Recipe, OutOfRange) {
  refused("[batch]\nsize = 0\n", ":2:1", {"an integer (0)", "at least 1"});
  refused("[batch]\nsize = 3000000000\n", ":2:1", {"at most 2147483647"});
  refused("[optimizer]\nlr = -0.1\n", ":2:1", {"of at least 0"});
  refused("[optimizer]\neps = 0.0\n", ":2:1", {"above 0"});
  refused("[optimizer]\nbetas = [0.9, 1.0]\n", ":2:1", {"of at least 0 and below 1"});
  refused("[data]\nvalidation = 1.0\n", ":2:1", {"below 1"});
  refused("[schedule]\nsteps = 0\n", ":2:1", {"at least 1"});
  refused("[run]\nseed = -1\n", ":2:1", {"at least 0"});
}

// A key whose feature comes later is refused by name, and accepted at its neutral value.
TEST(Recipe, LaterFeatures) {
  refused("[batch]\nsize = 32\nmicro = 8\n", ":3:1", {"accumulation", "batch.micro"});
  refused("[memory]\nrecompute = \"pointwise\"\n", ":2:1", {"recompute", "none"});
  refused("[memory]\nbudget = \"2GiB\"\n", ":2:1", {"memory budget", "remove the key"});
  refused("[memory]\nbudget = \"2GB\"\n", ":2:1", {"expected a size such as"});
  refused("[parallel]\nzero = 1\n", ":2:1", {"sharded training state", "0"});
  refused("[parallel]\nbucket = \"25MiB\"\n", ":2:1", {"several ranks"});
  refused("[parallel]\ntensor = 2\n", ":2:1", {"tensor parallelism"});
  refused("[parallel]\npipeline = 2\n", ":2:1", {"pipeline parallelism"});
  refused("[run]\ntarget = \"cuda:sm_91\"\n", ":2:1", {"cuda:sm_91", "did you mean", "cuda:sm_90"});
  refused("[data]\nformat = \"csv\"\n", ":2:1", {"csv", "not supported yet", "npz"});
  refused("[loss]\nkind = \"mse\"\n", ":2:1", {"a loss in the recipe", "not supported yet"});
  refused("[model]\nfile = \"net.onnx\"\n", ":2:1", {"ONNX", "not supported yet"});
}

// A key that the chosen kind has no use for would otherwise be ignored in silence.
TEST(Recipe, UselessKeys) {
  refused("[optimizer]\nmomentum = 0.9\n", ":2:1", {"kind 'sgd' only", "'adamw'"});
  refused("[optimizer]\nkind = \"sgd\"\nbetas = [0.9, 0.99]\n", ":3:1", {"'adam' and 'adamw'"});
  refused("[optimizer]\nkind = \"sgd\"\nnesterov = true\n", ":3:1", {"momentum above 0"});
  refused("[schedule]\nmin_lr = 0.1\n", ":2:1", {"'linear' and 'cosine'"});
  refused("[data]\nscale = 0.5\n", ":2:1", {"'npz', 'npy' and 'idx'"});
  refused("[data]\ninputs = \"x\"\n", ":2:1", {"'npz' and 'npy'"});
  refused("[data]\nformat = \"npz\"\nsequence = 4\n", ":3:1", {"'text' and 'tokens'"});
  refused("[data]\ntoken_type = \"uint16\"\n", ":2:1", {"'tokens'"});
  refused("[[optimizer.group]]\nmatch = \"*\"\nfrozen = true\nlr_scale = 2\n", ":1:1", {"frozen"});
}

TEST(Recipe, RulesBetweenKeys) {
  refused("[schedule]\nkind = \"cosine\"\n", ":2:1", {"needs schedule.steps"});
  refused("[schedule]\nkind = \"linear\"\nsteps = 10\nwarmup = 10\n", ":4:1", {"only 10 steps"});
  refused("[schedule]\nkind = \"linear\"\nsteps = 10\nmin_lr = 0.01\n", ":4:1",
          {"above optimizer.lr", "0.001"});
  refused("[data]\nvalidation = 0.1\nvalidation_path = \"b\"\n", ":2:1", {"remove one"});
  refused("[[optimizer.group]]\nlr_scale = 2\n", ":1:1", {"needs match"});
  refused("[data]\nformat = \"npz\"\nscale = 0\n", ":3:1", {"data.scale is 0"});
}

TEST(Recipe, AllErrorsAtOnce) {
  std::vector<RecipeError> errors;
  EXPECT_FALSE(parse("[optimiser]\n[batch]\nsize = 0\nsice = 1\n[run]\nseed = \"a\"\n", errors,
                     {"batch.size=x"}));
  EXPECT_EQ(errors.size(), 5u);
}

TEST(Recipe, NotToml) {
  refused("[batch]\nsize = = 3\n", ":2:8", {"must be TOML"});
  refused("[batch\n", ":1:7", {"must be TOML"});
  refused("[batch]\nsize = 1\nsize = 2\n", ":3:8", {"must be TOML"});
  std::vector<RecipeError> errors;
  EXPECT_FALSE(parse(std::string("[batch]\nsi\0ze = 1\n", 18), errors));
  EXPECT_FALSE(parse("\xff\xfe\x80", errors));
  EXPECT_FALSE(parseRecipe("/nowhere/recipe.toml", {}, errors));
  EXPECT_FALSE(parseRecipe("/", {}, errors));
  EXPECT_EQ(errors.size(), 4u);
}

TEST(Recipe, Overrides) {
  Recipe recipe = good("[batch]\nsize = 8\n[[optimizer.group]]\nmatch = \"*.bias\"\n",
                       {"batch.size=64", "data.path=b/corpus.txt", "optimizer.betas=[0.8, 0.9]",
                        " run.target = cpu", "optimizer.kind=\"adam\"", "optimizer.lr=1e-2",
                        "data.shuffle=false", "optimizer.group.0.lr_scale=3"});
  EXPECT_EQ(recipe.batch.size, 64);
  EXPECT_EQ(recipe.data.path, "/models/gpt/b/corpus.txt");
  EXPECT_EQ(recipe.optimizer.betas[0], 0.8);
  EXPECT_EQ(recipe.optimizer.kind, "adam");
  EXPECT_EQ(recipe.optimizer.lr, 0.01);
  EXPECT_FALSE(recipe.data.shuffle);
  EXPECT_EQ(recipe.optimizer.groups[0].lrScale, 3.0);
  EXPECT_EQ(recipe.origins.at("batch.size"), "--set batch.size=64");
  EXPECT_EQ(good("[data]\nformat = \"npz\"\n", {"data.inputs=[\"a\", \"b\"]"}).data.inputs.size(),
            2u);
}

TEST(Recipe, RefusedOverrides) {
  auto set = [](const std::string &assignment, const std::vector<std::string> &parts) {
    refused("", "--set " + assignment, parts, {assignment});
  };
  set("batch.size", {"table.key=value"});
  set("size=3", {"table.key=value"});
  set("batch.size=abc", {"'abc'", "expected an integer"});
  set("batch.size=", {"expected an integer"});
  set("batch.size=3\n[run]\nseed=3", {"expected an integer"});
  set("batch.sise=3", {"did you mean batch.size?"});
  set("bach.size=3", {"did you mean [batch]?"});
  set("optimizer.kind=adamv", {"did you mean 'adamw'?"});
  set("optimizer.group.0.lr_scale=2", {"no [[optimizer.group]] to change"});
  set("optimizer.group=2", {"unknown key optimizer.group"});
  set("precision.compute=int8", {"unknown precision.compute 'int8'", "tf32"});
  set("precision.loss_scale=fast", {"'fast'", "none, dynamic or a finite number of at least 1"});
  set("precision.loss_scale=64", {"precision.compute is 'fp32'"});
  set("precision.override.0.type=fp32", {"no [[precision.override]] to change"});
  set("precision.override=2", {"unknown key precision.override"});
  set("optimizer.momentum=0.9", {"kind 'sgd' only"});
}

//===----------------------------------------------------------------------===//
// [precision]
//===----------------------------------------------------------------------===//

// The loss scale follows the compute type unless it is given; the settings of the binary show what
// was decided.
TEST(RecipePrecision, LossScaleFollowsCompute) {
  EXPECT_EQ(good("").precision.lossScale, "none");
  for (const char *compute : {"fp32", "tf32", "bf16", "fp8"})
    EXPECT_EQ(good("[precision]\ncompute = \"" + std::string(compute) + "\"\n").precision.lossScale,
              "none")
        << compute;
  Recipe half = good("[precision]\ncompute = \"fp16\"\n");
  EXPECT_TRUE(half.precision.scalesDynamically());
  EXPECT_EQ(setting(half, "precision.loss_scale"), "dynamic");
  EXPECT_EQ(setting(half, "precision.loss_scale_initial"), "65536.0");
  EXPECT_EQ(setting(half, "precision.loss_scale_growth"), "2.0");
  EXPECT_EQ(setting(half, "precision.loss_scale_backoff"), "0.5");
  EXPECT_EQ(setting(half, "precision.loss_scale_interval"), "2000");
  EXPECT_EQ(setting(half, "precision.loss_scale_floor"), "1.0");
  EXPECT_TRUE(good("[[precision.override]]\nop = \"matmul\"\ntype = \"fp16\"\n")
                  .precision.scalesDynamically());
  EXPECT_EQ(good("[precision]\ncompute = \"fp16\"\nloss_scale = \"none\"\n").precision.lossScale,
            "none");
}

// A loss scale is a word or a number, in the file and on the command line.
TEST(RecipePrecision, LossScaleIsAWordOrANumber) {
  const std::string bf16 = "[precision]\ncompute = \"bf16\"\n";
  EXPECT_EQ(good(bf16 + "loss_scale = 1024\n").precision.staticScale(), 1024.0);
  EXPECT_EQ(good(bf16 + "loss_scale = 1.5\n").precision.staticScale(), 1.5);
  EXPECT_EQ(good(bf16, {"precision.loss_scale=4096"}).precision.staticScale(), 4096.0);
  EXPECT_TRUE(good(bf16, {"precision.loss_scale=dynamic"}).precision.scalesDynamically());
  EXPECT_TRUE(good(bf16, {"precision.loss_scale=\"dynamic\""}).precision.scalesDynamically());
  EXPECT_EQ(setting(good(bf16 + "loss_scale = 1024\n"), "precision.loss_scale"), "1024.0");
  EXPECT_FALSE(good(bf16).precision.staticScale());
}

TEST(RecipePrecision, EveryKey) {
  Recipe recipe = good(R"([precision]
compute = "fp8"
loss_scale = "dynamic"
loss_scale_initial = 1024
loss_scale_growth = 1.5
loss_scale_backoff = 0.25
loss_scale_interval = 7
loss_scale_floor = 16
state = "bf16"
rounding = "nearest"
fp8_scaling = "delayed"
fp8_history = 16
fp8_margin = 1
[[precision.override]]
op = "matmul"
match = ["h.0.*", "wte"]
type = "bf16"
[[precision.override]]
op = "softmax"
type = "fp16"
)",
                       {"precision.override.1.type=fp32"});
  const PrecisionSettings &precision = recipe.precision;
  EXPECT_EQ(precision.compute, "fp8");
  EXPECT_EQ(precision.scaleInitial, 1024.0);
  EXPECT_EQ(precision.scaleGrowth, 1.5);
  EXPECT_EQ(precision.scaleBackoff, 0.25);
  EXPECT_EQ(precision.scaleInterval, 7);
  EXPECT_EQ(precision.scaleFloor, 16.0);
  EXPECT_TRUE(precision.master);
  EXPECT_EQ(precision.state, "bf16");
  EXPECT_EQ(precision.rounding, "nearest");
  EXPECT_EQ(precision.fp8Scaling, "delayed");
  EXPECT_EQ(precision.fp8History, 16);
  EXPECT_EQ(precision.fp8Margin, 1);
  ASSERT_EQ(precision.overrides.size(), 2u);
  EXPECT_EQ(precision.overrides[0].where, "/models/gpt/recipe.toml:14:1");
  EXPECT_EQ(precision.overrides[0].match, (std::vector<std::string>{"h.0.*", "wte"}));
  EXPECT_EQ(precision.overrides[1].type, "fp32");
  EXPECT_EQ(setting(recipe, "precision.override.0.op"), "matmul");
  EXPECT_EQ(setting(recipe, "precision.override.0.match"), "[\"h.0.*\", \"wte\"]");
  EXPECT_EQ(setting(recipe, "precision.override.1.match"), "(absent)");
  Recipe bare = good("[precision]\ncompute = \"bf16\"\nmaster = false\nrounding = \"nearest\"\n");
  EXPECT_FALSE(bare.precision.master);
}

TEST(RecipePrecision, OutOfRange) {
  const std::string fp16 = "[precision]\ncompute = \"fp16\"\n";
  for (const char *value :
       {"0.5", "0", "-1024", "nan", "inf", "-inf", "1e31", "\"fast\"", "\"1024\"", "true", "[1]"})
    refused(fp16 + "loss_scale = " + value + "\n", ":3:1",
            {"precision.loss_scale is", "expected none, dynamic or a finite number of at least 1"});
  for (const char *key : {"loss_scale_initial", "loss_scale_floor"})
    for (const char *value : {"0.5", "0", "inf", "nan", "\"big\""})
      refused(fp16 + key + " = " + value + "\n", ":3:1", {key, "of at least 1"});
  for (const char *value : {"1", "1.0", "0.5", "inf"})
    refused(fp16 + "loss_scale_growth = " + value + "\n", ":3:1", {"a finite number above 1"});
  for (const char *value : {"0", "1", "1.5", "-0.5"})
    refused(fp16 + "loss_scale_backoff = " + value + "\n", ":3:1", {"above 0 and below 1"});
  for (const char *value : {"0", "-1", "1.5"})
    refused(fp16 + "loss_scale_interval = " + value + "\n", ":3:1", {"an integer of at least 1"});
  const std::string fp8 = "[precision]\ncompute = \"fp8\"\n";
  refused(fp8 + "fp8_history = 0\n", ":3:1", {"an integer of at least 1"});
  refused(fp8 + "fp8_margin = -1\n", ":3:1", {"an integer of at least 0"});
  refused(fp8 + "fp8_scaling = \"latest\"\n", ":3:1", {"'latest'", "delayed or current"});
  refused(fp16 + "state = \"fp16\"\n", ":3:1", {"'fp16'", "fp32 or bf16"});
  refused(fp16 + "master = \"no\"\n", ":3:1", {"expected true or false"});
  refused("[precision]\ncompute = \"f32\"\n", ":2:1", {"'f32'", "did you mean 'fp32'?"});
}

// Combinations that could only be ignored, each with what would make it right.
TEST(RecipePrecision, Nonsense) {
  const std::string table = "[precision]\n", bf16 = table + "compute = \"bf16\"\n",
                    fp16 = table + "compute = \"fp16\"\n", fp8 = table + "compute = \"fp8\"\n";
  refused(table + "loss_scale = 1024\n", ":2:1",
          {"precision.compute is 'fp32'", "set precision.compute"});
  refused(table + "loss_scale = \"dynamic\"\n", ":2:1", {"need no scale"});
  refused(table + "compute = \"tf32\"\nloss_scale = 1\n", ":3:1", {"'tf32'", "need no scale"});
  for (const char *key :
       {"loss_scale_initial = 2.0", "loss_scale_growth = 2.0", "loss_scale_backoff = 0.5",
        "loss_scale_interval = 9", "loss_scale_floor = 1.0"}) {
    refused(bf16 + key + "\n", ":3:1", {"loss_scale 'dynamic' only", "'none'", "remove the key"});
    refused(fp16 + "loss_scale = 8\n" + key + "\n", ":4:1", {"'8.0'", "remove the key"});
  }
  refused(fp16 + "loss_scale_floor = 131072\n", ":3:1",
          {"above precision.loss_scale_initial", "65536"});
  refused(fp16 + "loss_scale_floor = 4\nloss_scale_initial = 2\n", ":3:1", {"4.0", "2.0"});
  for (const char *compute : {"fp32", "tf32", "fp16", "fp8"})
    refused(table + "compute = \"" + compute + "\"\nmaster = false\n", ":3:1",
            {compute, "set precision.compute to bf16"});
  refused(bf16 + "rounding = \"nearest\"\n", ":3:1", {"master = false", "remove the key"});
  refused("[optimizer]\nkind = \"sgd\"\n" + bf16 + "state = \"bf16\"\n", ":5:1",
          {"has no state", "remove the key"});
  for (const char *key : {"fp8_scaling = \"current\"", "fp8_history = 4", "fp8_margin = 1"})
    refused(bf16 + key + "\n", ":3:1", {"compute 'fp8' only", "'bf16'", "remove the key"});
  refused(fp8 + "fp8_scaling = \"current\"\nfp8_history = 4\n", ":4:1",
          {"fp8_scaling 'delayed' only", "'current'"});
}

TEST(RecipePrecision, Overrides) {
  const std::string bf16 = "[precision]\ncompute = \"bf16\"\n", one = "[[precision.override]]\n";
  refused(bf16 + one + "type = \"fp32\"\n", ":3:1", {"needs op", "match"});
  refused(bf16 + one + "op = \"matmul\"\n", ":3:1", {"needs type", "fp32, bf16 or fp16"});
  for (const char *type : {"fp8", "tf32", "f8E4M3FN", "fp64"})
    refused(bf16 + one + "op = \"matmul\"\ntype = \"" + type + "\"\n", ":5:1",
            {type, "Known are fp32, bf16 or fp16"});
  refused(one + "op = \"matmul\"\ntype = \"fp32\"\n", ":1:1", {"give already", "remove it"});
  // Under tf32 and fp8 an overridden product is not quantized.
  EXPECT_EQ(good("[precision]\ncompute = \"tf32\"\n" + one + "op = \"matmul\"\ntype = \"fp32\"\n")
                .precision.overrides.size(),
            1u);
  refused(bf16 + one + "op = 3\ntype = \"fp32\"\n", ":4:1", {"expected a string"});
  refused(bf16 + one + "ops = \"matmul\"\n", ":4:1",
          {"unknown key precision.override.ops", "did you mean precision.override.op?"});
  refused("[precision]\noverride = \"matmul\"\n", ":2:1",
          {"expected one or more [[precision.override]] tables"});
  // fp32 is an exception from a wider pattern before it.
  EXPECT_EQ(good(one + "match = \"h.*\"\ntype = \"bf16\"\n" + one +
                 "match = \"h.0.*\"\ntype = \"fp32\"\n")
                .precision.overrides.size(),
            2u);
}

// An override replaces a bad value's effect but not the error: the file still has to be right.
TEST(Recipe, OverridesCanCompleteAFile) {
  EXPECT_EQ(*good("[schedule]\nkind = \"linear\"\n", {"schedule.steps=50"}).schedule.steps, 50);
}

TEST(Recipe, Sizes) {
  EXPECT_EQ(parseSize("123B"), 123);
  EXPECT_EQ(parseSize("1KiB"), 1024);
  EXPECT_EQ(parseSize("25MiB"), 25 << 20);
  EXPECT_EQ(parseSize("2GiB"), int64_t(2) << 30);
  EXPECT_EQ(parseSize("77"), 77);
  for (const char *bad : {"", "GiB", "-1B", "2GB", "1.5GiB", "9000000TiB", "99999999999999999999"})
    EXPECT_FALSE(parseSize(bad)) << bad;
}

// The last group that matches decides, in either direction.
TEST(Recipe, Frozen) {
  Recipe recipe = good("[[optimizer.group]]\nmatch = [\"h.0.*\", \"w?e\"]\nfrozen = true\n"
                       "[[optimizer.group]]\nmatch = \"*.bias\"\nweight_decay = 0\n");
  EXPECT_TRUE(isFrozen(recipe, "h.0.attn.qkv.weight"));
  EXPECT_TRUE(isFrozen(recipe, "wte"));
  EXPECT_FALSE(isFrozen(recipe, "h.0.attn.qkv.bias"));
  EXPECT_FALSE(isFrozen(recipe, "h.1.attn.qkv.weight"));
}

// Each key has a row in the reference.
TEST(Recipe, Reference) {
  std::string text = recipeReference();
  for (const auto &[key, value] : good("").flatten())
    EXPECT_NE(text.find("| `" + key.substr(key.rfind('.') + 1) + "` |"), std::string::npos) << key;
  EXPECT_NE(text.find("## [[optimizer.group]]"), std::string::npos);
  EXPECT_NE(text.find("## [[precision.override]]"), std::string::npos);
  EXPECT_NE(text.find("`none`, `dynamic` or a number"), std::string::npos);
}

} // namespace
