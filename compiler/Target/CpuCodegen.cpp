//===- CpuCodegen.cpp - Kernel modules to machine code --------------------===//
//
// Code generation runs at -O3 without LLVM's middle-end passes: they gain nothing on what the
// generators emit, and cost compile time.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/CpuCodegen.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/Codegen/KernelFunction.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace descent {

LogicalResult lowerKernelFunctions(ModuleOp module, const CpuTarget &target) {
  if (failed(verify(module)))
    return failure();
  PassManager pm(module.getContext());
  // Verification after each of two dozen conversions would take as long as the conversions.
  pm.enableVerifier(false);
  buildLowerKernelFunctions(pm, /*expandBf16=*/!target.bf16Conversion);
  return pm.run(module);
}

LogicalResult lowerNestedKernelFunctions(ModuleOp outer, const CpuTarget &target) {
  PassManager pm(outer.getContext());
  buildLowerKernelFunctions(pm.nest<ModuleOp>(), /*expandBf16=*/!target.bf16Conversion);
  return pm.run(outer);
}

namespace {

/// Null after an error.
std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target, Location where) {
  static const bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget) {
    emitError(where) << "LLVM has no code generator for '" << triple.str() << "': " << error;
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(
      llvmTarget->createTargetMachine(triple, target.name, target.features, llvm::TargetOptions(),
                                      llvm::Reloc::PIC_, {}, llvm::CodeGenOptLevel::Aggressive));
}

void setTarget(llvm::Module &module, const llvm::TargetMachine &machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
}

/// A module translated to LLVM IR with what its compilation needs. The order of members is the
/// order of their dependence.
struct Translated {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

FailureOr<Translated> translate(ModuleOp module) {
  Translated result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = translateModuleToLLVMIR(module, *result.context,
                                          module.getName().value_or("descent_kernels"));
  if (!result.module)
    return module.emitError("cannot be translated to LLVM IR");
  return result;
}

} // namespace

LogicalResult setTarget(llvm::Module &module, const CpuTarget &target, Location where) {
  auto machine = createMachine(target, where);
  if (!machine)
    return failure();
  setTarget(module, *machine);
  return success();
}

FailureOr<SmallVector<char, 0>> compileToObject(llvm::Module &module, const CpuTarget &target,
                                                Location where) {
  auto machine = createMachine(target, where);
  if (!machine)
    return failure();
  setTarget(module, *machine);
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return emitError(where) << "LLVM cannot write object files for this machine";
  passes.run(module);
  return object;
}

FailureOr<SmallVector<char, 0>> compileToObject(ModuleOp module, const CpuTarget &target) {
  FailureOr<Translated> translated = translate(module);
  if (failed(translated))
    return failure();
  return compileToObject(*translated->module, target, module.getLoc());
}

FailureOr<std::string> emitLLVMIR(ModuleOp module, const CpuTarget &target) {
  FailureOr<Translated> translated = translate(module);
  if (failed(translated) || failed(setTarget(*translated->module, target, module.getLoc())))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  translated->module->print(stream, nullptr);
  return text;
}

KernelJit::KernelJit(std::unique_ptr<llvm::orc::LLJIT> jit) : jit(std::move(jit)) {}
KernelJit::~KernelJit() = default;

FailureOr<std::unique_ptr<KernelJit>> KernelJit::create(ModuleOp module, const CpuTarget &target) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(lowerKernelFunctions(*copy, target)))
    return failure();
  FailureOr<SmallVector<char, 0>> object = compileToObject(*copy, target);
  if (failed(object))
    return failure();
  return load(*object, module.getLoc());
}

FailureOr<std::unique_ptr<KernelJit>> KernelJit::load(ArrayRef<char> object, Location where) {
  auto refuse = [&](llvm::Error error) {
    return emitError(where) << "cannot load kernels: " << llvm::toString(std::move(error));
  };
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return refuse(jit.takeError());
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return refuse(process.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  auto buffer =
      llvm::MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernels");
  if (llvm::Error error = (*jit)->addObjectFile(std::move(buffer)))
    return refuse(std::move(error));
  return std::unique_ptr<KernelJit>(new KernelJit(std::move(*jit)));
}

void *KernelJit::address(StringRef name) const {
  auto symbol = jit->lookup(name);
  if (!symbol) {
    llvm::consumeError(symbol.takeError());
    return nullptr;
  }
  return symbol->toPtr<void *>();
}

} // namespace descent
