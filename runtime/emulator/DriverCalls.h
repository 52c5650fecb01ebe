//===- DriverCalls.h - The functions behind the emulated driver's table ---------------------===//
//
// Each is called under the lock, with the arguments of CUDA's function; it throws Refusal where
// CUDA's function fails. DriverTable.cpp wraps them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_EMULATOR_DRIVERCALLS_H
#define DESCENT_RUNTIME_EMULATOR_DRIVERCALLS_H

#include "runtime/emulator/DriverState.h"

namespace descent::emulator::calls {

using namespace cuda;

#define DESCENT_DECLARE_CALL(field, symbol, result, parameters) result field parameters;
DESCENT_CUDA_DRIVER(DESCENT_DECLARE_CALL)
DESCENT_CUDA_DRIVER_OPTIONAL(DESCENT_DECLARE_CALL)
#undef DESCENT_DECLARE_CALL

} // namespace descent::emulator::calls

namespace descent::emulator {

/// The calling thread's context; 0 none.
cuda::CUcontext currentContext();
void setContext(cuda::CUcontext context);

/// A name for CUDA's error.
const char *errorName(cuda::CUresult error);
const char *errorMeaning(cuda::CUresult error);

/// Ranges that the calling thread's next launch is limited to, which are then forgotten.
std::vector<Limit> takeLimits();

} // namespace descent::emulator

#endif // DESCENT_RUNTIME_EMULATOR_DRIVERCALLS_H
