//===- Options.h - The command line of a training binary ------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_OPTIONS_H
#define DESCENT_RUNTIME_TRAINER_OPTIONS_H

#include "runtime/trainer/Nonfinite.h"

#include "descent/abi.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace descent {

class Backend;
class Settings;

struct Options {
  enum class Action { Train, Sample, Describe, DescribeJson, Done } action = Action::Train;

  std::string data, validation; ///< empty: from the recipe
  int64_t steps = 0;            ///< unless epochs is set
  std::optional<int64_t> epochs;
  std::string out = "run";
  bool resume = false, overwrite = false, shuffle = true, profile = false;
  uint64_t seed = 0;
  bool seedGiven = false;
  int64_t logEvery = 10;          ///< 0: no progress is shown
  int64_t checkpointEvery = 1000; ///< 0: only at the end
  int64_t validateEvery = 500;    ///< 0: only at the end
  int threads = 1;
  // For programs of a device.
  int device = 0;
  std::string products; ///< file of the algorithms of matrix products; empty: the default one
  bool graph = true;
  int64_t metricsEvery = 8;
  std::string exportFile, initFrom, dumpGradients;
  std::optional<OnNonfinite> onNonfinite; ///< default: Skip where the loss scale is dynamic
  bool findNonfinite = false;
  Injection injection;

  // For `sample`.
  std::string prompt;
  int64_t tokens = 200, samples = 1, topK = 0;
  double temperature = 0.8;
};

/// What runs the program: threads of the host, or a device. Throws Error.
std::unique_ptr<Backend> makeBackend(const descent_program &program, const Options &options);

/// Reads the command line; what it does not say comes from the recipe, then from the defaults
/// above. Help and version texts are printed here and give Action::Done. Throws Error with
/// ExitUsage for anything else.
Options parseOptions(int argc, const char *const *argv, const descent_program &program,
                     const Settings &settings);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_OPTIONS_H
