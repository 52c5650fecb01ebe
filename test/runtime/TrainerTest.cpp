//===- TrainerTest.cpp - Model, checkpoints and command line, in process --------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/File.h"
#include "runtime/core/Narrow.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Checkpoint.h"
#include "runtime/trainer/Model.h"
#include "runtime/trainer/Options.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace descent;
namespace fs = std::filesystem;

extern "C" const descent_program specimen __asm__(DESCENT_PROGRAM_SYMBOL);

namespace {

class InFolder : public ::testing::Test {
protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "trainer-" + std::to_string(getpid());
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string folder;
};

/// Fills the inputs with numbers that are no fixed point of training.
void fillInputs(const Model &model) {
  for (uint64_t i = 0; i < 3; ++i)
    fillUniform(reinterpret_cast<float *>(model.at(specimen.inputs[i].tensor)),
                static_cast<int64_t>(specimen.inputs[i].tensor.bytes / 4), 1,
                specimen.inputs[i].tensor.name, 0.5, 1.0);
}

std::string persistentBytes(const Model &model) {
  return std::string(reinterpret_cast<char *>(model.at(0)), specimen.memory.persistent);
}

Options parse(std::vector<const char *> arguments) {
  arguments.insert(arguments.begin(), "train");
  return parseOptions(static_cast<int>(arguments.size()), arguments.data(), specimen,
                      Settings(specimen));
}

} // namespace

TEST(Model, StartsAsTheSeedAndTheNameSay) {
  Model model(specimen, 1, false);
  model.initialize(9);
  float expected[3];
  fillNormal(expected, 3, 9, "w", 0.0, 0.1);
  EXPECT_EQ(std::memcmp(model.at(specimen.parameters[0].tensor), expected, sizeof expected), 0);
  EXPECT_EQ(*reinterpret_cast<float *>(model.at(specimen.parameters[1].tensor)), 0.0f);
}

TEST(Model, StepsAreEqualForAnyNumberOfThreads) {
  std::string first;
  for (int threads : {1, 2, 3, 7}) {
    Model model(specimen, threads, false);
    model.initialize(1);
    model.refresh();
    fillInputs(model);
    StepResult result{};
    for (int i = 0; i < 5; ++i)
      result = model.step();
    EXPECT_TRUE(result.committed);
    if (first.empty())
      first = persistentBytes(model);
    EXPECT_EQ(persistentBytes(model), first) << threads << " threads";
  }
}

// A padding row is as if it were not there: the weighted loss and gradient of seven rows, whatever
// the eighth holds.
TEST(Model, PaddingRowsCountForNothing) {
  float losses[2];
  std::string states[2];
  for (int i = 0; i < 2; ++i) {
    Model model(specimen, 2, false);
    model.initialize(1);
    model.refresh();
    fillInputs(model);
    float *weights = reinterpret_cast<float *>(model.at(specimen.inputs[2].tensor));
    std::fill_n(weights, 8, 1.0f);
    weights[7] = 0.0f;
    reinterpret_cast<float *>(model.at(specimen.inputs[0].tensor))[21] = i ? 1e30f : 0.0f;
    StepResult result = model.step();
    EXPECT_EQ(result.lossWeight, 7.0f);
    losses[i] = result.loss();
    states[i] = persistentBytes(model);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(states[0], states[1]);
}

TEST_F(InFolder, OutputFileIsWholeOrAbsent) {
  std::string path = folder + "/f";
  {
    OutputFile file;
    file.open(path.c_str());
    file.write("old", 3);
    file.publish();
  }
  {
    OutputFile file;
    file.open(path.c_str());
    file.write("half", 4); // Never published.
  }
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "old");
  EXPECT_FALSE(fs::exists(path + partialSuffix));

  // A link goes on pointing at the file, which is replaced.
  fs::create_symlink("f", folder + "/link");
  {
    OutputFile file;
    file.open((folder + "/link").c_str());
    file.write("new", 3);
    file.publish();
  }
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "new");
  EXPECT_THROW(OutputFile().open(folder.c_str()), Error);
  EXPECT_THROW(OutputFile().open((folder + "/absent/f").c_str()), Error);
}

TEST_F(InFolder, CheckpointsRestoreEveryBitAndKeepTwo) {
  Model model(specimen, 1, false);
  model.initialize(3);
  model.refresh();
  fillInputs(model);
  RunPosition position{.seed = UINT64_MAX,
                       .samples = 100,
                       .batch = 8,
                       .shuffle = false,
                       .vocabulary = std::string("a\0\xff", 3)};
  std::ofstream(folder + "/step-00000009.safetensors.partial") << "half";
  Checkpoints checkpoints(model, folder, position);
  checkpoints.prepare();
  EXPECT_FALSE(fs::exists(folder + "/step-00000009.safetensors.partial"));
  std::string at3;
  for (int64_t step = 1; step <= 3; ++step) {
    model.step();
    checkpoints.save(step);
  }
  at3 = persistentBytes(model);
  EXPECT_EQ(listCheckpoints(folder), (std::vector<int64_t>{3, 2}));

  Model other(specimen, 1, false);
  auto loaded = loadNewestCheckpoint(other, folder);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 3);
  EXPECT_EQ(loaded->seed, UINT64_MAX);
  EXPECT_EQ(loaded->samples, 100);
  EXPECT_FALSE(loaded->shuffle);
  EXPECT_EQ(loaded->vocabulary, position.vocabulary);
  // Gradients are no part of a checkpoint.
  std::memcpy(other.at(128), model.at(128), 128);
  other.refresh(); // Neither are working copies.
  EXPECT_EQ(persistentBytes(other), at3);
}

TEST_F(InFolder, AnEmptyFolderHasNoCheckpoint) {
  Model model(specimen, 1, false);
  EXPECT_FALSE(loadNewestCheckpoint(model, folder));
  EXPECT_FALSE(loadNewestCheckpoint(model, folder + "/absent"));
}

// All differences are named at once, and a checkpoint of an earlier batch size (other inputs, equal
// entries) fits.
TEST_F(InFolder, AnotherModelsCheckpointIsRefusedWithItsDifferences) {
  Model model(specimen, 1, false);
  model.initialize(0);
  Checkpoints checkpoints(model, folder, {.samples = 1, .batch = 8});
  checkpoints.prepare();
  checkpoints.save(1);

  std::vector<descent_parameter> parameters(specimen.parameters, specimen.parameters + 2);
  parameters[0].tensor.shape[0] = 1;
  parameters[0].tensor.shape[1] = 3;
  parameters[1].tensor.name = "bias";
  descent_program program = specimen;
  program.parameters = parameters.data();
  program.name = "other";
  Model other(program, 1, false);
  try {
    loadNewestCheckpoint(other, folder);
    FAIL();
  } catch (const Error &error) {
    std::string text = error.what();
    for (const char *part : {"missing: bias f32 [1]", "extra: b F32 [1]",
                             "reshaped: w: the file has F32 [3, 1], the model f32 [1, 3]"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

namespace {

/// The specimen with parameters in bf16 and no master. Its kernels would misread them; they are
/// only stored here.
struct NarrowSpecimen {
  std::vector<descent_parameter> parameters{specimen.parameters, specimen.parameters + 2};
  descent_program program = specimen;

  NarrowSpecimen() {
    for (descent_parameter &parameter : parameters) {
      parameter.tensor.dtype = DESCENT_BF16;
      parameter.tensor.bytes /= 2;
    }
    program.parameters = parameters.data();
    checkProgram(program);
  }
};

std::vector<uint16_t> narrowWeights(const Model &model) {
  const uint16_t *w = reinterpret_cast<uint16_t *>(model.at(specimen.parameters[0].tensor));
  return {w, w + 3};
}

} // namespace

TEST_F(InFolder, NarrowParametersAreRoundedFromTheSameValues) {
  Model wide(specimen, 1, false);
  wide.initialize(9);
  const float *w = reinterpret_cast<float *>(wide.at(specimen.parameters[0].tensor));
  std::vector<uint16_t> rounded = {floatToBrain(w[0]), floatToBrain(w[1]), floatToBrain(w[2])};

  NarrowSpecimen narrow;
  Model model(narrow.program, 1, false);
  model.initialize(9);
  EXPECT_EQ(narrowWeights(model), rounded);

  // Through files, in both directions; the first export is BF16.
  model.exportWeights(folder + "/narrow", "");
  SafetensorsReader file(folder + "/narrow");
  EXPECT_EQ(typeText(file.entries().at("w")), "BF16 [3, 1]");
  std::string note;
  model.initialize(1);
  model.loadWeights(file, note);
  EXPECT_EQ(note, "");
  EXPECT_EQ(narrowWeights(model), rounded);

  wide.exportWeights(folder + "/wide", "");
  model.initialize(1);
  model.loadWeights(SafetensorsReader(folder + "/wide"), note);
  EXPECT_EQ(narrowWeights(model), rounded);
  EXPECT_EQ(note, folder + "/wide: 2 of 2 parameters are F32 there and bf16 here, rounded to "
                           "nearest even");

  note.clear();
  wide.loadWeights(file, note);
  EXPECT_EQ(w[0], brainToFloat(rounded[0]));
  EXPECT_EQ(note, folder + "/narrow: 2 of 2 parameters are BF16 there and f32 here, which loses "
                           "nothing");
}

TEST_F(InFolder, NarrowCheckpointsRestoreEveryBit) {
  NarrowSpecimen narrow;
  std::vector<descent_state> states(specimen.states, specimen.states + specimen.state_count);
  states[0].tensor.dtype = DESCENT_BF16;
  states[0].tensor.bytes = 6;
  states[0].initial = 1.0f + 3 * 0x1p-8f;
  narrow.program.states = states.data();
  Model model(narrow.program, 1, false), other(narrow.program, 1, false);
  model.initialize(3);
  EXPECT_EQ(*reinterpret_cast<uint16_t *>(model.at(states[0].tensor)), 0x3F82);
  Checkpoints checkpoints(model, folder, {.samples = 1, .batch = 8});
  checkpoints.prepare();
  checkpoints.save(1);
  EXPECT_TRUE(loadNewestCheckpoint(other, folder));
  EXPECT_EQ(persistentBytes(other), persistentBytes(model));
  SafetensorsReader file(checkpointPath(folder, 1));
  EXPECT_EQ(typeText(file.entries().at("w")), "BF16 [3, 1]");
  EXPECT_EQ(typeText(file.entries().at("state/w.momentum")), "BF16 [3, 1]");
  EXPECT_EQ(typeText(file.entries().at("state/loss_scale")), "F32 []");
}

// Another precision is told from another model, with the tensors that differ and what can be done.
TEST_F(InFolder, AnotherPrecisionsCheckpointIsRefusedWithItsDifferences) {
  Model model(specimen, 1, false);
  model.initialize(0);
  Checkpoints checkpoints(model, folder, {.samples = 1, .batch = 8});
  checkpoints.prepare();
  checkpoints.save(1);
  auto expectRefused = [&](const descent_program &program, std::vector<const char *> parts) {
    Model other(program, 1, false);
    try {
      loadNewestCheckpoint(other, folder);
      ADD_FAILURE() << "accepted";
    } catch (const Error &error) {
      std::string text = error.what();
      for (const char *part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  };
  NarrowSpecimen narrow;
  expectRefused(narrow.program, {"of model 'specimen' in another precision",
                                 "other type: w: the file has F32 [3, 1], the model bf16 [3, 1]",
                                 "--init-from", "converts the weights"});
  descent_program unscaled = specimen;
  unscaled.state_count = 3;
  expectRefused(unscaled, {"in another precision", "extra: state/loss_scale F32 []",
                           "extra: state/clean_steps I64 []"});
}

TEST_F(InFolder, GradientsAreThoseOfTheMeanLossWhateverTheScale) {
  std::string first;
  for (float scale : {1.0f, 4096.0f}) {
    Model model(specimen, 1, false);
    model.initialize(3);
    model.refresh();
    fillInputs(model);
    *reinterpret_cast<float *>(model.at(*findState(specimen, DESCENT_LOSS_SCALE_STATE))) = scale;
    StepResult result = model.step();
    EXPECT_EQ(result.unscale, 1.0f / scale);
    model.exportGradients(folder + "/g", result);
    SafetensorsReader file(folder + "/g");
    std::string bytes(12, 0);
    file.read(file.entries().at("w"), bytes.data());
    if (first.empty())
      first = bytes;
    EXPECT_EQ(bytes, first) << scale;
  }
}

TEST(Options, CommandLineOverRecipeOverDefaults) {
  Options options = parse({});
  EXPECT_EQ(options.steps, 200); // The specimen's recipe.
  EXPECT_EQ(options.logEvery, 10);
  EXPECT_TRUE(options.shuffle);
  EXPECT_FALSE(options.seedGiven);
  options = parse({"--steps", "7", "--seed=18446744073709551615", "--no-shuffle",
                   "--checkpoint-every", "0", "--data", "d"});
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_TRUE(options.seedGiven);
  EXPECT_FALSE(options.shuffle);
  EXPECT_EQ(options.checkpointEvery, 0);
  EXPECT_EQ(options.data, "d");
  options = parse({"sample", "--prompt", "x", "--top-k", "3", "--seed", "2"});
  EXPECT_EQ(options.action, Options::Action::Sample);
  EXPECT_EQ(options.topK, 3);
  EXPECT_EQ(options.seed, 2u);
  EXPECT_FALSE(options.onNonfinite || options.findNonfinite || options.injection.step);
  options = parse({"--on-nonfinite=stop", "--find-nonfinite", "--inject-nonfinite", "5:b"});
  EXPECT_EQ(options.onNonfinite, OnNonfinite::Stop);
  EXPECT_TRUE(options.findNonfinite);
  EXPECT_EQ(options.injection.step, 5);
  EXPECT_EQ(options.injection.parameter, &specimen.parameters[1]);
  EXPECT_EQ(parse({"--on-nonfinite", "skip"}).onNonfinite, OnNonfinite::Skip);
  EXPECT_EQ(parse({"--describe"}).action, Options::Action::Describe);
  EXPECT_EQ(parse({"--describe=json"}).action, Options::Action::DescribeJson);
}

TEST(Options, WrongUseHasStatusTwo) {
  for (std::vector<const char *> arguments :
       std::vector<std::vector<const char *>>{{"--stepz", "1"},
                                              {"--steps", "-1"},
                                              {"--steps", "1.5"},
                                              {"--seed", "-1"},
                                              {"--seed", "x"},
                                              {"--steps"},
                                              {"what"},
                                              {"--temperature", "1"},
                                              {"--on-nonfinite", "ignore"},
                                              {"--on-nonfinite"},
                                              {"--inject-nonfinite", "0"},
                                              {"--inject-nonfinite", "2:c"},
                                              {"sample", "--temperature", "-1"},
                                              {"sample", "--samples", "9"}}) {
    try {
      parse(arguments);
      ADD_FAILURE() << arguments[0] << " was accepted";
    } catch (const Error &error) {
      EXPECT_EQ(error.exitStatus(), ExitUsage) << error.what();
    }
  }
}

TEST(Hexadecimal, RoundTrip) {
  std::string bytes("\0a\xff\n", 4);
  EXPECT_EQ(fromHexadecimal(hexadecimal(bytes)), bytes);
  EXPECT_EQ(fromHexadecimal("no"), "");
}
