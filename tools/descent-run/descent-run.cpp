//===- descent-run.cpp - Executes functions of nn ops ---------------------===//
//
// Test-only. Every function of the file is run on the inputs its arguments describe
// (dialects/Check/CheckOps.td), in the way that the options say. Exit status: 0 all within
// tolerance, 1 not, or an error; 2 usage.
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "compiler/Pipelines/Register.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

enum class Mode { Interpret, Gradients, FiniteDifference, Linalg, LinalgForward, Compiled };

static llvm::cl::opt<std::string>
    inputFile(llvm::cl::Positional, llvm::cl::desc("<file.mlir, - for stdin>"), llvm::cl::Required);
static llvm::cl::opt<Mode> mode(
    llvm::cl::desc("What to do with each function:"), llvm::cl::init(Mode::Interpret),
    llvm::cl::values(
        clEnumValN(Mode::Interpret, "interpret",
                   "Print its results in double precision (the default)"),
        clEnumValN(Mode::Gradients, "gradients", "Also print the gradients of its float arguments"),
        clEnumValN(Mode::FiniteDifference, "finite-difference",
                   "Compare gradients, as built and decomposed, with central differences"),
        clEnumValN(Mode::Linalg, "linalg",
                   "Compile it and its gradient through linalg and compare with the interpreter"),
        clEnumValN(Mode::LinalgForward, "linalg-forward",
                   "Compile it alone through linalg and compare"),
        clEnumValN(Mode::Compiled, "compiled",
                   "Compile it and its gradient as programs are compiled and compare with the "
                   "interpreter")));
static llvm::cl::opt<double>
    tolerance("tolerance", llvm::cl::init(0.0),
              llvm::cl::desc("Largest error in units of max(1, |expected|); 1e-6 for differences, "
                             "1e-5 for compiled code"));

static llvm::cl::opt<bool>
    rounded("rounded",
            llvm::cl::desc("The interpreter rounds each op's result to its element type; "
                           "not with -finite-difference, which needs exact values"));

static llvm::cl::opt<std::string>
    cpu("cpu", llvm::cl::init("native"),
        llvm::cl::desc("CPU to compile for (one whose instructions this machine has)"));

static llvm::cl::opt<std::string> target(
    "target", llvm::cl::init("cpu"),
    llvm::cl::desc("What -compiled compiles for: cpu, or cuda-emulated or a cuda:sm_XX, whose "
                   "device code the emulator runs with all its checks"));

static LogicalResult run(func::FuncOp function) {
  double bound = tolerance > 0.0 ? tolerance : (mode == Mode::FiniteDifference ? 1e-6 : 1e-5);
  auto arithmetic =
      rounded ? descent::reference::Arithmetic::Rounded : descent::reference::Arithmetic::Exact;
  switch (mode) {
  case Mode::Interpret:
    return descent::printResults(function, /*gradients=*/false, arithmetic);
  case Mode::Gradients:
    return descent::printResults(function, /*gradients=*/true, arithmetic);
  case Mode::FiniteDifference:
    return descent::checkGradients(function, bound);
  case Mode::Linalg:
    return descent::checkLinalg(function, /*gradients=*/true, bound, arithmetic);
  case Mode::LinalgForward:
    return descent::checkLinalg(function, /*gradients=*/false, bound, arithmetic);
  case Mode::Compiled:
    return descent::checkCompiled(function, bound, arithmetic, target, cpu);
  }
  llvm_unreachable("covered switch");
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "Runs functions of nn ops and checks them\n");
  if (rounded && mode == Mode::FiniteDifference) {
    llvm::errs() << "descent-run: -rounded has no meaning with -finite-difference: the differences "
                    "would be those of the rounding\n";
    return 2;
  }
  DialectRegistry registry;
  descent::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, sources, &context);
  if (!module)
    return 1;
  bool good = true;
  // Each function in a module of its own: decomposition and gradients of one do not touch the
  // others, nor what they call by name.
  SmallVector<StringRef> names;
  for (auto function : module->getOps<func::FuncOp>())
    if (!function.isPrivate())
      names.push_back(function.getSymName());
  if (names.empty()) {
    module->emitError("holds no public func.func to run");
    return 1;
  }
  for (StringRef name : names) {
    OwningOpRef<ModuleOp> own = cast<ModuleOp>((*module)->clone());
    good &= succeeded(run(own->lookupSymbol<func::FuncOp>(name)));
  }
  return good ? 0 : 1;
}
