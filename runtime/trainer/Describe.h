//===- Describe.h - What is inside a training binary ----------------------------------------===//
#ifndef DESCENT_RUNTIME_TRAINER_DESCRIBE_H
#define DESCENT_RUNTIME_TRAINER_DESCRIBE_H

#include "runtime/core/Backend.h"

#include "descent/abi.h"

#include <string>

namespace descent {

/// The program's tables for people: parameters with their groups, inputs, memory, kernels, recipe.
std::string describeText(const descent_program &program);

/// The same as one JSON object.
std::string describeJson(const descent_program &program);

/// "cuda:sm_90 (cubin sm_90, PTX sm_90)", or the CPU with the extensions it needs.
std::string targetText(const descent_program &program);

/// The table of --profile: calls, time, share, GFLOP/s and GB/s of every kernel that ran, the
/// slowest first. `seconds` is the time of the loop; what no kernel accounts for is listed last.
std::string profileText(const descent_program &program, std::span<const KernelTime> times,
                        double seconds);

} // namespace descent

#endif // DESCENT_RUNTIME_TRAINER_DESCRIBE_H
