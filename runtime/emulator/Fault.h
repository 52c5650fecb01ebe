//===- Fault.h - What the emulator found wrong ----------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_FAULT_H
#define DESCENT_RUNTIME_EMULATOR_FAULT_H

#include <cstdint>
#include <string>

namespace descent::emulator {

/// The checks. All are on unless an option turns them off; those marked * end a launch whatever the
/// options say, since there is no sensible way to go on.
enum class Check : uint32_t {
  OutOfBounds,   ///< * an access that is not inside one live allocation or variable
  UseAfterFree,  ///< *
  HostPointer,   ///< * an address that is none of the device
  Misaligned,    ///< less aligned than the instruction says
  ReadOnly,      ///< * a write to constant memory or to a kernel's parameters
  Uninitialised, ///< a read of global, shared or local memory that nobody wrote
  Race,          ///< two unordered accesses by threads of one block
  Divergence,    ///< * threads at different barriers or warp operations, or gone
  Shuffle,       ///< a value taken from a lane that takes no part
  Deadlock,      ///< * no thread can go on
  Trap,          ///< * the kernel ended itself
  Operand,       ///< * an operand that PTX leaves undefined
};
inline constexpr uint32_t checkCount = static_cast<uint32_t>(Check::Operand) + 1;

/// "race": the name of a check in messages and options.
const char *checkName(Check check);
/// Whether an option may turn it off.
bool isOptional(Check check);

/// The first thing that a launch did wrong. `message` is complete, of several lines: what, where,
/// which memory, what would make it right.
struct Fault {
  Check check;
  std::string message;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_FAULT_H
