//===- Arena.h - The one allocation of a run ------------------------------------------------===//
//
// Everything a step touches lies in one block at addresses fixed by the compiler: parameters,
// gradients, optimizer state, inputs, transient values, and behind them one scratch area a thread.
// The block is zero-filled by the kernel page by page as it is first touched, so resident memory is
// what the plan uses, and a value that were read before it is written would at least be the same in
// every run.
//
// The rest of the process (code, libraries, stacks, tables) is resident with less than 16 MiB, so
// the peak is the arena's size, that constant, and the pages of the data file that were touched,
// which the system takes back when it needs them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_ARENA_H
#define DESCENT_RUNTIME_CORE_ARENA_H

#include "descent/abi.h"

#include <cstddef>
#include <cstdint>

namespace descent {

class Arena {
public:
  /// Reserves `memory.arena` bytes and scratch for `threads` threads. Throws Error with what was
  /// asked, what is available and what would lower the need.
  Arena(const descent_memory &memory, int threads);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  uint8_t *data() const { return base; }

  /// Private to one thread, 64-byte aligned, `thread_scratch` bytes.
  uint8_t *scratch(int thread) const { return base + scratchStart + thread * scratchStride; }

  /// Bytes of the arena with all scratch: what the plan promises as resident memory, before the
  /// constant of the process.
  uint64_t size() const { return total; }

private:
  uint8_t *base = nullptr;
  uint64_t scratchStart = 0, scratchStride = 0, total = 0;
  void *mapping = nullptr;
  size_t mappingBytes = 0;
};

/// Bytes that this process may still take: free memory of the machine or of its control group,
/// whichever is less. UINT64_MAX if the system does not say.
uint64_t availableMemory();

/// "1.50 GiB", "320 B".
struct SizeText {
  char text[32];
};
SizeText formatBytes(uint64_t bytes);

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_ARENA_H
