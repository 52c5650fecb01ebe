//===- Occupancy.h - How many blocks a multiprocessor holds ---------------===//
//
// What CUDA's occupancy calculator computes, from a chip's limits and what a block takes of them.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_PASSES_CUDA_OCCUPANCY_H
#define DESCENT_PASSES_CUDA_OCCUPANCY_H

#include "passes/Cuda/CudaTarget.h"

namespace descent {

/// What a block of a device function takes.
struct BlockNeeds {
  int64_t threads = 0;
  int registers = 0;  ///< a thread, as ptxas says
  int64_t shared = 0; ///< static and dynamic shared memory, bytes
};

struct Occupancy {
  enum class Limit { None, Threads, Blocks, Registers, Shared };

  int blocks = 0;            ///< at once on a multiprocessor; 0: the function cannot be launched
  int warps = 0;             ///< of those blocks
  double share = 0.0;        ///< of the warps that a multiprocessor holds at most
  Limit limit = Limit::None; ///< what allows no further block
};

Occupancy occupancyOf(const CudaTarget &chip, const BlockNeeds &block);

/// "registers".
llvm::StringRef nameOf(Occupancy::Limit limit);

} // namespace descent

#endif // DESCENT_PASSES_CUDA_OCCUPANCY_H
