//===- descent-emulate.cpp - Runs one CUDA kernel on the CPU --------------===//
//
// For debugging a kernel by itself, without a GPU: every thread is a fiber, every access is
// checked.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Emulate.h"
#include "compiler/Version.h"
#include "runtime/core/Error.h"
#include "tools/descent-emulate/Arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

using namespace descent;
using namespace descent::emulate;

namespace {

struct Settings {
  std::string file, kernel, grid = "", block = "", order = "forward";
  std::vector<std::string> arguments, print, save, expect, disable;
  uint32_t shared = 0;
  double tolerance = 0;
  bool list = false;
};

[[noreturn]] void usage(const std::string &message) { throw Error(message, ExitUsage); }

emulator::Dim parseDim(const char *option, const std::string &text) {
  uint32_t values[3] = {1, 1, 1};
  size_t count = 0;
  for (size_t at = 0; at <= text.size(); ++count) {
    size_t next = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, next - at);
    if (count == 3 || part.empty() || part.size() > 9 ||
        part.find_first_not_of("0123456789") != std::string::npos)
      usage(fmt::format("{} {}: expected one to three numbers with commas between them: 4 or 4,2,1",
                        option, text));
    values[count] = static_cast<uint32_t>(std::stoul(part));
    at = next + 1;
  }
  return {values[0], values[1], values[2]};
}

emulator::Options parseOptions(const Settings &settings) {
  emulator::Options options;
  const std::string &order = settings.order;
  if (order == "reverse")
    options.order.kind = emulator::Order::Reverse;
  else if (order.starts_with("shuffled:") && order.size() > 9 && order.size() < 28 &&
           order.find_first_not_of("0123456789", 9) == std::string::npos) {
    options.order.kind = emulator::Order::Shuffled;
    options.order.seed = std::stoull(order.substr(9));
  } else if (order != "forward")
    usage(fmt::format("--order {}: expected forward, reverse or shuffled:SEED", order));
  for (const std::string &name : settings.disable) {
    std::string known;
    bool found = false;
    for (uint32_t i = 0; i < emulator::checkCount; ++i) {
      auto check = static_cast<emulator::Check>(i);
      if (!emulator::isOptional(check))
        continue;
      known += (known.empty() ? "" : ", ") + std::string(emulator::checkName(check));
      if (name == emulator::checkName(check)) {
        options.disabled |= 1u << i;
        found = true;
      }
    }
    if (!found)
      usage(fmt::format("--disable {}: the checks that can be turned off are {}", name, known));
  }
  return options;
}

/// "ARG=VALUE" of --save and --expect.
std::pair<std::string, std::string> split(const char *option, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    usage(fmt::format("{} {}: expected ARG=FILE.npy", option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void list(const descent_emulated_module &module) {
  for (uint32_t k = 0; k < module.kernel_count; ++k) {
    const descent_emulated_kernel &kernel = module.kernels[k];
    fmt::print("kernel {}\n", kernel.name);
    for (uint32_t i = 0; i < kernel.parameter_count; ++i)
      fmt::print("  parameter {}: {}{}{}{}\n", i, kernel.parameters[i].type,
                 *kernel.parameters[i].name ? " %" : "", kernel.parameters[i].name,
                 kernel.parameters[i].by_value
                     ? fmt::format(", {} bytes by value", kernel.parameters[i].bytes)
                     : "");
    for (uint32_t i = 0; i < kernel.shared_count; ++i) {
      const descent_emulated_variable &variable = module.variables[kernel.shared[i]];
      fmt::print("  shared @{}: {}\n", variable.name,
                 variable.bytes ? fmt::format("{} bytes", variable.bytes) : "dynamic (--shared)");
    }
    if (kernel.max_threads)
      fmt::print("  at most {} threads in a block\n", kernel.max_threads);
  }
}

void print(const Arguments &arguments, const Argument &buffer) {
  std::vector<char> bytes = arguments.read(buffer);
  const ElementType &type = *buffer.type;
  int64_t columns = buffer.shape.empty() ? 1 : buffer.shape.back();
  fmt::print("{} =", arguments.nameOf(buffer));
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    if (columns && i % columns == 0 && buffer.shape.size() > 1)
      fmt::print("\n ");
    double value = type.load(bytes.data() + i * type.bytes);
    // A value that nobody wrote is none.
    fmt::print(" {}", !arguments.written(buffer, i) ? "?"
                      : type.isFloat                ? fmt::format("{:.6g}", value)
                                     : fmt::format("{}", static_cast<int64_t>(value)));
  }
  fmt::print("\n");
}

/// False, with a message, if an element is further from the expected one than
/// tolerance * max(1, |expected|).
bool compare(const Arguments &arguments, const Argument &buffer, const std::string &expected,
             double tolerance) {
  std::vector<char> actual = arguments.read(buffer), wanted = initialBytes(buffer, expected);
  const ElementType &type = *buffer.type;
  int64_t wrong = 0, first = -1, unwritten = 0;
  double worst = 0;
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    double a = type.load(actual.data() + i * type.bytes),
           e = type.load(wanted.data() + i * type.bytes);
    bool known = arguments.written(buffer, i);
    double error = a == e || (std::isnan(a) && std::isnan(e))
                       ? 0
                       : std::fabs(a - e) / std::max(1.0, std::fabs(e));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    if (known && error <= tolerance)
      continue;
    unwritten += !known;
    if (wrong++ == 0)
      first = i;
  }
  if (!wrong) {
    fmt::print("{}: as expected, largest error {:.3g} (tolerance {:.3g})\n",
               arguments.nameOf(buffer), worst, tolerance);
    return true;
  }
  std::string place;
  for (int64_t rest = first, i = static_cast<int64_t>(buffer.shape.size()) - 1; i >= 0; --i) {
    place = fmt::format("{}{}", rest % buffer.shape[i], place.empty() ? "" : ", " + place);
    rest /= buffer.shape[i];
  }
  std::string got = arguments.written(buffer, first)
                        ? fmt::format("{:.9g}", type.load(actual.data() + first * type.bytes))
                        : "nothing (never written)";
  fmt::print(
      stderr,
      "descent-emulate: error: {} differs from {} in {} of {} elements{}; the first is [{}]: "
      "{} instead of {:.9g}; largest error {:.3g}, tolerance {:.3g}\n",
      arguments.nameOf(buffer), expected, wrong, buffer.elements(),
      unwritten ? fmt::format(" ({} never written)", unwritten) : "", place, got,
      type.load(wanted.data() + first * type.bytes), worst, tolerance);
  return false;
}

int run(const Settings &settings) {
  std::vector<EmulatorSymbol> symbols;
  for (const emulator::Symbol &symbol : emulator::symbols())
    symbols.push_back({symbol.name, symbol.address});
  llvm::Expected<EmulatedCode> code = EmulatedCode::load(settings.file, symbols);
  if (!code) {
    fmt::print(stderr, "{}\n", llvm::toString(code.takeError()));
    return ExitFailed;
  }
  const descent_emulated_module &module = code->module();
  if (settings.list) {
    list(module);
    return ExitDone;
  }
  if (settings.grid.empty() || settings.block.empty())
    usage("--grid and --block are needed: how many blocks, and how many threads in each");
  if (settings.kernel.empty() && module.kernel_count != 1)
    usage(module.kernel_count ? "the file has several kernels; choose one with --kernel (--list "
                                "shows them)"
                              : "the file has no kernel: none of its functions has the calling "
                                "convention ptx_kernel");
  emulator::Device device;
  device.options = parseOptions(settings);
  device.load(module);
  emulator::LaunchRequest request;
  request.module = &module;
  request.kernel = settings.kernel.empty() ? &module.kernels[0]
                                           : &emulator::Device::find(module, settings.kernel);
  request.grid = parseDim("--grid", settings.grid);
  request.block = parseDim("--block", settings.block);
  request.dynamicShared = settings.shared;
  Arguments arguments(device, *request.kernel, settings.arguments);
  request.parameters = arguments.values();
  // Names are resolved before the run, so that a wrong one costs no run.
  std::vector<const Argument *> printed;
  std::vector<std::pair<const Argument *, std::string>> saved, expected;
  for (const std::string &name : settings.print)
    printed.push_back(&arguments.buffer(name, "--print"));
  for (const std::string &text : settings.save) {
    auto [name, file] = split("--save", text);
    saved.emplace_back(&arguments.buffer(name, "--save"), file);
  }
  for (const std::string &text : settings.expect) {
    auto [name, value] = split("--expect", text);
    expected.emplace_back(&arguments.buffer(name, "--expect"), value);
  }
  if (std::optional<emulator::Fault> fault = device.launch(request)) {
    std::fflush(stdout);
    fmt::print(stderr, "descent-emulate: error: {}\n", fault->message);
    return ExitFailed;
  }
  for (const Argument *buffer : printed)
    print(arguments, *buffer);
  for (const auto &[buffer, file] : saved)
    writeNpy(file, *buffer->type, buffer->shape, arguments.read(*buffer));
  bool good = true;
  for (const auto &[buffer, value] : expected)
    good &= compare(arguments, *buffer, value, settings.tolerance);
  return good ? ExitDone : ExitFailed;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Runs one CUDA kernel (LLVM IR for nvptx64) on the CPU, each thread by itself, and "
      "checks it: accesses\nout of bounds, misaligned or of memory that was never written "
      "or freed, races between threads of a block,\ndivergent barriers, deadlock. The first "
      "fault ends the run.",
      "descent-emulate");
  Settings settings;
  app.set_version_flag("--version", versionText());
  app.add_option("kernel.ll", settings.file, "LLVM IR of the device, text or bitcode")->required();
  app.add_option("--kernel", settings.kernel, "name of the kernel; needed if the file has several");
  app.add_option("--grid", settings.grid, "blocks: X[,Y,Z]");
  app.add_option("--block", settings.block, "threads of a block: X[,Y,Z]");
  app.add_option("--shared", settings.shared, "bytes of dynamic shared memory");
  app.add_option("--arg", settings.arguments, "value of the next parameter, see below")
      ->allow_extra_args(false);
  app.add_option("--print", settings.print, "print buffer ARG after the run")
      ->allow_extra_args(false);
  app.add_option("--save", settings.save,
                 "write buffer ARG to a file: ARG=FILE.npy (bf16 as float32)")
      ->allow_extra_args(false);
  app.add_option("--expect", settings.expect,
                 "fail unless buffer ARG holds these values: ARG=FILE.npy, or any INITIAL")
      ->allow_extra_args(false);
  app.add_option("--tolerance", settings.tolerance,
                 "largest error of --expect, in units of max(1, |expected|)")
      ->capture_default_str();
  app.add_option("--order", settings.order,
                 "order of blocks and threads: forward, reverse or shuffled:SEED; no result may "
                 "depend on it")
      ->capture_default_str();
  app.add_option("--disable", settings.disable,
                 "turn a check off: misaligned, uninitialised, race or shuffle")
      ->allow_extra_args(false);
  app.add_flag("--list", settings.list, "list the file's kernels and their parameters");
  app.footer(
      std::string(argumentHelp) +
      "\nExit status: 0 done, 1 the kernel was refused, failed a check or gave other values, 2 "
      "usage.\nExample: descent-emulate softmax.ll --grid 4 --block 64 --arg f32[4x64]=random "
      "--arg f32[4x64] --print 1");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : ExitUsage;
  }
  try {
    return run(settings);
  } catch (const Error &error) {
    fmt::print(stderr, "descent-emulate: error: {}\n", error.what());
    return error.exitStatus();
  }
}
