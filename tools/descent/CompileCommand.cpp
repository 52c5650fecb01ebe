//===- CompileCommand.cpp - descent compile -------------------------------===//

#include "compiler/Pipelines/Register.h"
#include "compiler/Report/Plan.h"
#include "tools/descent/Commands.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace descent::tool {

namespace {

struct CompileArguments {
  ProjectArguments project;
  std::string output, emit = "exe", printAfter;
  bool timePasses = false, quiet = false;
};

} // namespace

/// In the order of Level.
static const char *const levelNames[] = {"nn",    "train", "exec", "gpu", "nvvm", "ptx",
                                         "cubin", "sass",  "llvm", "obj", "exe"};

static bool isDeviceLevel(Level level) { return level >= Level::Gpu && level <= Level::Sass; }

/// Text at a level goes to `output`, or to stdout without one.
static int writeText(const std::string &output,
                     llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (output.empty() || output == "-") {
    print(llvm::outs());
    return 0;
  }
  std::error_code code;
  llvm::raw_fd_ostream stream(output, code);
  if (code)
    return fail("cannot write " + output + ": " + code.message());
  print(stream);
  stream.close();
  if (!stream.has_error())
    return 0;
  code = stream.error();
  stream.clear_error();
  llvm::sys::fs::remove(output);
  return fail("cannot write " + output + ": " + code.message());
}

static int printModule(const std::string &output, FailureOr<ModuleOp> module) {
  if (failed(module))
    return 1;
  return writeText(output, [&](llvm::raw_ostream &os) {
    OpPrintingFlags flags;
    flags.enableDebugInfo(false);
    module->print(os, flags);
    os << "\n";
  });
}

/// Device code at one of its levels.
static int writeDevice(Compilation &compilation, Level level, const std::string &output) {
  if (level == Level::Gpu)
    return printModule(output, compilation.getKernels());
  if (level == Level::Nvvm)
    return printModule(output, compilation.lowerDevice());
  auto write = [&](const std::string &text) {
    return writeText(output, [&](llvm::raw_ostream &os) { os << text; });
  };
  if (level == Level::Ptx) {
    FailureOr<std::string> ptx = compilation.emitDevicePtx();
    return failed(ptx) ? 1 : write(*ptx);
  }
  FailureOr<std::optional<Cubin>> cubin = compilation.emitDeviceCubin();
  if (failed(cubin))
    return 1;
  if (!*cubin)
    return fail(
        "no ptxas to assemble PTX with; it comes with the CUDA toolkit (looked at $PTXAS, in "
        "PATH, $CUDA_HOME/bin and /usr/local/cuda/bin); --emit=ptx needs none");
  if (level == Level::Cubin)
    return write((*cubin)->bytes);
  FailureOr<std::string> text =
      disassemble((*cubin)->bytes, UnknownLoc::get(compilation.getKernels().getContext()));
  return failed(text) ? 1 : write(*text);
}

/// The folder of the output must exist and be writable before minutes are spent.
static int checkOutput(const std::string &output) {
  llvm::StringRef parent = llvm::sys::path::parent_path(output);
  if (parent.empty())
    parent = ".";
  if (!llvm::sys::fs::is_directory(parent))
    return fail("cannot write " + output + ": there is no folder " + parent.str());
  if (!llvm::sys::fs::can_write(parent))
    return fail("cannot write " + output + ": the folder " + parent.str() + " is not writable");
  if (llvm::sys::fs::is_directory(output))
    return fail("cannot write " + output + ": it is a folder; name a file in it with -o");
  return 0;
}

/// What a program for a GPU should be known for: functions that spill, or that nobody could look
/// at.
static int warnOfDevice(Compilation &compilation, const CudaTarget &cuda) {
  FailureOr<std::optional<Cubin>> cubin = compilation.emitDeviceCubin();
  if (failed(cubin))
    return 1;
  if (!*cubin) {
    llvm::errs() << "descent: note: no ptxas was found, so the program holds PTX alone, which the "
                    "driver compiles for the GPU at each start\n";
    return 0;
  }
  std::map<std::string, DeviceResources> spilling = spillingFunctions(**cubin);
  if (spilling.empty())
    return 0;
  llvm::errs() << "descent: warning: " << spilling.size()
               << (spilling.size() == 1 ? " function spills" : " functions spill")
               << " registers on " << cuda.chip << ", which is slow:";
  for (const auto &[name, resources] : spilling)
    llvm::errs() << "\n  " << name << ": " << resources.registers << " registers, "
                 << resources.spillStores << " B stored and " << resources.spillLoads
                 << " B loaded by a thread";
  llvm::errs() << "\n";
  return 0;
}

/// "26 parameters, 40 kernels in 210 launches a step, 1.5 GiB of memory", and of a device what the
/// launches are.
static std::string summary(ModuleOp schedule, ModuleOp kernels,
                           const std::optional<CudaTarget> &cuda) {
  Plan plan =
      cuda ? makePlan(schedule, kernels, *cuda, /*cubin=*/nullptr) : makePlan(schedule, kernels);
  int64_t launches = 0;
  for (const Plan::Kernel &kernel : plan.kernels)
    launches += kernel.launches;
  std::string text = std::to_string(plan.parameters.size()) + " parameters, " +
                     std::to_string(plan.kernels.size()) + " kernels in " +
                     std::to_string(launches) + " launches a step";
  if (!cuda)
    return text + ", " + formatBytes(plan.memory.peak) + " of memory";
  llvm::StringSet<> functions;
  int64_t products = 0;
  for (const DevicePlan::Kernel &kernel : plan.device->kernels) {
    products += kernel.launches * static_cast<int64_t>(kernel.products.size());
    for (const DevicePlan::Function &function : kernel.functions)
      functions.insert(function.name);
  }
  return text + " (" + std::to_string(plan.device->step.commands) +
         " commands of one graph: " + std::to_string(functions.size()) + " functions, " +
         std::to_string(products) + " products of the library), " + formatBytes(plan.memory.peak) +
         " of " + (cuda->emulated ? "the emulated device's memory" : "the device's memory");
}

static int runCompile(const CompileArguments &arguments) {
  auto start = std::chrono::steady_clock::now();
  const auto *position = llvm::find(levelNames, arguments.emit);
  auto level = static_cast<Level>(std::distance(std::begin(levelNames), position));
  bool isFile = level >= Level::Object || level == Level::Cubin;
  std::string output = arguments.output;
  if (isFile && output.empty())
    return fail("say where the program goes: -o FILE");
  if (isFile)
    if (int status = checkOutput(output))
      return status;
  registerAllPasses(); // so that names can be checked before anything runs
  if (!arguments.printAfter.empty() && arguments.printAfter != "all" &&
      !PassInfo::lookup(arguments.printAfter))
    return fail("--print-after: there is no pass '" + arguments.printAfter +
                "'; `descent-opt --help` lists them");

  std::optional<CompileOptions> options = arguments.project.resolve();
  if (!options)
    return 1;
  if (isDeviceLevel(level) && !options->cuda)
    return fail("--emit=" + arguments.emit +
                " shows device code, and the target is cpu; add --target cuda:sm_90");
  options->printAfter = arguments.printAfter;
  options->timePasses = arguments.timePasses;

  std::optional<CudaTarget> cuda = options->cuda;
  bool isEmulated = options->isEmulated();
  Session session;
  Compilation compilation(session.context(), std::move(*options));
  if (level <= Level::Exec)
    return printModule(output, compilation.lowerTo(level));
  FailureOr<ModuleOp> schedule = compilation.lowerTo(Level::Exec);
  if (failed(schedule) || failed(compilation.generate()))
    return 1;
  if (isDeviceLevel(level))
    return writeDevice(compilation, level, output);
  if (level == Level::Llvm) {
    FailureOr<std::string> text = compilation.emitLLVM();
    return failed(text) ? 1 : writeText(output, [&](llvm::raw_ostream &os) { os << *text; });
  }
  FailureOr<std::vector<ObjectBytes>> objects = compilation.emitObjects();
  if (failed(objects))
    return 1;
  if (llvm::Error error = level == Level::Object ? linkObject(*objects, output)
                                                 : linkExecutable(*objects, output, isEmulated))
    return fail(llvm::toString(std::move(error)));
  if (cuda && !cuda->emulated && warnOfDevice(compilation, *cuda))
    return 1;
  if (!arguments.quiet) {
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    llvm::outs() << output << ": " << summary(*schedule, compilation.getKernels(), cuda)
                 << "; compiled in " << llvm::format("%.2f", elapsed.count()) << " s\n";
  }
  return 0;
}

void addCompile(CLI::App &app, int &status) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App *command =
      app.add_subcommand("compile", "compile a model and a recipe into a training program");
  arguments->project.add(*command);
  command->add_option("-o,--output", arguments->output,
                      "file to write; text levels go to standard output without it");
  command
      ->add_option("--emit", arguments->emit,
                   "stop at a level and write it: nn, train, exec, llvm, obj, exe; of a CUDA "
                   "target also gpu, "
                   "nvvm, ptx, cubin, sass")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(levelNames), std::end(levelNames))))
      ->capture_default_str();
  command->add_option("--print-after", arguments->printAfter,
                      "print the program after a pass, or after all, on standard error");
  command->add_flag("--time-passes", arguments->timePasses,
                    "print the time of each pass on standard error");
  command->add_flag("-q,--quiet", arguments->quiet, "say nothing when all is well");
  command->footer("Exit status: 0 done, 1 the input was refused, 2 the command line was.");
  command->callback([arguments, &status] { status = runCompile(*arguments); });
}

} // namespace descent::tool
