//===- DeviceRunTest.cpp - Programs of a device, trained on the emulated driver -------------===//
//
// The device specimen computes what the specimen computes, sum for sum: whatever the driver does
// with the order of what may run at any time, whether steps are graphs or single launches, and
// however many are under way, a run leaves the same bytes.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceBackend.h"
#include "runtime/emulator/Driver.h"
#include "runtime/trainer/Checkpoint.h"
#include "runtime/trainer/Describe.h"
#include "runtime/trainer/Inspect.h"
#include "runtime/trainer/Model.h"
#include "runtime/trainer/Options.h"
#include "runtime/trainer/Run.h"
#include "test/runtime/data/Files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

#include <unistd.h>

using namespace descent;
using emulator::DriverSettings;
using emulator::lastMessage;
using emulator::resetDriver;
namespace fs = std::filesystem;

extern "C" const descent_program specimen __asm__(DESCENT_PROGRAM_SYMBOL);
extern "C" const descent_program deviceSpecimen __asm__("device_specimen");

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Metrics without what depends on time.
std::string metricsOf(const std::string &run) {
  return std::regex_replace(readFile(run + "/metrics.jsonl"),
                            std::regex("\"(step_ms|samples_per_second)\":[^,}]*,?"), "");
}

template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

class DeviceRun : public ::testing::Test {
protected:
  void SetUp() override {
    resetDriver({});
    folder = ::testing::TempDir() + "device-" + std::to_string(getpid());
    fs::remove_all(folder);
    fs::create_directories(folder);
    writeData("data.npz", 1.0f, -1);
  }
  void TearDown() override {
    resetDriver({});
    fs::remove_all(folder);
  }

  std::string path(const std::string &name) const { return folder + "/" + name; }

  /// 43 samples: five batches and a short one. Targets of the third batch are multiplied with
  /// `factor`; `poisoned` is the sample whose input is no number.
  void writeData(const std::string &name, float factor, int poisoned) {
    std::vector<float> xs(43 * 3), ys(43);
    fillUniform(xs.data(), 129, 7, "x", -1.0, 1.0, 0);
    fillUniform(ys.data(), 43, 7, "y", -1.0, 1.0, 0);
    for (int i = 16; i < 24; ++i)
      ys[static_cast<size_t>(i)] *= factor;
    if (poisoned >= 0)
      xs[static_cast<size_t>(3 * poisoned + 1)] = NAN;
    writeNpz(path(name), xs, ys);
  }
  static void writeNpz(const std::string &file, const std::vector<float> &xs,
                       const std::vector<float> &ys) {
    using namespace data::testing;
    std::ofstream(file, std::ios::binary)
        << zip({{"inputs.npy", npy("<f4", "(43, 3)", little(xs))},
                {"targets.npy", npy("<f4", "(43, 1)", little(ys))}});
  }

  /// Trains and returns the exit status.
  int trainIn(const descent_program &program, const std::string &run,
              std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"train", "--out", path(run), "--export", path(run + ".safetensors")});
    if (std::find(arguments.begin(), arguments.end(), "--data") == arguments.end())
      arguments.insert(arguments.end(), {"--data", path("data.npz")});
    std::vector<const char *> pointers;
    for (const std::string &argument : arguments)
      pointers.push_back(argument.c_str());
    Settings settings(program);
    Options options =
        parseOptions(static_cast<int>(pointers.size()), pointers.data(), program, settings);
    return train(program, settings, options);
  }

  void expectSameRun(const std::string &a, const std::string &b, int64_t step) {
    EXPECT_EQ(metricsOf(path(a)), metricsOf(path(b))) << a << " and " << b;
    EXPECT_EQ(readFile(path(a + ".safetensors")), readFile(path(b + ".safetensors")))
        << a << " and " << b;
    EXPECT_EQ(readFile(checkpointPath(path(a) + "/checkpoints", step)),
              readFile(checkpointPath(path(b) + "/checkpoints", step)))
        << a << " and " << b;
  }

  std::string folder;
};

struct Mode {
  const char *name;
  DriverSettings::Kind order;
  uint64_t seed;
};
const Mode modes[] = {{"eager", DriverSettings::Eager, 0},
                      {"late", DriverSettings::Late, 0},
                      {"shuffled1", DriverSettings::Shuffled, 1},
                      {"shuffled2", DriverSettings::Shuffled, 2}};

DriverSettings settingsOf(const Mode &mode) {
  DriverSettings settings;
  settings.order = mode.order;
  settings.seed = mode.seed;
  return settings;
}

} // namespace

TEST_F(DeviceRun, LeavesWhatTheHostLeaves) {
  std::vector<std::string> common = {"--steps",          "17", "--checkpoint-every", "7",
                                     "--validate-every", "5"};
  ASSERT_EQ(trainIn(specimen, "host", common), 0);
  for (const Mode &mode : modes)
    for (std::vector<std::string> more : std::vector<std::vector<std::string>>{
             {}, {"--metrics-every", "1"}, {"--metrics-every", "3", "--no-graph"}, {"--profile"}}) {
      resetDriver(settingsOf(mode));
      std::string run = std::string(mode.name) + std::to_string(more.size());
      more.insert(more.begin(), common.begin(), common.end());
      ASSERT_EQ(trainIn(deviceSpecimen, run, more), 0);
      expectSameRun("host", run, 17);
      EXPECT_EQ(lastMessage(), "");
      fs::remove_all(path(run));
    }
}

// The third batch overflows until the scale has fallen: skips with steps behind them under way.
TEST_F(DeviceRun, SkipsAsTheHostDoes) {
  writeData("huge.npz", 1e17f, -1);
  std::vector<std::string> common = {"--steps", "40", "--data", path("huge.npz"), "--no-shuffle"};
  ASSERT_EQ(trainIn(specimen, "host", common), 0);
  EXPECT_NE(metricsOf(path("host")).find("\"skipped\":3"), std::string::npos);
  for (const Mode &mode : modes) {
    resetDriver(settingsOf(mode));
    ASSERT_EQ(trainIn(deviceSpecimen, mode.name, common), 0);
    expectSameRun("host", mode.name, 40);
  }
  // Looking into each skipped step changes nothing.
  std::vector<std::string> looking = common;
  looking.push_back("--find-nonfinite");
  ASSERT_EQ(trainIn(deviceSpecimen, "looking", looking), 0);
  expectSameRun("host", "looking", 40);
}

TEST_F(DeviceRun, ResumesBitForBit) {
  auto trainTo = [&](const descent_program &program, const char *run, const char *steps,
                     bool resume) {
    std::vector<std::string> arguments = {"--steps", steps, "--validate-every", "9"};
    if (resume)
      arguments.push_back("--resume");
    ASSERT_EQ(trainIn(program, run, arguments), 0);
  };
  trainTo(deviceSpecimen, "whole", "20", false);
  trainTo(deviceSpecimen, "parts", "9", false);
  resetDriver(settingsOf(modes[2]));
  trainTo(deviceSpecimen, "parts", "20", true);
  expectSameRun("whole", "parts", 20);
  // And a device goes on where the host stopped.
  trainTo(specimen, "mixed", "9", false);
  trainTo(deviceSpecimen, "mixed", "20", true);
  expectSameRun("whole", "mixed", 20);
}

// What a longer run calls more of: launches, copies, records and queries. Nobody waits for a stream
// or the device, and kernels are launched by graphs alone.
TEST_F(DeviceRun, NothingInTheLoopWaitsForTheDevice) {
  std::vector<const char *> functions = {"cuGraphLaunch",
                                         "cuStreamSynchronize",
                                         "cuCtxSynchronize",
                                         "cuMemAlloc",
                                         "cuMemHostAlloc",
                                         "cuLaunchKernel",
                                         "cuGraphInstantiateWithFlags",
                                         "cuEventCreate",
                                         "cuEventSynchronize",
                                         "cuMemcpyHtoDAsync"};
  std::map<std::string, int64_t> calls[2];
  int64_t steps[] = {20, 60};
  for (int i = 0; i < 2; ++i) {
    DriverSettings settings;
    settings.order = DriverSettings::Eager; // Of hardware that is faster than the host.
    resetDriver(settings);
    descent_emulator_reset_calls();
    ASSERT_EQ(trainIn(deviceSpecimen, "run" + std::to_string(i),
                      {"--steps", std::to_string(steps[i]), "--validate-every", "0"}),
              0);
    for (const char *function : functions)
      calls[i][function] = static_cast<int64_t>(descent_emulator_calls(function));
  }
  auto more = [&](const char *function) { return calls[1][function] - calls[0][function]; };
  EXPECT_EQ(more("cuGraphLaunch"), 40);
  EXPECT_EQ(more("cuMemcpyHtoDAsync"), 40); // One a batch.
  for (const char *function : functions)
    if (std::string(function) != "cuGraphLaunch" && std::string(function) != "cuMemcpyHtoDAsync")
      EXPECT_EQ(more(function), 0) << function;
  EXPECT_EQ(calls[1]["cuMemAlloc"], 1);
  EXPECT_EQ(calls[1]["cuStreamSynchronize"] + calls[1]["cuCtxSynchronize"], 0);
}

// A device that is slower than the host: the loop waits for memory that is in use and for nothing
// else, at most for one thing a step.
TEST_F(DeviceRun, TheHostWaitsForSlotsAlone) {
  std::map<std::string, int64_t> calls[2];
  for (int i = 0; i < 2; ++i) {
    DriverSettings settings;
    settings.order = DriverSettings::Late;
    resetDriver(settings);
    descent_emulator_reset_calls();
    ASSERT_EQ(trainIn(deviceSpecimen, "run" + std::to_string(i),
                      {"--steps", i ? "60" : "20", "--validate-every", "0"}),
              0);
    for (const char *function : {"cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"})
      calls[i][function] = static_cast<int64_t>(descent_emulator_calls(function));
  }
  EXPECT_LE(calls[1]["cuEventSynchronize"] - calls[0]["cuEventSynchronize"], 40);
  EXPECT_EQ(calls[1]["cuStreamSynchronize"] + calls[1]["cuCtxSynchronize"], 0);
}

TEST_F(DeviceRun, AllocatesWhatIsPlanned) {
  EXPECT_EQ(cuda::deviceBytes(deviceSpecimen.memory), deviceSpecimen.memory.arena +
                                                          deviceSpecimen.memory.device_workspace +
                                                          deviceSpecimen.memory.device_staging);
  size_t free[2], total;
  DriverSettings settings;
  settings.memory = 1 << 20;
  resetDriver(settings);
  descent_emulated_driver.cuInit(0);
  cuda::DeviceBackend backend(deviceSpecimen, {});
  descent_emulated_driver.cuMemGetInfo(&free[0], &total);
  EXPECT_EQ(total - free[0], cuda::deviceBytes(deviceSpecimen.memory));
  std::string text = describeText(deviceSpecimen);
  EXPECT_NE(text.find("compiled by by hand for cuda-emulated (emulated code)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("allocated on the device"), std::string::npos) << text;
  std::string json = describeJson(deviceSpecimen);
  EXPECT_NE(
      json.find("\"device_bytes\": " + std::to_string(cuda::deviceBytes(deviceSpecimen.memory))),
      std::string::npos)
      << json;
}

TEST_F(DeviceRun, SaysWhatIsThereWhenMemoryIsNot) {
  DriverSettings settings;
  settings.memory = 4096;
  resetDriver(settings);
  std::string text = errorOf([&] { trainIn(deviceSpecimen, "run", {"--steps", "1"}); });
  for (const char *part :
       {"not enough memory on device 0",
        "needs 8.25 KiB in one block, 4.00 KiB of 4.00 KiB are free", "arena 6.00 KiB",
        "The plan is fullest in the forward pass (launch 1 of 5: nn.mse (specimen.mlir:5))",
        "The 10 biggest tensors there:", "input x f32 [8, 3]",
        "nn.add (specimen.mlir:4) f32 [8, 1]", "A smaller batch.size",
        "--device chooses another device"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_FALSE(fs::exists(path("run"))); // Nothing is left of a run that never began.
}

TEST_F(DeviceRun, RefusesDevicesThatAreNotThereOrDoNotFit) {
  DriverSettings settings;
  settings.devices = 2;
  resetDriver(settings);
  std::string text = errorOf([&] {
    trainIn(deviceSpecimen, "run", {"--steps", "1", "--device", "3"});
  });
  for (const char *part :
       {"--device 3: there is no such device", "There are 2:", "\n  0: ", "\n  1: ", "sm_80"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(trainIn(deviceSpecimen, "second", {"--steps", "1", "--device", "1"}), 0);

  descent_device device = *deviceSpecimen.device;
  device.capability = 90;
  descent_program program = deviceSpecimen;
  program.device = &device;
  text = errorOf([&] { trainIn(program, "run", {"--steps", "1"}); });
  for (const char *part : {"was compiled for sm_90 and holds emulated code", "is sm_80",
                           "Compile it with --target cuda:sm_80"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;

  // A program with images: what it has is named, too.
  const descent_image images[] = {{DESCENT_IMAGE_CUBIN, 90, "x", 1},
                                  {DESCENT_IMAGE_PTX, 86, "", 1}};
  device.emulated = nullptr;
  device.images = images;
  device.image_count = 2;
  checkProgram(program);
  text = errorOf([&] { cuda::DeviceBackend(program, {}); });
  EXPECT_NE(text.find("holds cubin sm_90, PTX sm_86; device 0, "), std::string::npos) << text;
}

namespace {

/// What the driver below was last given to load.
const void *loadedImage;

cuda::CUresult refuseImage(cuda::CUmodule *, const void *image, unsigned options,
                           cuda::CUjit_option *names, void **values) {
  loadedImage = image;
  for (unsigned i = 0; i < options; ++i)
    if (names[i] == cuda::CU_JIT_ERROR_LOG_BUFFER)
      std::strcpy(static_cast<char *>(values[i]), "ptxas fatal: line 7");
  return cuda::CUDA_ERROR_INVALID_PTX;
}

} // namespace

// Finished code of the chip's major version comes first, then the newest PTX that is no newer than
// the chip; what the driver's compiler says is part of the message.
TEST_F(DeviceRun, LoadsTheImageThatFitsBest) {
  cuda::Driver driver = descent_emulated_driver;
  driver.cuModuleLoadDataEx = refuseImage;
  const cuda::Drivers drivers{&driver, descent_emulated_drivers.library, nullptr};
  const descent_image images[] = {{DESCENT_IMAGE_CUBIN, 80, "cubin 80", 1},
                                  {DESCENT_IMAGE_CUBIN, 86, "cubin 86", 1},
                                  {DESCENT_IMAGE_CUBIN, 90, "cubin 90", 1},
                                  {DESCENT_IMAGE_PTX, 80, "", 1},
                                  {DESCENT_IMAGE_PTX, 90, "", 1}};
  descent_device device = *deviceSpecimen.device;
  device.emulated = nullptr;
  device.images = images;
  device.image_count = 5;
  device.drivers = &drivers;
  descent_program program = deviceSpecimen;
  program.device = &device;
  checkProgram(program);
  for (auto [chip, expected] : {std::pair(80, 0), {86, 1}, {89, 1}, {90, 2}, {100, 4}}) {
    DriverSettings settings;
    settings.capability = chip;
    resetDriver(settings);
    std::string text = errorOf([&] { cuda::DeviceBackend(program, {}); });
    EXPECT_EQ(loadedImage, images[expected].data) << chip;
    EXPECT_NE(text.find("(the driver's log: ptxas fatal: line 7)"), std::string::npos) << text;
    EXPECT_NE(text.find("CUDA_ERROR_INVALID_PTX"), std::string::npos) << text;
  }
}

// One bad batch stops the run when steps behind it are under way: the books end with it, and the
// search says that the weights are not those of the step.
TEST_F(DeviceRun, AStopThatIsSeenLateEndsTheBooksAtItsStep) {
  writeData("bad.npz", 1.0f, 11);
  std::vector<std::string> common = {
      "--steps", "30", "--data", path("bad.npz"), "--no-shuffle", "--on-nonfinite", "stop"};
  std::string expected = errorOf([&] { trainIn(specimen, "host", common); });
  EXPECT_EQ(expected.find("step 2: "), 0u) << expected;
  resetDriver(settingsOf(modes[1]));
  std::string late = errorOf([&] { trainIn(deviceSpecimen, "late", common); });
  EXPECT_EQ(late.find("step 2: "), 0u) << late;
  EXPECT_NE(late.find("of input 'x'"), std::string::npos) << late;
  EXPECT_NE(late.find("were under way when step 2 was found bad"), std::string::npos) << late;
  EXPECT_EQ(metricsOf(path("late")), metricsOf(path("host")));
  EXPECT_TRUE(fs::is_empty(path("late") + "/checkpoints"));
  std::vector<std::string> exact = common;
  exact.insert(exact.end(), {"--metrics-every", "1"});
  EXPECT_EQ(errorOf([&] { trainIn(deviceSpecimen, "exact", exact); }), expected);
  EXPECT_EQ(metricsOf(path("exact")), metricsOf(path("host")));
}

TEST_F(DeviceRun, InjectsAndDumpsAsTheHostDoes) {
  for (const descent_program *program : {&specimen, &deviceSpecimen}) {
    std::string run = program == &specimen ? "host" : "device";
    ASSERT_EQ(trainIn(*program, run,
                      {"--steps", "6", "--inject-nonfinite", "3:b", "--find-nonfinite",
                       "--dump-gradients", path(run + ".gradients")}),
              0);
  }
  expectSameRun("host", "device", 6);
  EXPECT_EQ(readFile(path("host.gradients")), readFile(path("device.gradients")));
}

TEST_F(DeviceRun, LaunchesAreLookedInto) {
  Model model(deviceSpecimen,
              std::make_unique<cuda::DeviceBackend>(deviceSpecimen, cuda::DeviceOptions{}));
  model.initialize(1);
  model.refresh();
  model.backend.beginInputs();
  for (uint64_t i = 0; i < 3; ++i) {
    const descent_tensor &tensor = deviceSpecimen.inputs[i].tensor;
    float *values = reinterpret_cast<float *>(model.backend.input(tensor));
    std::fill_n(values, tensor.bytes / 4, 1.0f);
    if (i == 1)
      values[3] = 1e25f;
  }
  Inspector inspector(model, {});
  StepResult result = inspector.step(1);
  EXPECT_FALSE(result.committed);
  std::optional<Finding> finding = inspector.find(result);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->text(), "inf of nn.mse (specimen.mlir:5) (f32 []), which comes out of nn.mse "
                             "(specimen.mlir:5) (launch 1, kernel loss_8)");
  EXPECT_EQ(model.get<int64_t>(*findState(deviceSpecimen, "skipped_steps")), 1);
  EXPECT_EQ(model.get<float>(*findState(deviceSpecimen, "loss_scale")), 32768.0f);
}

TEST_F(DeviceRun, ProfilesEachKernel) {
  cuda::DeviceOptions options;
  options.profile = true;
  Model model(deviceSpecimen, std::make_unique<cuda::DeviceBackend>(deviceSpecimen, options));
  model.initialize(1);
  model.refresh();
  model.backend.beginInputs();
  for (int i = 0; i < 3; ++i)
    model.step();
  for (uint64_t i = 0; i < deviceSpecimen.kernel_count; ++i)
    EXPECT_EQ(model.backend.times()[i].calls, i == 5 ? 1u : 3u) << i;
}

// A schedule that forgot an event is found out in every order of the driver's.
TEST_F(DeviceRun, AMissingEventIsFound) {
  descent_function functions[3];
  std::copy_n(deviceSpecimen.functions, 3, functions);
  descent_site sites[5];
  std::copy_n(functions[0].sites, 5, sites);
  sites[3].wait_count = 0; // `decide` reads the loss's weight without waiting for it.
  functions[0].sites = sites;
  descent_program program = deviceSpecimen;
  program.functions = functions;
  checkProgram(program);
  for (const Mode &mode : modes) {
    resetDriver(settingsOf(mode));
    std::string text = errorOf([&] {
      Model model(program, std::make_unique<cuda::DeviceBackend>(program, cuda::DeviceOptions{}));
      model.initialize(1);
      model.refresh();
      model.backend.beginInputs();
      model.step();
    });
    EXPECT_NE(text, "no error") << mode.name;
    EXPECT_NE(text.find("failed"), std::string::npos) << text;
  }
}

TEST_F(DeviceRun, DamagedTablesAreRefused) {
  checkProgram(deviceSpecimen);
  auto expectRefused = [&](const char *part, auto damage) {
    descent_function functions[3];
    std::copy_n(deviceSpecimen.functions, 3, functions);
    descent_site sites[5];
    std::copy_n(functions[0].sites, 5, sites);
    functions[0].sites = sites;
    descent_kernel kernels[6];
    std::copy_n(deviceSpecimen.kernels, 6, kernels);
    for (descent_site &site : sites)
      site.kernel = kernels + (site.kernel - deviceSpecimen.kernels);
    descent_command command = deviceSpecimen.kernels[0].commands[0];
    descent_place places[7];
    std::copy_n(command.operands, 7, places);
    command.operands = places;
    kernels[0].commands = &command;
    descent_device device = *deviceSpecimen.device;
    descent_program program = deviceSpecimen;
    program.functions = functions;
    program.function_count = 1;
    program.kernels = kernels;
    program.device = &device;
    damage(program, sites, command, places, device);
    std::string text = errorOf([&] { checkDevice(program); });
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  using Program = descent_program &;
  using Device = descent_device &;
  using Place = descent_place *;
  using Site = descent_site *;
  using Command = descent_command &;
  expectRefused("no error", [](Program, Site, Command, Place, Device) {});
  expectRefused("ends behind the 96 bytes of its operand",
                [](Program, Site, Command, Place places, Device) { places[0].offset = 8; });
  expectRefused("is operand 7 of 7",
                [](Program, Site, Command, Place places, Device) { places[0].operand = 7; });
  expectRefused("ends behind the 256 bytes of its workspace",
                [](Program, Site, Command, Place places, Device) {
                  places[0] = {DESCENT_WORKSPACE, DESCENT_F32, 0, 257};
                });
  expectRefused("launch 3 of 'step' waits for event 1, which nothing before it records",
                [](Program, Site sites, Command, Place, Device) { sites[1].record = -1; });
  expectRefused("unknown stream 2",
                [](Program, Site sites, Command, Place, Device) { sites[0].stream = 2; });
  expectRefused("empty grid",
                [](Program, Site, Command command, Place, Device) { command.grid[1] = 0; });
  expectRefused("there is no code for the device",
                [](Program, Site, Command, Place, Device device) { device.emulated = nullptr; });
  expectRefused("a slot to stage them has 8", [](Program program, Site, Command, Place, Device) {
    program.memory.device_staging = 16;
  });
}
