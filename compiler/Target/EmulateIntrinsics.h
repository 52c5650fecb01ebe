//===- EmulateIntrinsics.h - What an llvm.nvvm intrinsic becomes ----------===//

#ifndef DESCENT_COMPILER_TARGET_EMULATEINTRINSICS_H
#define DESCENT_COMPILER_TARGET_EMULATEINTRINSICS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace descent {

/// How a call of an intrinsic is rewritten.
struct EmulatedIntrinsic {
  enum Kind {
    Nothing,  ///< no effect here: a fence, a prefetch
    Value,    ///< the result is `value`
    Register, ///< special register number `value`
    Space,    ///< whether an address lies in address space `value`
    Slots,    ///< operands and results go through slots
    Direct    ///< a function of a code and up to three operands, missing ones being zero
  } kind;
  /// Of descent/emulator.h, without its prefix.
  llvm::StringRef entry = "";
  uint64_t value = 0;

  /// Slots and Direct: a constant, or an operand of the call.
  struct Input {
    bool operand;
    uint64_t value;
  };
  llvm::SmallVector<Input, 4> inputs = {};
  bool allOperands = false; ///< all operands follow `inputs`
};

/// The rewriting of llvm.nvvm.NAME; nothing if there is none.
std::optional<EmulatedIntrinsic> emulatedIntrinsic(llvm::StringRef name);

} // namespace descent

#endif // DESCENT_COMPILER_TARGET_EMULATEINTRINSICS_H
