//===- Train.cpp - The training loop --------------------------------------------------------===//
//
// Everything a step decides (learning rate, clipping, whether to commit) is compiled; the loop
// fills inputs, calls the step, and keeps books. The books come in a fixed order: the metrics line
// of a step, then its checkpoint. A process killed between the two resumes one step earlier and
// writes the same line again; the other order would lose a line for good.
//
// A device works on several steps while the loop fills the inputs of the next: the books of a step
// are made when its report has arrived, at most `mostPending` steps later. Whatever looks at the
// model as it is after a step (validation, checkpoints, the end) waits for all reports first. A run
// that is called off ends with the books of the step that was found bad; what the steps behind it
// did to the device's memory is in no file.
//
// Nothing is created on disk before weights and data have been found good, so that a mistyped name
// leaves no run behind.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Arena.h"
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceMemory.h"
#include "runtime/trainer/Batches.h"
#include "runtime/trainer/Checkpoint.h"
#include "runtime/trainer/Describe.h"
#include "runtime/trainer/Inspect.h"
#include "runtime/trainer/Log.h"
#include "runtime/trainer/Metrics.h"
#include "runtime/trainer/Model.h"
#include "runtime/trainer/Nonfinite.h"
#include "runtime/trainer/Options.h"
#include "runtime/trainer/Progress.h"
#include "runtime/trainer/Run.h"
#include "runtime/trainer/RunFolder.h"
#include "runtime/trainer/Signals.h"
#include "runtime/trainer/Validate.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

using namespace descent;
using Clock = std::chrono::steady_clock;

static bool isDue(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

namespace {

class Training {
public:
  Training(const descent_program &program, const Settings &settings, const Options &options)
      : program(program), settings(settings), options(options),
        model(program, makeBackend(program, options)), lossScale(model, settings),
        policy(options.onNonfinite.value_or(lossScale.isDynamic() ? OnNonfinite::Skip
                                                                  : OnNonfinite::Stop)),
        inspector(model, options.injection) {
    position.batch = model.batch;
    position.shuffle = options.shuffle;
    position.seed = options.seed;
    rowsUnderWay.resize(static_cast<size_t>(model.backend.mostPending()));
  }

  int run() {
    if (options.resume)
      resume();
    else
      start();
    if (steps == 0) {
      exportWeights();
      return ExitDone;
    }
    openFiles();
    model.refresh();
    int status = loop();
    if (status == ExitDone)
      exportWeights();
    if (options.profile)
      fmt::print("\n{}", profileText(program, model.backend.times(), loopSeconds));
    return status;
  }

private:
  void start() {
    model.initialize(position.seed);
    if (!options.initFrom.empty()) {
      SafetensorsReader file(options.initFrom);
      std::string extra;
      model.loadWeights(file, extra);
      if (!extra.empty())
        note("{}", extra);
      // Only matters for text: the weights know which byte an id stands for.
      position.vocabulary = fromHexadecimal(file.metadata("vocabulary", ""));
    }
    // Without a step there is no need for data and nothing that a folder could hold.
    if (!options.epochs && options.steps == 0)
      return;
    openData();
    folder.emplace(options.out,
                   options.overwrite ? RunFolder::Mode::Overwrite : RunFolder::Mode::Fresh, program,
                   position.seed);
  }

  void resume() {
    folder.emplace(options.out, RunFolder::Mode::Resume, program, position.seed);
    std::optional<RunPosition> found = loadNewestCheckpoint(model, folder->checkpoints());
    RunPosition saved = found.value_or(position);
    if (found)
      fmt::print("resuming {} after step {}\n", options.out, saved.step);
    else
      saved.seed = folder->seed();
    if (options.seedGiven && options.seed != saved.seed)
      throw Error(fmt::format("the run in {} was started with --seed {}; a resumed run keeps its "
                              "seed, so leave --seed out",
                              options.out, saved.seed));
    position.seed = saved.seed;
    position.step = saved.step;
    position.vocabulary = saved.vocabulary;
    if (!found) {
      note("{} has no checkpoint yet; starting from the beginning", options.out);
      model.initialize(position.seed);
    }
    openData();
    if (found && (saved.samples != position.samples || saved.batch != position.batch ||
                  saved.shuffle != position.shuffle))
      warn("the data or its order changed since the checkpoint ({} samples in batches of {}{}, now "
           "{} in batches of {}{}): the run goes "
           "on with the order of the new data, at step {}",
           saved.samples, saved.batch, saved.shuffle ? "" : " unshuffled", position.samples,
           position.batch, position.shuffle ? "" : " unshuffled", position.step);
    if (position.step > steps)
      throw Error(fmt::format("the run in {} is after step {} already, past the {} steps asked "
                              "for; --steps is the total",
                              options.out, position.step, steps));
  }

  void openData() {
    DataSource source;
    source.path = options.data.empty() ? settings.text("data.path", "") : options.data;
    if (source.path.empty())
      throw Error("no data: give --data FILE, or data.path in the recipe", ExitUsage);
    source.format = dataFormat(settings, source.path);
    source.vocabulary = position.vocabulary;
    // A file of its own for validation leaves all of the data to train on.
    if (options.validation.empty())
      source.validation = settings.real("data.validation", 0.0);
    data = openDataset(program, settings, source);
    position.vocabulary = data->vocabulary();
    position.samples = data->size();
    tokensPerSample = data->tokensPerSample();
    batches.emplace(model, *data, source.path, position.seed, options.shuffle);
    steps = options.epochs ? *options.epochs * batches->perEpoch() : options.steps;
    checkInjection();

    if (source.validation > 0 || !options.validation.empty()) {
      source.vocabulary = position.vocabulary;
      source.validationPart = true;
      if (!options.validation.empty()) {
        source.path = options.validation;
        source.validation = 0;
      }
      validationData = openDataset(program, settings, source);
      validator.emplace(model, *validationData, source.path);
    }
  }

  void checkInjection() const {
    int64_t step = options.injection.step;
    if (step && (step <= position.step || step > steps))
      throw Error(fmt::format("--inject-nonfinite {}: this run takes the steps {} to {}", step,
                              position.step + 1, steps),
                  ExitUsage);
  }

  void openFiles() {
    checkpoints.emplace(model, folder->checkpoints(), position);
    checkpoints->prepare();
    metrics.emplace(folder->metrics(), position.step);
    fmt::print(
        "model {}: {} samples in {} batches of {}{}; step {} to {}; {}, {} planned\n", program.name,
        position.samples, batches->perEpoch(), model.batch,
        validationData ? fmt::format(", {} samples to validate on", validationData->size()) : "",
        position.step + 1, steps, model.backend.place(),
        formatBytes(program.device ? cuda::deviceBytes(program.memory) : program.memory.arena)
            .text);
    std::fflush(stdout);
  }

  int loop() {
    catchSignals();
    auto loopStart = Clock::now();
    progress.emplace(position.step, steps, options.logEvery);
    settledStep = savedStep = position.step;
    for (int64_t step = position.step + 1; step <= steps; ++step) {
      bool last = step == steps;
      rowsUnderWay[static_cast<size_t>(step) % rowsUnderWay.size()] = batches->fill(step - 1);
      model.setIteration(position.seed, step - 1);
      inspector.submit(step);
      submittedStep = step;
      bool waits = last || isDue(step, options.checkpointEvery) ||
                   (validator && isDue(step, options.validateEvery)) ||
                   (step == position.step + 1 && !options.dumpGradients.empty());
      Backend &backend = model.backend;
      while (backend.pending() &&
             (waits || backend.pending() == backend.mostPending() || backend.arrived()))
        settle();

      int signal = stopSignal();
      if (last || signal || isDue(step, options.checkpointEvery)) {
        while (backend.pending())
          settle();
        metrics->sync();
        checkpoints->save(step);
        savedStep = step;
      }
      if (signal && !last) {
        progress->endLine();
        loopSeconds = std::chrono::duration<double>(Clock::now() - loopStart).count();
        fmt::print(
            "stopped by signal {} after step {}; the checkpoint is written, --resume goes on\n",
            signal, step);
        return 128 + signal;
      }
    }
    progress->endLine();
    loopSeconds = std::chrono::duration<double>(Clock::now() - loopStart).count();
    if (position.step == steps)
      fmt::print("the run is after step {} already; there is nothing left to do\n", steps);
    return ExitDone;
  }

  /// Makes the books of the oldest step under way.
  void settle() {
    StepResult result = model.finish();
    int64_t step = ++settledStep;
    int rows = rowsUnderWay[static_cast<size_t>(step) % rowsUnderWay.size()];
    bool last = step == steps;

    NonfinitePolicy::Verdict verdict = policy.judge(result, lossScale.canFall(result));
    std::optional<Finding> finding;
    std::string caveat;
    // Validation would overwrite the batch.
    if (verdict.isNonfinite() && (verdict.stop || options.findNonfinite))
      finding = step == submittedStep ? inspector.find(result) : findLate(step, result, caveat);
    if (step == position.step + 1 && !options.dumpGradients.empty())
      dumpGradients(result);
    std::optional<Validation> validation;
    if (!verdict.stop && validator && (last || isDue(step, options.validateEvery)))
      validation = validator->run();

    StepMetrics line;
    line.step = step;
    line.loss = result.loss();
    line.learningRate = result.learningRate;
    line.gradientNorm = result.gradientNorm;
    line.stepMilliseconds = result.milliseconds;
    line.itemsAreTokens = tokensPerSample > 0;
    line.itemsPerSecond =
        rows * std::max<int64_t>(tokensPerSample, 1) / (result.milliseconds * 1e-3);
    line.lossScale = result.lossScale;
    line.skipped = result.updates ? step - *result.updates : 0;
    line.validation = validation ? &*validation : nullptr;
    metrics->write(line);
    progress->show(line);
    if (verdict.cause != NonfinitePolicy::Cause::None) {
      progress->endLine();
      reportSkip(step, result, verdict, finding, caveat);
    }
  }

  /// Looks for the first value that is not finite of a step that ends the run, when steps behind it
  /// are under way: on the same batch, but with the weights that those left.
  std::optional<Finding> findLate(int64_t step, const StepResult &result, std::string &caveat) {
    bool moved = false;
    while (model.backend.pending())
      moved |= model.finish().committed;
    batches->fill(step - 1);
    model.setIteration(position.seed, step - 1);
    if (moved)
      caveat = fmt::format(
          " The steps {} to {} were under way when step {} was found bad, and the search used the "
          "weights that they left; with --metrics-every 1 nothing is under way and it uses the "
          "step's own.",
          step + 1, submittedStep, step);
    return inspector.findLate(result);
  }

  /// Says why a step changed nothing, and ends the run where going on makes no sense.
  void reportSkip(int64_t step, const StepResult &result, const NonfinitePolicy::Verdict &verdict,
                  const std::optional<Finding> &finding, const std::string &caveat) {
    std::string what = skipText(verdict, result, lossScale);
    if (verdict.stop)
      throw Error(fmt::format(
          "step {}: {}; {}. {}{}", step, what,
          savedStep > 0 ? fmt::format("the checkpoint of step {} is the last one", savedStep)
                        : "there is no checkpoint yet",
          stopText(verdict, result, finding ? &*finding : nullptr, lossScale), caveat));
    warn("step {}: {}", step, what);
    if (options.findNonfinite && verdict.isNonfinite())
      note("step {}: {}", step,
           finding ? "the first value that is not finite is " + finding->text()
                   : "a second run found no value that is not finite");
  }

  void dumpGradients(const StepResult &result) {
    if (result.lossWeight == 0)
      throw Error("--dump-gradients: no target of the first batch counts, so the mean loss has no "
                  "gradient");
    model.exportGradients(options.dumpGradients, result);
  }

  void exportWeights() {
    if (options.exportFile.empty())
      return;
    model.exportWeights(options.exportFile, position.vocabulary);
    fmt::print("weights written to {}\n", options.exportFile);
  }

  const descent_program &program;
  const Settings &settings;
  const Options &options;
  Model model;
  LossScale lossScale;
  NonfinitePolicy policy;
  Inspector inspector;
  RunPosition position;
  int64_t steps = 0, tokensPerSample = 0;
  int64_t submittedStep = 0, settledStep = 0, savedStep = 0;
  std::vector<int> rowsUnderWay; // By step.
  std::optional<Progress> progress;
  double loopSeconds = 0;
  std::unique_ptr<data::Dataset> data, validationData;
  std::optional<Batches> batches;
  std::optional<Validator> validator;
  std::optional<RunFolder> folder;
  std::optional<Checkpoints> checkpoints;
  std::optional<MetricsFile> metrics;
};

} // namespace

int descent::train(const descent_program &program, const Settings &settings,
                   const Options &options) {
  return Training(program, settings, options).run();
}
