//===- Emulate.h - CUDA kernels as code of the host -----------------------===//
//
// Device code (LLVM IR for nvptx64, as MLIR's gpu and nvvm dialects and clang give it) is rewritten
// so that the emulator of the runtime can run it: loads and stores ask the engine for the memory
// behind a device address, operations of warps and blocks call it. What both sides agree on is
// runtime/include/descent/emulator.h. The rewritten module is ordinary code of the host: it can be
// compiled to an object beside a program, or loaded here.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_COMPILER_TARGET_EMULATE_H
#define DESCENT_COMPILER_TARGET_EMULATE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

struct descent_emulated_module;

namespace llvm {
class AsmParserContext;
class Instruction;
class LLVMContext;
class Module;
namespace orc {
class LLJIT;
}
} // namespace llvm

namespace descent {

/// Rewrites the device module in place; it then exports DESCENT_EMULATED_MODULE_SYMBOL and needs
/// the target and data layout of the host. `lines`, if given, knows the places of instructions in
/// the text `file`. Lists everything that has no emulation, each with its name and place.
llvm::Error retargetToHost(llvm::Module &module, llvm::StringRef file,
                           const llvm::AsmParserContext *lines = nullptr);

/// A function or variable that retargeted code refers to.
struct EmulatorSymbol {
  const char *name;
  void *address;
};

/// Device code loaded into this process.
class EmulatedCode {
public:
  /// Reads, retargets and compiles a .ll or .bc file. `symbols` are the engine's.
  static llvm::Expected<EmulatedCode> load(llvm::StringRef file,
                                           llvm::ArrayRef<EmulatorSymbol> symbols);
  /// The same for a module in memory; `file` and `lines` (may be null) are as for retargetToHost.
  static llvm::Expected<EmulatedCode> load(std::unique_ptr<llvm::LLVMContext> context,
                                           std::unique_ptr<llvm::Module> module,
                                           llvm::StringRef file,
                                           const llvm::AsmParserContext *lines,
                                           llvm::ArrayRef<EmulatorSymbol> symbols);
  EmulatedCode(EmulatedCode &&);
  ~EmulatedCode();

  const descent_emulated_module &module() const { return *table; }

private:
  EmulatedCode(std::unique_ptr<llvm::orc::LLJIT> jit, const descent_emulated_module *table);
  std::unique_ptr<llvm::orc::LLJIT> jit;
  const descent_emulated_module *table;
};

/// Retargets device code and compiles it to an object that is linked beside a program. `file` is
/// for messages.
llvm::Expected<llvm::SmallVector<char, 0>> compileEmulated(llvm::Module &module,
                                                           llvm::StringRef file);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_EMULATE_H
