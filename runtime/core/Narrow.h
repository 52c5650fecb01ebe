//===- Narrow.h - Element types narrower than float -----------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_NARROW_H
#define DESCENT_RUNTIME_CORE_NARROW_H

#include <cstdint>

namespace descent {

/// All values of the narrow types are floats, so these are exact.
float halfToFloat(uint16_t half);
float brainToFloat(uint16_t brain);

/// Rounds to nearest, ties to even; what is beyond the largest finite value becomes infinite, NaN
/// stays NaN.
uint16_t floatToBrain(float value);

/// Position of the first of `count` elements that is infinite or NaN, or -1; for types other than
/// floats always -1. `dtype` is an enum descent_dtype.
int64_t findNonfinite(const void *data, int32_t dtype, int64_t count);

/// The element at `position` of a float type, as a float.
float floatAt(const void *data, int32_t dtype, int64_t position);

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_NARROW_H
