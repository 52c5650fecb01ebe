//===- Philox.h - Counter-based random numbers ----------------------------------------------===//
//
// Philox 4x32-10 of J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC11: four 32-bit words as a pure function of a 128-bit counter and a 64-bit key. Nothing
// here has a state, so a value does not depend on who computes it or when: initial weights are the
// same for any number of threads, and nothing of it needs to be saved.
//
//===----------------------------------------------------------------------------------------===//
#ifndef DESCENT_RUNTIME_CORE_PHILOX_H
#define DESCENT_RUNTIME_CORE_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace descent {

using PhiloxWords = std::array<uint32_t, 4>;

/// Ten rounds of Philox 4x32. `key` holds the low word of the key in its low half.
PhiloxWords philox(PhiloxWords counter, uint64_t key);

/// FNV-1a, 64 bits (Fowler, Noll, Vo): names become part of a counter.
uint64_t fnv1a(std::string_view bytes);

/// Word 0..2^32-1 to the middle of its interval of (0, 1): never 0 and never 1.
inline double unitInterval(uint32_t word) { return (word + 0.5) * 0x1p-32; }

/// Fills data[0, count) with normal values, keyed by (seed, name, element). Elements 4k .. 4k+3
/// come from counter (k, name's hash); each pair of words gives two values by Box and Muller's
/// transform in double precision. data[0] is element `first` of the name's, a multiple of four.
void fillNormal(float *data, int64_t count, uint64_t seed, std::string_view name, double mean,
                double deviation, int64_t first = 0);

/// Fills data[0, count) with values in [low, high), keyed likewise; element 4k+j is word j of
/// counter k.
void fillUniform(float *data, int64_t count, uint64_t seed, std::string_view name, double low,
                 double high, int64_t first = 0);

} // namespace descent

#endif // DESCENT_RUNTIME_CORE_PHILOX_H
