//===- Options.cpp - The command line of a training binary ----------------------------------===//
#include "runtime/trainer/Options.h"
#include "runtime/core/Context.h"
#include "runtime/core/Error.h"
#include "runtime/core/HostBackend.h"
#include "runtime/core/Program.h"
#include "runtime/cuda/DeviceBackend.h"
#include "runtime/trainer/Describe.h"
#include "runtime/trainer/Log.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

using namespace descent;

/// Edits (insert, delete, replace) that turn a into b: Levenshtein's distance.
static size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// The flag of `app` that `argument` was probably meant to be, or empty.
static std::string nearestFlag(const CLI::App &app, const std::string &argument) {
  std::string given = argument.substr(0, argument.find('='));
  std::string best;
  size_t bestDistance = std::max<size_t>(2, given.size() / 3) + 1;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      if (size_t d = distance(given, "--" + name); d < bestDistance) {
        bestDistance = d;
        best = "--" + name;
      }
  return best;
}

/// Checks for whole numbers whose message says what is allowed; without a description, help stays
/// readable.
static CLI::Validator between(int64_t low, int64_t high) {
  return CLI::Validator(
      [=](std::string &text) {
        int64_t value = 0;
        bool whole = CLI::detail::lexical_cast(text, value);
        if (whole && value >= low && value <= high)
          return std::string();
        return high == INT64_MAX
                   ? fmt::format("{} is no whole number of at least {}", text, low)
                   : fmt::format("{} is no whole number from {} to {}", text, low, high);
      },
      "");
}

static CLI::Validator oneOf(const char *first, const char *second) {
  return CLI::Validator(
      [=](std::string &text) {
        return text == first || text == second
                   ? std::string()
                   : fmt::format("{} is neither {} nor {}", text, first, second);
      },
      "");
}

static CLI::Validator atLeast(int64_t low) { return between(low, INT64_MAX); }

/// Any 64 bits; the library would take -1 for the largest of them.
static CLI::Validator unsignedNumber() {
  return CLI::Validator(
      [](std::string &text) {
        uint64_t value = 0;
        auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool whole = !text.empty() && error == std::errc() && stop == text.data() + text.size();
        return whole ? std::string() : text + " is no whole number from 0 to 2^64 - 1";
      },
      "");
}

[[noreturn]] static void usage(const std::string &message, const char *program) {
  throw Error(fmt::format("{}\nTry {} --help.", message, program), ExitUsage);
}

static std::string versionText(const descent_program &program) {
  return fmt::format("model {}, compiled by {} for {}; runtime {}", program.name, program.compiler,
                     targetText(program), DESCENT_VERSION);
}

Options descent::parseOptions(int argc, const char *const *argv, const descent_program &program,
                              const Settings &settings) {
  Options options;
  options.steps = settings.integer("schedule.steps", -1);
  options.seed = static_cast<uint64_t>(settings.integer("run.seed", 0));
  options.logEvery = settings.integer("run.log_every", options.logEvery);
  options.checkpointEvery = settings.integer("run.checkpoint_every", options.checkpointEvery);
  options.validateEvery = settings.integer("run.validate_every", options.validateEvery);
  options.validation = settings.text("data.validation_path", "");
  options.shuffle = settings.flag("data.shuffle", true);
  options.threads = static_cast<int>(settings.integer("run.threads", 0));
  if (options.threads < 1)
    options.threads = defaultThreads();

  std::string describe, onNonfinite, injection;
  bool noShuffle = false, noGraph = false, version = false;
  CLI::App app(
      fmt::format("Trains the model '{}', compiled by {}.", program.name, program.compiler));
  app.name(argc > 0 ? argv[0] : "train");
  app.get_formatter()->column_width(34);
  app.option_defaults()->always_capture_default(false);
  app.set_help_flag("-h,--help", "Print this help and exit");

  auto addCommon = [&](CLI::App &target) {
    target.add_option("--data", options.data, "Data to train on (default: the recipe's data.path)")
        ->type_name("FILE");
    target
        .add_option(
            "--out", options.out,
            fmt::format("Folder of the run: metrics and checkpoints (default: {})", options.out))
        ->type_name("DIR");
    target
        .add_option("--seed", options.seed,
                    fmt::format("Seed of initial weights, data order and random ops (default: {})",
                                options.seed))
        ->check(unsignedNumber())
        ->type_name("N");
    target
        .add_option("--threads", options.threads,
                    program.device ? "For models on a CPU; no effect here"
                                   : fmt::format("Threads (default: {}); no result depends on it",
                                                 options.threads))
        ->check(between(1, 4096))
        ->type_name("N");
    if (!program.device)
      return;
    target
        .add_option("--device", options.device,
                    "Device to run on, as the driver counts them (default: 0)")
        ->check(between(0, 4095))
        ->type_name("N");
    target
        .add_option("--products", options.products,
                    "File that keeps which algorithm each matrix product takes, so that equal runs "
                    "have equal bits (default: descent/products in $XDG_CACHE_HOME or ~/.cache)")
        ->type_name("FILE");
    target.add_flag("--no-graph", noGraph,
                    "Launch kernel after kernel instead of one graph a step; no result depends on "
                    "it");
  };
  addCommon(app);
  app.add_option("--validation", options.validation,
                 "File to validate on, instead of a part of the data")
      ->type_name("FILE");
  app.add_option(
         "--steps", options.steps,
         fmt::format(
             "Steps in total, those before a --resume included; 0 only initialises (default: {})",
             options.steps < 0 ? "none" : std::to_string(options.steps)))
      ->check(atLeast(0))
      ->type_name("N");
  app.add_option("--epochs", options.epochs, "Steps as times through the data")
      ->check(between(1, int64_t(1) << 40))
      ->type_name("N");
  app.add_flag("--resume", options.resume, "Go on from the newest checkpoint in DIR");
  app.add_flag("--overwrite", options.overwrite, "Replace an earlier run in DIR");
  app.add_option("--log-every", options.logEvery,
                 fmt::format("Steps between lines of progress; 0 prints none (default: {})",
                             options.logEvery))
      ->check(atLeast(0))
      ->type_name("N");
  app.add_option("--checkpoint-every", options.checkpointEvery,
                 fmt::format("Steps between checkpoints, besides the one at the end; 0: only that "
                             "one (default: {})",
                             options.checkpointEvery))
      ->check(atLeast(0))
      ->type_name("N");
  app.add_option("--validate-every", options.validateEvery,
                 fmt::format("Steps between validations, besides the one at the end; 0: only that "
                             "one (default: {})",
                             options.validateEvery))
      ->check(atLeast(0))
      ->type_name("N");
  app.add_flag("--no-shuffle", noShuffle, "Take samples in the order of the file");
  app.add_option("--init-from", options.initFrom, "Start from these weights")
      ->type_name("F.safetensors");
  app.add_option("--export", options.exportFile, "Write the weights at the end")
      ->type_name("F.safetensors");
  app.add_option("--dump-gradients", options.dumpGradients,
                 "Write the first step's gradients of the mean loss, before clipping")
      ->type_name("F.safetensors");
  app.add_option("--on-nonfinite", onNonfinite,
                 "After a loss or gradient that is not finite: skip the step, or stop (default: "
                 "skip with a dynamic loss scale, else stop)")
      ->check(oneOf("skip", "stop"))
      ->type_name("skip|stop");
  app.add_flag("--find-nonfinite", options.findNonfinite,
               "Name the first op and value that is not finite for each step that is skipped");
  app.add_option("--inject-nonfinite", injection,
                 "Put an inf into a gradient of that step, to see what happens")
      ->type_name("STEP[:PARAMETER]");
  app.add_flag("--profile", options.profile, "Print the time of each kernel at the end");
  if (program.device)
    app.add_option(
           "--metrics-every", options.metricsEvery,
           fmt::format("Most steps that the device may be ahead of the metrics; 1 waits for "
                       "each step, as --find-nonfinite, --inject-nonfinite and --profile do "
                       "(default: {})",
                       options.metricsEvery))
        ->check(between(1, 4096))
        ->type_name("N");
  app.add_flag("--describe{text}", describe,
               "Print parameters, inputs, memory and kernels and exit; =json for programs");
  app.add_flag("--version", version, "Print versions and exit");

  CLI::App *sample =
      app.add_subcommand("sample", "Continue a text with trained weights (language models)");
  sample->set_help_flag("-h,--help", "Print this help and exit");
  addCommon(*sample);
  sample
      ->add_option("--init-from,--resume-from", options.initFrom,
                   "Weights or a checkpoint (default: the newest checkpoint in DIR)")
      ->type_name("F.safetensors");
  sample->add_option("--prompt", options.prompt, "Text to continue; for token data, numbers")
      ->type_name("TEXT");
  sample
      ->add_option("--tokens", options.tokens,
                   fmt::format("Tokens to add (default: {})", options.tokens))
      ->check(atLeast(1))
      ->type_name("N");
  sample
      ->add_option("--samples", options.samples,
                   "Continuations to print, computed together (default: 1)")
      ->check(between(1, batchSize(program)))
      ->type_name("N");
  sample
      ->add_option(
          "--temperature", options.temperature,
          fmt::format("0 always takes the likeliest token (default: {})", options.temperature))
      ->check(CLI::NonNegativeNumber)
      ->type_name("T");
  sample
      ->add_option("--top-k", options.topK,
                   "Choose among the K likeliest tokens; 0: all (default: 0)")
      ->check(atLeast(0))
      ->type_name("K");

  const char *name = argc > 0 ? argv[0] : "train";
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    fmt::print("{}", app.help("", app.got_subcommand(sample) ? CLI::AppFormatMode::All
                                                             : CLI::AppFormatMode::Normal));
    options.action = Options::Action::Done;
    return options;
  } catch (const CLI::ExtrasError &) {
    const CLI::App &where = app.got_subcommand(sample) ? *sample : app;
    std::string argument = app.remaining(true).front();
    std::string nearest = argument.starts_with('-') ? nearestFlag(where, argument) : "";
    usage(fmt::format("{} is no {} of {}{}", argument,
                      argument.starts_with('-') ? "flag" : "command", name,
                      nearest.empty() ? "" : "; did you mean " + nearest + "?"),
          name);
  } catch (const CLI::ParseError &error) {
    usage(error.what(), name);
  }

  if (version) {
    fmt::print("{}\n", versionText(program));
    options.action = Options::Action::Done;
    return options;
  }
  if (!describe.empty()) {
    if (describe != "text" && describe != "json")
      usage(fmt::format("--describe={} is neither text nor json", describe), name);
    options.action = describe == "json" ? Options::Action::DescribeJson : Options::Action::Describe;
    return options;
  }
  auto exclude = [&](const char *a, const char *b) {
    if (app.count(a) && app.count(b))
      usage(fmt::format("{} and {} exclude each other", a, b), name);
  };
  exclude("--steps", "--epochs");
  exclude("--resume", "--overwrite");
  exclude("--resume", "--init-from");
  options.seedGiven = app.count("--seed") > 0 || sample->count("--seed") > 0;
  if (noShuffle)
    options.shuffle = false;
  options.graph = !noGraph;
  if (program.device && (app.count("--threads") || sample->count("--threads")))
    note("--threads has no effect: model '{}' runs on a device", program.name);
  if (app.got_subcommand(sample)) {
    options.action = Options::Action::Sample;
    return options;
  }
  if (!onNonfinite.empty())
    options.onNonfinite = onNonfinite == "skip" ? OnNonfinite::Skip : OnNonfinite::Stop;
  if (!injection.empty())
    options.injection = parseInjection(injection, program);
  if (options.steps < 0 && !options.epochs)
    usage("the recipe has no schedule.steps; give --steps N or --epochs N", name);
  if (options.steps == 0 && !options.epochs && !options.dumpGradients.empty())
    usage("--dump-gradients needs a step; --steps 0 takes none", name);
  return options;
}

std::unique_ptr<Backend> descent::makeBackend(const descent_program &program,
                                              const Options &options) {
  if (!program.device)
    return std::make_unique<HostBackend>(program, options.threads, options.profile);
  cuda::DeviceOptions device;
  device.ordinal = options.device;
  device.graph = options.graph;
  device.products = options.products;
  device.profile = options.profile;
  // Whoever looks into a step needs the model as that step left it.
  bool looks = options.findNonfinite || options.injection.step || options.profile;
  bool trains = options.action == Options::Action::Train;
  device.mostPending = looks || !trains ? 1 : options.metricsEvery;
  auto backend = std::make_unique<cuda::DeviceBackend>(program, device);
  for (const std::string &text : backend->notes())
    note("{}", text);
  return backend;
}
