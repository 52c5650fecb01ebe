//===- CudaCodegen.cpp - Device modules to PTX and cubin ------------------===//
//
// MLIR's gpu-module-to-binary is not used: it links CUDA's libdevice where it finds it, so that the
// code would depend on the machine, and it makes one binary a module where a program wants one in
// all.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/CudaCodegen.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/Cuda/DeviceKernels.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace descent {

LogicalResult lowerDeviceKernels(ModuleOp kernels,
                                 llvm::function_ref<void(PassManager &)> instrument) {
  PassManager pm(kernels.getContext());
  if (instrument)
    instrument(pm);
  // Verification after each conversion would take as long as the conversions.
  pm.enableVerifier(false);
  buildLowerDeviceModules(pm);
  return pm.run(kernels);
}

/// Null after an error.
static std::unique_ptr<llvm::TargetMachine> createMachine(const CudaTarget &cuda, Location where) {
  static const bool initialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    emitError(where) << "this LLVM has no code generator for NVIDIA's chips: " << error;
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cuda.chip, cuda.ptxFeatures, llvm::TargetOptions(), {},
                                  {}, llvm::CodeGenOptLevel::Aggressive));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Generators unroll where it pays; further copies of loop bodies only cost registers.
  tuning.LoopUnrolling = false;
  tuning.SLPVectorization = false;
  tuning.LoopVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

FailureOr<DeviceCode> translateDeviceKernels(ModuleOp kernels, const CudaTarget &cuda) {
  auto machine = createMachine(cuda, kernels.getLoc());
  if (!machine)
    return failure();
  DeviceCode code;
  code.context = std::make_unique<llvm::LLVMContext>();
  code.module = std::make_unique<llvm::Module>("descent_device", *code.context);
  code.module->setTargetTriple(machine->getTargetTriple());
  code.module->setDataLayout(machine->createDataLayout());
  llvm::Linker linker(*code.module);
  for (auto device : kernels.getOps<gpu::GPUModuleOp>()) {
    std::unique_ptr<llvm::Module> part =
        translateModuleToLLVMIR(device, *code.context, device.getName());
    if (!part)
      return device.emitError("cannot be translated to LLVM IR");
    part->setTargetTriple(machine->getTargetTriple());
    part->setDataLayout(machine->createDataLayout());
    if (linker.linkInModule(std::move(part)))
      return device.emitError("cannot be linked with the other device modules");
  }
  for (const llvm::Function &function : *code.module)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      return kernels.emitError("internal: device code calls @")
             << function.getName().str() << ", which nobody defines";
  optimise(*code.module, *machine);
  return code;
}

FailureOr<std::string> emitPtx(llvm::Module &module, const CudaTarget &cuda, Location where) {
  auto machine = createMachine(cuda, where);
  if (!machine)
    return failure();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return emitError(where) << "LLVM cannot write PTX";
  passes.run(module);
  return std::string(text);
}

std::string findCudaTool(StringRef name) {
  if (auto chosen = llvm::sys::Process::GetEnv(name.upper()); chosen && !chosen->empty())
    return *chosen;
  if (auto found = llvm::sys::findProgramByName(name))
    return *found;
  SmallVector<std::string> folders;
  if (auto home = llvm::sys::Process::GetEnv("CUDA_HOME"); home && !home->empty())
    folders.push_back(*home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> paths(folders.begin(), folders.end());
  auto found = llvm::sys::findProgramByName(name, paths);
  return found ? *found : std::string();
}

namespace {

/// A folder that goes away with everything in it.
class TemporaryFolder {
public:
  TemporaryFolder() { error = llvm::sys::fs::createUniqueDirectory("descent-cuda", path); }
  ~TemporaryFolder() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const { return (path + "/" + name).str(); }

  std::error_code error;

private:
  SmallString<256> path;
};

} // namespace

static LogicalResult writeFile(StringRef path, StringRef bytes, Location where) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << bytes;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (code)
    return emitError(where) << "cannot write " << path << ": " << code.message();
  return success();
}

/// Runs tool `name` with its output into `folder`/log, which is returned as text.
static FailureOr<std::string> runTool(StringRef name, ArrayRef<std::string> command,
                                      const TemporaryFolder &folder, Location where) {
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::string message, log = folder.file("log");
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log), StringRef(log)};
  int status =
      llvm::sys::ExecuteAndWait(command[0], arguments, std::nullopt, redirects, 0, 0, &message);
  auto output = llvm::MemoryBuffer::getFile(log);
  std::string text = output ? (*output)->getBuffer().str() : std::string();
  // -1: it did not start. A tool that was found by looking is there, so its variable names it.
  if (status == -1)
    return emitError(where) << "cannot run " << command[0] << ": " << message << "; correct $"
                            << name.upper() << ", or unset it to look in PATH, $CUDA_HOME/bin and "
                            << "/usr/local/cuda/bin";
  if (status)
    return emitError(where) << llvm::join(command, " ") << " failed"
                            << (message.empty() ? "" : ": " + message) << "\n"
                            << text;
  return text;
}

/// Reads what `ptxas -v` prints: "Compiling entry function 'NAME' for 'sm_90'", then a line with
/// stack and spills, then one with registers and shared memory.
static llvm::StringMap<DeviceResources> parseResources(StringRef log) {
  llvm::StringMap<DeviceResources> functions;
  llvm::Regex entry("Compiling entry function '([^']+)'");
  llvm::Regex spills("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes "
                     "spill loads");
  llvm::Regex registers("Used ([0-9]+) registers"), shared("([0-9]+) bytes smem");
  DeviceResources *current = nullptr;
  auto number = [](StringRef text) {
    int64_t value = 0;
    (void)text.getAsInteger(10, value);
    return value;
  };
  SmallVector<StringRef> lines, match;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (entry.match(line, &match))
      current = &functions[match[1]];
    if (!current)
      continue;
    if (spills.match(line, &match)) {
      current->stack = number(match[1]);
      current->spillStores = number(match[2]);
      current->spillLoads = number(match[3]);
    }
    if (registers.match(line, &match))
      current->registers = static_cast<int>(number(match[1]));
    if (shared.match(line, &match))
      current->shared = number(match[1]);
  }
  return functions;
}

FailureOr<std::optional<Cubin>> assemble(StringRef ptx, const CudaTarget &cuda, Location where) {
  std::string tool = findCudaTool("ptxas");
  if (tool.empty())
    return std::optional<Cubin>();
  TemporaryFolder folder;
  if (folder.error)
    return emitError(where) << "cannot create a temporary folder: " << folder.error.message();
  std::string source = folder.file("device.ptx"), result = folder.file("device.cubin");
  if (failed(writeFile(source, ptx, where)))
    return failure();
  FailureOr<std::string> log =
      runTool("ptxas", {tool, "-v", "-arch=" + cuda.chip, source, "-o", result}, folder, where);
  if (failed(log))
    return failure();
  auto bytes = llvm::MemoryBuffer::getFile(result, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes)
    return emitError(where) << "cannot read " << result << ": " << bytes.getError().message();
  Cubin cubin;
  cubin.bytes = (*bytes)->getBuffer().str();
  cubin.functions = parseResources(*log);
  return std::optional<Cubin>(std::move(cubin));
}

FailureOr<std::string> disassemble(StringRef cubin, Location where) {
  std::string tool = findCudaTool("nvdisasm");
  if (tool.empty())
    return emitError(where) << "no nvdisasm to show machine code with; it comes with the CUDA "
                               "toolkit (looked at $NVDISASM, in PATH, $CUDA_HOME/bin and "
                               "/usr/local/cuda/bin)";
  TemporaryFolder folder;
  if (folder.error)
    return emitError(where) << "cannot create a temporary folder: " << folder.error.message();
  std::string source = folder.file("device.cubin");
  if (failed(writeFile(source, cubin, where)))
    return failure();
  return runTool("nvdisasm", {tool, source}, folder, where);
}

} // namespace descent
