//===- Philox.cpp - Counter-based random numbers --------------------------------------------===//
//
// The loops are parallel because drawing ten million normals on one thread takes as long as the
// first training step.
//
//===----------------------------------------------------------------------------------------===//
#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace descent;

// Multipliers and key increments of the paper's Philox 4x32; the increments are the golden ratio
// and sqrt(3) - 1, times 2^32.
static constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
static constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;

PhiloxWords descent::philox(PhiloxWords c, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = static_cast<uint64_t>(multiplier0) * c[0];
    uint64_t p1 = static_cast<uint64_t>(multiplier1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += weyl0;
    k1 += weyl1;
  }
  return c;
}

uint64_t descent::fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// Calls make(words, values) for each block of four elements, from the one at `first` on, and
/// stores what it returns.
template <typename MakeValues>
static void fillBlocks(float *data, int64_t count, uint64_t seed, std::string_view name,
                       int64_t first, MakeValues makeValues) {
  uint64_t hash = fnv1a(name);
  int64_t blocks = (count + 3) / 4;
#pragma omp parallel for schedule(static) if (blocks > 4096)
  for (int64_t block = 0; block < blocks; ++block) {
    uint64_t counter = static_cast<uint64_t>(first / 4 + block);
    PhiloxWords words =
        philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)},
               seed);
    float values[4];
    makeValues(words, values);
    std::copy_n(values, std::min<int64_t>(4, count - 4 * block), data + 4 * block);
  }
}

void descent::fillNormal(float *data, int64_t count, uint64_t seed, std::string_view name,
                         double mean, double deviation, int64_t first) {
  fillBlocks(data, count, seed, name, first, [=](const PhiloxWords &words, float *values) {
    for (int pair = 0; pair < 4; pair += 2) {
      double radius = deviation * std::sqrt(-2.0 * std::log(unitInterval(words[pair])));
      double angle = 2.0 * M_PI * unitInterval(words[pair + 1]);
      values[pair] = static_cast<float>(mean + radius * std::cos(angle));
      values[pair + 1] = static_cast<float>(mean + radius * std::sin(angle));
    }
  });
}

void descent::fillUniform(float *data, int64_t count, uint64_t seed, std::string_view name,
                          double low, double high, int64_t first) {
  // Rounding to float may reach `high`, which the interval excludes.
  float least = static_cast<float>(low);
  float most = std::nextafter(static_cast<float>(high), -std::numeric_limits<float>::infinity());
  fillBlocks(data, count, seed, name, first, [=](const PhiloxWords &words, float *values) {
    for (int i = 0; i < 4; ++i)
      values[i] = std::max(
          least, std::min(most, static_cast<float>(low + (high - low) * unitInterval(words[i]))));
  });
}
