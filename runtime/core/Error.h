//===- Error.h - The one exception of the runtime ------------------------------------------===//
//
// Whatever makes a run impossible (data, files, memory, a program of another version) is thrown as
// an `Error` whose message is complete: what was refused, where, and what would make it right.
// `main` prints it and exits with the status it carries.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_ERROR_H
#define DESCENT_RUNTIME_CORE_ERROR_H

#include <stdexcept>
#include <string>

namespace descent {

/// Exit statuses of the training binary.
enum ExitStatus : int { ExitDone = 0, ExitFailed = 1, ExitUsage = 2 };

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, int exitStatus = ExitFailed)
      : std::runtime_error(message), status(exitStatus) {}

  int exitStatus() const { return status; }

private:
  int status;
};

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_ERROR_H
