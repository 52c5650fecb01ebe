//===- Run.h - What a training binary does --------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_RUN_H
#define DESCENT_RUNTIME_TRAINER_RUN_H

#include "descent/abi.h"

namespace descent {

class Settings;
struct Options;

/// Checks the program, reads the command line and does what it asks. Returns the exit status: 0
/// done, 1 refused or failed, 2 usage, 128 + signal when one stopped training. Errors are printed
/// to standard error.
int run(const descent_program &program, int argc, const char *const *argv);

/// Trains as `options` say and returns 0 or 128 + signal. Throws Error.
int train(const descent_program &program, const Settings &settings, const Options &options);

/// Continues a text as `options` say. Throws Error.
int sample(const descent_program &program, const Settings &settings, const Options &options);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_RUN_H
