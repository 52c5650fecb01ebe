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
  refused("[precision]\ncompute = \"bf16\"\n", ":2:1", {"mixed precision", "fp32"});
  refused("[precision]\nloss_scale = \"dynamic\"\n", ":2:1", {"loss scaling", "none"});
  refused("[precision]\nloss_scale = 1024\n", ":2:1", {"loss scaling", "1024"});
  refused("[memory]\nrecompute = \"pointwise\"\n", ":2:1", {"recompute", "none"});
  refused("[memory]\nbudget = \"2GiB\"\n", ":2:1", {"memory budget", "remove the key"});
  refused("[memory]\nbudget = \"2GB\"\n", ":2:1", {"expected a size such as"});
  refused("[parallel]\nzero = 1\n", ":2:1", {"sharded training state", "0"});
  refused("[parallel]\nbucket = \"25MiB\"\n", ":2:1", {"several ranks"});
  refused("[parallel]\ntensor = 2\n", ":2:1", {"tensor parallelism"});
  refused("[parallel]\npipeline = 2\n", ":2:1", {"pipeline parallelism"});
  refused("[run]\ntarget = \"cuda:sm_90\"\n", ":2:1", {"cuda:sm_90", "not supported yet", "cpu"});
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
  set("optimizer.group.0.lr_scale=2", {"0 optimizer groups"});
  set("optimizer.group=2", {"unknown key optimizer.group"});
  set("precision.compute=bf16", {"mixed precision"});
  set("optimizer.momentum=0.9", {"kind 'sgd' only"});
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
}

} // namespace
