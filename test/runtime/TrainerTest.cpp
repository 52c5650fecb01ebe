//===- TrainerTest.cpp - Model, checkpoints and command line, in process --------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/File.h"
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
