//===- Compile.cpp - From a model and a recipe to a training program ------===//
//
// Drives the phases, then code generation. Kernels are split over a few modules so that MLIR's
// conversions and LLVM's code generation, which take most of the time, run on all cores; the split
// depends on the kernels alone, never on the machine, so the same input gives the same bytes.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Compile.h"

#include "compiler/Import/ApplyRecipe.h"
#include "compiler/Import/ReadModel.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Target/CpuCodegen.h"
#include "compiler/Target/EmitDevice.h"
#include "compiler/Target/EmitProgram.h"
#include "compiler/Target/Emulate.h"
#include "passes/Codegen/KernelDispatch.h"
#include "passes/Cuda/DeviceKernels.h"

#include "mlir/IR/Threading.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace descent {

namespace {

/// Calls a function after each pass.
class AfterEachPass : public PassInstrumentation {
public:
  explicit AfterEachPass(const CompileOptions &options, bool &failed)
      : options(options), failed(failed) {}
  void runAfterPass(Pass *pass, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op))
      if (!failed && options.afterEachPass)
        failed = mlir::failed(options.afterEachPass(module, pass->getArgument()));
  }

private:
  const CompileOptions &options;
  bool &failed;
};

} // namespace

Compilation::Compilation(MLIRContext &context, CompileOptions options)
    : context(context), options(std::move(options)) {}
Compilation::~Compilation() = default;

/// What the options ask to see of the passes.
void Compilation::instrument(PassManager &pm) const {
  if (!options.printAfter.empty())
    pm.enableIRPrinting([](Pass *, Operation *) { return false; },
                        [this](Pass *pass, Operation *) {
                          return options.printAfter == "all" ||
                                 options.printAfter == pass->getArgument();
                        },
                        /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/false);
  if (options.timePasses)
    pm.enableTiming();
}

LogicalResult Compilation::runPhase(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(&context);
  pm.enableVerifier(options.verifyEach);
  instrument(pm);
  bool stopped = false;
  pm.addInstrumentation(std::make_unique<AfterEachPass>(options, stopped));
  build(pm);
  return success(succeeded(pm.run(*module)) && !stopped);
}

FailureOr<ModuleOp> Compilation::lowerTo(Level level) {
  module = readModel(options.modelPath, context);
  if (!module)
    return failure();
  applyRecipe(*module, options.recipe);
  if (failed(runPhase(buildImportPhase)) || failed(freezeParameters(*module, options.recipe)) ||
      failed(checkOverrides(*module, options.recipe)))
    return failure();
  if (level == Level::NN)
    return *module;
  if (failed(runPhase(buildPrecisionPhase)) || failed(runPhase(buildDifferentiatePhase)))
    return failure();
  if (level == Level::Train)
    return *module;
  FusionOptions fusion;
  fusion.cuda = options.cuda.has_value();
  if (failed(runPhase([&](OpPassManager &pm) { buildFusionPhase(pm, fusion); })))
    return failure();
  launches = module->clone();
  options.afterEachPass = nullptr; // no tensors from here on
  if (failed(runPhase(buildSchedulePhase)))
    return failure();
  return *module;
}

ModuleOp Compilation::getLaunches() const { return launches.get(); }
ModuleOp Compilation::getKernels() const { return kernels.get(); }

LogicalResult Compilation::generate() {
  FailureOr<OwningOpRef<ModuleOp>> generated = options.cuda
                                                   ? generateDeviceKernels(*module, *options.cuda)
                                                   : generateKernels(*module, options.cpu);
  if (failed(generated))
    return failure();
  kernels = std::move(*generated);
  return success();
}

/// A module of `parts` modules of about equal size that hold the public kernel functions; helpers
/// and constants that several use are copied into each.
static OwningOpRef<ModuleOp> split(ModuleOp kernels, unsigned parts) {
  SymbolTable symbols(kernels);
  OwningOpRef<ModuleOp> outer = ModuleOp::create(kernels.getLoc());
  SmallVector<ModuleOp> modules;
  SmallVector<int64_t> load(parts, 0);
  for (unsigned i = 0; i < parts; ++i)
    outer->push_back(modules.emplace_back(ModuleOp::create(kernels.getLoc())));
  for (auto function : kernels.getOps<func::FuncOp>()) {
    if (function.isPrivate())
      continue;
    int64_t size = 0;
    function.walk([&](Operation *) { ++size; });
    auto lightest = std::distance(load.begin(), llvm::min_element(load));
    load[lightest] += size;
    OpBuilder builder = OpBuilder::atBlockEnd(modules[lightest].getBody());
    SmallVector<Operation *> pending{function};
    while (!pending.empty()) {
      Operation *next = pending.pop_back_val();
      if (SymbolTable::lookupSymbolIn(modules[lightest], SymbolTable::getSymbolName(next)))
        continue;
      builder.clone(*next);
      std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(next);
      assert(uses && "kernel functions hold no symbol tables");
      for (const SymbolTable::SymbolUse &use : *uses)
        if (Operation *helper = symbols.lookup(use.getSymbolRef().getRootReference()))
          pending.push_back(helper);
    }
  }
  return outer;
}

FailureOr<ModuleOp> Compilation::lowerDevice() {
  if (!loweredDevice) {
    if (options.verifyEach && failed(verify(*kernels)))
      return failure();
    OwningOpRef<ModuleOp> copy = kernels->clone();
    // Modules are lowered side by side, and what is printed of them should not be mixed.
    bool isPrinting = !options.printAfter.empty() && context.isMultithreadingEnabled();
    if (isPrinting)
      context.disableMultithreading();
    LogicalResult lowered = lowerDeviceKernels(*copy, [this](PassManager &pm) { instrument(pm); });
    if (isPrinting)
      context.enableMultithreading();
    if (failed(lowered))
      return failure();
    loweredDevice = std::move(copy);
  }
  return *loweredDevice;
}

FailureOr<DeviceCode> Compilation::translateDevice() {
  FailureOr<ModuleOp> lowered = lowerDevice();
  if (failed(lowered))
    return failure();
  return translateDeviceKernels(*lowered, *options.cuda);
}

FailureOr<std::string> Compilation::emitDevicePtx() {
  if (!ptx) {
    FailureOr<DeviceCode> code = translateDevice();
    if (failed(code))
      return failure();
    FailureOr<std::string> text = emitPtx(*code->module, *options.cuda, module->getLoc());
    if (failed(text))
      return failure();
    ptx = std::move(*text);
  }
  return *ptx;
}

FailureOr<std::optional<Cubin>> Compilation::emitDeviceCubin() {
  if (!cubin) {
    FailureOr<std::string> text = emitDevicePtx();
    if (failed(text))
      return failure();
    FailureOr<std::optional<Cubin>> assembled = assemble(*text, *options.cuda, module->getLoc());
    if (failed(assembled))
      return failure();
    cubin.emplace(std::move(*assembled));
  }
  return *cubin;
}

static ProgramOptions programOptions(const CompileOptions &options, ModuleOp plan) {
  auto name = plan->getAttrOfType<StringAttr>("train.model");
  return {name ? name.str() : "model", options.recipe.flatten(), options.cpu,
          /*device=*/nullptr};
}

FailureOr<ObjectBytes> Compilation::emitTables(const DeviceImages *device) {
  llvm::LLVMContext llvmContext;
  ProgramOptions tables = programOptions(options, *module);
  tables.device = device;
  auto program = emitProgram(*module, *kernels, tables, llvmContext);
  if (failed(program))
    return failure();
  return compileToObject(**program, options.cpu, module->getLoc());
}

FailureOr<std::string> Compilation::emitLLVM() {
  llvm::LLVMContext llvmContext;
  ProgramOptions tables = programOptions(options, *module);
  DeviceImages images; // the text shows the device's code instead of its bytes
  if (options.cuda) {
    images.cuda = *options.cuda;
    tables.device = &images;
  }
  auto program = emitProgram(*module, *kernels, tables, llvmContext);
  if (failed(program))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*program)->print(stream, nullptr);
  if (options.cuda) {
    FailureOr<DeviceCode> code = translateDevice();
    if (failed(code))
      return failure();
    stream << "\n";
    code->module->print(stream, nullptr);
    return text;
  }
  OwningOpRef<ModuleOp> copy = kernels->clone();
  if (failed(lowerKernelFunctions(*copy, options.cpu)))
    return failure();
  FailureOr<std::string> code = emitLLVMIR(*copy, options.cpu);
  if (failed(code))
    return failure();
  return text + "\n" + *code;
}

FailureOr<std::vector<ObjectBytes>> Compilation::emitObjects() {
  std::vector<ObjectBytes> objects;
  auto append = [&](FailureOr<ObjectBytes> object) {
    if (succeeded(object))
      objects.push_back(std::move(*object));
    return LogicalResult(object);
  };
  if (options.isEmulated()) {
    FailureOr<DeviceCode> code = translateDevice();
    if (failed(code))
      return failure();
    llvm::Expected<ObjectBytes> device = compileEmulated(*code->module, "device code");
    if (!device)
      return module->emitError() << llvm::toString(device.takeError());
    objects.push_back(std::move(*device));
    DeviceImages images{*options.cuda, "", ""};
    if (failed(append(emitTables(&images))))
      return failure();
    return objects;
  }
  if (options.cuda) {
    FailureOr<std::string> text = emitDevicePtx();
    FailureOr<std::optional<Cubin>> cubin =
        failed(text) ? FailureOr<std::optional<Cubin>>() : emitDeviceCubin();
    if (failed(cubin))
      return failure();
    DeviceImages images{*options.cuda, *cubin ? (*cubin)->bytes : std::string(), *text};
    if (failed(append(emitTables(&images))))
      return failure();
    return objects;
  }
  constexpr unsigned parts = 4;
  OwningOpRef<ModuleOp> outer = split(*kernels, parts);
  if (failed(lowerNestedKernelFunctions(*outer, options.cpu)))
    return failure();
  auto modules = llvm::to_vector(outer->getOps<ModuleOp>());
  objects.resize(parts);
  if (failed(failableParallelForEachN(&context, 0, parts, [&](size_t index) -> LogicalResult {
        FailureOr<ObjectBytes> object = compileToObject(modules[index], options.cpu);
        if (failed(object))
          return failure();
        objects[index] = std::move(*object);
        return success();
      })))
    return failure();
  if (failed(append(emitTables(/*device=*/nullptr))))
    return failure();
  return objects;
}

} // namespace descent
