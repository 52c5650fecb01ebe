//===- Emulate.cpp - Device code as code of the host ----------------------===//
//
// Code that is loaded is generated without optimisation: operations of warps and checks take most
// of the time, and optimised code takes four times as long to make; a program that runs many steps
// gets a little. It is generated for a plain x86-64-v3 where the host has that: instructions for
// bf16 of newer CPUs treat subnormals as zero, which the device does not.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Emulate.h"
#include "runtime/include/descent/emulator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/AsmParser/AsmParserContext.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace descent {

EmulatedCode::EmulatedCode(std::unique_ptr<orc::LLJIT> jit, const descent_emulated_module *table)
    : jit(std::move(jit)), table(table) {}
EmulatedCode::EmulatedCode(EmulatedCode &&) = default;
EmulatedCode::~EmulatedCode() = default;

/// A plain x86-64-v3 where the host is that.
static orc::JITTargetMachineBuilder emulationTarget(CodeGenOptLevel level) {
  static const bool initialised = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  orc::JITTargetMachineBuilder target{Triple(sys::getProcessTriple())};
  StringMap<bool> features = sys::getHostCPUFeatures();
  bool modern = features.lookup("avx2") && features.lookup("fma") && features.lookup("f16c") &&
                features.lookup("bmi2");
  target.setCPU(modern ? "x86-64-v3" : "x86-64");
  target.setCodeGenOptLevel(level);
  target.setRelocationModel(Reloc::PIC_);
  return target;
}

/// Functions that are neither defined nor known to the engine, each with the place of a call.
static Error checkDeclarations(const Module &module, StringRef file, const AsmParserContext &lines,
                               ArrayRef<EmulatorSymbol> symbols) {
  StringSet<> known;
  for (const EmulatorSymbol &symbol : symbols)
    known.insert(symbol.name);
  std::vector<std::string> errors;
  for (const Function &function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.use_empty() ||
        known.contains(function.getName()))
      continue;
    std::string place = file.str();
    for (const User *user : function.users())
      if (auto *call = dyn_cast<CallBase>(user))
        if (auto range = lines.getInstructionLocation(call)) {
          place += ":" + utostr(range->Start.Line + 1) + ":" + utostr(range->Start.Col + 1);
          break;
        }
    errors.push_back(place + ": error: @" + function.getName().str() +
                     " is called, but neither defined in the file nor known to the emulator; link "
                     "the module that defines it (llvm-link)");
  }
  return errors.empty() ? Error::success() : createStringError(join(errors, "\n"));
}

Expected<EmulatedCode> EmulatedCode::load(StringRef file, ArrayRef<EmulatorSymbol> symbols) {
  auto context = std::make_unique<LLVMContext>();
  SMDiagnostic diagnostic;
  AsmParserContext lines;
  std::unique_ptr<Module> module = parseIRFile(file, diagnostic, *context, {}, &lines);
  if (!module) {
    std::string message;
    raw_string_ostream stream(message);
    diagnostic.print(nullptr, stream, /*ShowColors=*/false);
    return createStringError(StringRef(message).rtrim());
  }
  std::string problem;
  raw_string_ostream problems(problem);
  if (verifyModule(*module, &problems))
    return createStringError(file + ": error: the module is not valid LLVM IR: " + problem);
  const Triple &triple = module->getTargetTriple();
  if (!triple.str().empty() && !triple.isNVPTX())
    return createStringError(file + ": error: the module is for " + triple.str() +
                             ", not for nvptx64; give the device's code (clang: "
                             "--cuda-device-only -emit-llvm)");
  if (Error error = checkDeclarations(*module, file, lines, symbols))
    return error;

  return load(std::move(context), std::move(module), file, &lines, symbols);
}

Expected<EmulatedCode> EmulatedCode::load(std::unique_ptr<LLVMContext> givenContext,
                                          std::unique_ptr<Module> givenModule, StringRef file,
                                          const AsmParserContext *lines,
                                          ArrayRef<EmulatorSymbol> symbols) {
  // The order in which parameters are destroyed is not ours to choose, and the module must go
  // before its context.
  std::unique_ptr<LLVMContext> context = std::move(givenContext);
  std::unique_ptr<Module> module = std::move(givenModule);
  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(emulationTarget(CodeGenOptLevel::None))
                 .create();
  if (!jit)
    return jit.takeError();
  module->setTargetTriple((*jit)->getTargetTriple());
  module->setDataLayout((*jit)->getDataLayout());
  if (Error error = retargetToHost(*module, file, lines))
    return error;
  std::string problem;
  raw_string_ostream problems(problem);
  if (verifyModule(*module, &problems))
    return createStringError(file +
                             ": internal error: the retargeted module is not valid: " + problem);

  orc::SymbolMap map;
  for (const EmulatorSymbol &symbol : symbols)
    map[(*jit)->mangleAndIntern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                                 JITSymbolFlags::Exported};
  orc::JITDylib &library = (*jit)->getMainJITDylib();
  if (Error error = library.define(orc::absoluteSymbols(std::move(map))))
    return error;
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process)); // libm
  if (Error error =
          (*jit)->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  auto table = (*jit)->lookup(DESCENT_EMULATED_MODULE_SYMBOL);
  if (!table)
    return table.takeError();
  return EmulatedCode(std::move(*jit), table->toPtr<const descent_emulated_module *>());
}

Expected<SmallVector<char, 0>> compileEmulated(Module &module, StringRef file) {
  auto machine = emulationTarget(CodeGenOptLevel::Less).createTargetMachine();
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  if (Error error = retargetToHost(module, file, nullptr))
    return error;
  std::string problem;
  raw_string_ostream problems(problem);
  if (verifyModule(module, &problems))
    return createStringError("internal error: the retargeted module is not valid: " + problem);
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("LLVM cannot write object files for this machine");
  passes.run(module);
  return object;
}

} // namespace descent
