//===- Signals.cpp - Stopping a run in good order -------------------------------------------===//
#include "runtime/trainer/Signals.h"

#include <csignal>
#include <initializer_list>

static volatile std::sig_atomic_t received = 0;

static void remember(int signal) { received = signal; }

void descent::catchSignals() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  // The first signal restores the default, so that an impatient second one works.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    // What the parent told us to ignore (nohup) stays ignored.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN)
      continue;
    sigaction(signal, &action, nullptr);
  }
  for (int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_IGN);
}

int descent::stopSignal() { return received; }
