//===- Log.h - What the training binary says ------------------------------------------------===//
//
// Results and progress go to standard output, everything that wants attention to standard error
// with a word that tells how much.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_LOG_H
#define DESCENT_RUNTIME_TRAINER_LOG_H

#include <fmt/format.h>

#include <cstdio>

namespace descent {

/// Something was repaired or ignored and the run goes on.
template <typename... Arguments>
void warn(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  fmt::print(stderr, "warning: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Something worth knowing.
template <typename... Arguments>
void note(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  fmt::print(stderr, "note: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
}

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_LOG_H
