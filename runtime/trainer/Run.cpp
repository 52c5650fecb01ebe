//===- Run.cpp - What a training binary does ------------------------------------------------===//
#include "runtime/trainer/Run.h"
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"
#include "runtime/trainer/Describe.h"
#include "runtime/trainer/Options.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

using namespace descent;

static int act(const descent_program &program, int argc, const char *const *argv) {
  checkProgram(program);
  Settings settings(program);
  Options options = parseOptions(argc, argv, program, settings);
  switch (options.action) {
  case Options::Action::Done:
    return ExitDone;
  case Options::Action::Describe:
    fmt::print("{}", describeText(program));
    return ExitDone;
  case Options::Action::DescribeJson:
    fmt::print("{}", describeJson(program));
    return ExitDone;
  case Options::Action::Sample:
    checkCpu(program);
    return sample(program, settings, options);
  case Options::Action::Train:
    checkCpu(program);
    return train(program, settings, options);
  }
  return ExitFailed;
}

int descent::run(const descent_program &program, int argc, const char *const *argv) {
  try {
    return act(program, argc, argv);
  } catch (const Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return error.exitStatus();
  } catch (const std::bad_alloc &) {
    std::fputs("error: the system has no memory left\n", stderr);
  } catch (const std::exception &error) {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  return ExitFailed;
}
