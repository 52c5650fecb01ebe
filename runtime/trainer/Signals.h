//===- Signals.h - Stopping a run in good order ---------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_SIGNALS_H
#define DESCENT_RUNTIME_TRAINER_SIGNALS_H

namespace descent {

/// From here on SIGINT, SIGTERM and SIGHUP ask the loop to stop; a second one of the same kind ends
/// the process at once. Broken pipes and exceeded file sizes become errors of the calls that meet
/// them.
void catchSignals();

/// The signal that asked, or 0.
int stopSignal();

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_SIGNALS_H
