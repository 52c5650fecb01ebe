//===- Fiber.h - Threads of the device on one thread of the host ------------------------------===//
//
// A fiber is a stack and a stack pointer. Switching costs about 20 ns, against 180 ns for
// swapcontext, which asks the kernel for the signal mask; a row kernel switches twenty times a
// thread, so this decides how long a test takes.
//
//===------------------------------------------------------------------------------------------===//

#ifndef DESCENT_RUNTIME_EMULATOR_FIBER_H
#define DESCENT_RUNTIME_EMULATOR_FIBER_H

#include <cstddef>

namespace descent::emulator {

/// A stack of the host for one fiber, with a page below it that faults. Movable, reusable.
class Fiber {
public:
  Fiber() = default;
  Fiber(Fiber &&other) noexcept : stack(other.stack), pointer(other.pointer) {
    other.stack = nullptr;
  }
  Fiber &operator=(Fiber &&) = delete;
  ~Fiber();

  /// The next switch to this fiber calls `body`, which must never return. `stagger` moves the top:
  /// stacks begin at page boundaries, and without it all their tops share a few cache sets.
  void prepare(void (*body)(), unsigned stagger);

  /// Leaves the running code, whose stack pointer goes to `*save`, for this fiber.
  void resume(void **save);

  /// Leaves this fiber for the code whose stack pointer is `to`.
  void leave(void *to);

  void *&saved() { return pointer; }

private:
  char *stack = nullptr;
  void *pointer = nullptr;
};

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_FIBER_H
