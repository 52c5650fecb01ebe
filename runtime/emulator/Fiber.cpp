//===- Fiber.cpp - Stacks and the switch between them -----------------------------------------===//
//
// The switch saves what the System V ABI says a call preserves, and nothing else: rounding modes
// and signal masks are the same in all fibers.
//
//===------------------------------------------------------------------------------------------===//
#include "runtime/emulator/Fiber.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the switch between fibers is written for x86-64"
#endif

asm(R"(
.text
.type descent_emulator_switch,@function
.globl descent_emulator_switch
.hidden descent_emulator_switch
descent_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size descent_emulator_switch,.-descent_emulator_switch
)");
extern "C" __attribute__((visibility("hidden"))) void descent_emulator_switch(void **save,
                                                                              void *to);

namespace descent::emulator {

// Unoptimised code has large frames; pages that are never touched cost nothing.
static constexpr size_t stackBytes = 256 << 10, guardBytes = 4096;

Fiber::~Fiber() {
  if (stack)
    munmap(stack, stackBytes);
}

void Fiber::prepare(void (*body)(), unsigned stagger) {
  if (!stack) {
    void *memory = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw Error("emulator: no stack of 256 KiB for a thread of the device: " +
                  std::string(std::strerror(errno)));
    stack = static_cast<char *>(memory);
    mprotect(stack, guardBytes, PROT_NONE);
  }
  uintptr_t top = reinterpret_cast<uintptr_t>(stack + stackBytes - 64 - (stagger % 32) * 192);
  auto *at = reinterpret_cast<void **>(top & ~uintptr_t(15));
  *--at = nullptr; // keeps the stack aligned as behind a call, and ends back traces
  *--at = reinterpret_cast<void *>(body);
  for (int saved = 0; saved < 6; ++saved)
    *--at = nullptr;
  pointer = at;
}

void Fiber::resume(void **save) { descent_emulator_switch(save, pointer); }

void Fiber::leave(void *to) { descent_emulator_switch(&pointer, to); }

} // namespace descent::emulator
