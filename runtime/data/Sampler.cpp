//===- Sampler.cpp - The order of samples ---------------------------------===//
//
// The order of an epoch is a Fisher-Yates shuffle drawn from a generator seeded with (seed, epoch)
// alone: nothing is carried from one epoch to the next, so a run resumed in epoch 7 shuffles epoch
// 7 and continues, and validation never disturbs training.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/data/Dataset.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace descent::data {

namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): full period, passes BigCrush, and two lines. Seeds that
/// differ in one bit give unrelated streams after mixing.
struct Generator {
  uint64_t state;

  static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15u); }

  /// Uniform in [0, bound) without bias: the high half of a product, redrawn in the rare case that
  /// the low half falls in the remainder (Lemire 2019).
  uint64_t below(uint64_t bound) {
    auto wide = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<uint64_t>(wide) < bound) {
      uint64_t remainder = -bound % bound;
      while (static_cast<uint64_t>(wide) < remainder)
        wide = static_cast<unsigned __int128>(next()) * bound;
    }
    return static_cast<uint64_t>(wide >> 64);
  }
};

} // namespace

Sampler::Sampler(int64_t samples, int64_t batch, uint64_t seed, bool shuffle)
    : samples(samples), batch(batch), seed(seed), shuffle(shuffle) {
  if (samples < 1)
    throw Error("the data holds " + std::to_string(samples) + " samples, at least 1 is needed");
  if (batch < 1 || batch > std::numeric_limits<int>::max())
    throw Error("batch size " + std::to_string(batch) + " is not in [1, 2147483647]");
  if (shuffle)
    order.resize(samples);
}

int64_t Sampler::batchesPerEpoch() const { return (samples - 1) / batch + 1; }

void Sampler::shuffleEpoch(int64_t epoch) {
  currentEpoch = epoch;
  std::iota(order.begin(), order.end(), int64_t(0));
  Generator generator{Generator::mix(Generator::mix(seed) + static_cast<uint64_t>(epoch))};
  for (int64_t i = samples - 1; i > 0; --i)
    std::swap(order[i], order[generator.below(i + 1)]);
}

int Sampler::fill(int64_t step, int64_t *indices) {
  int64_t epoch = step / batchesPerEpoch();
  int64_t first = step % batchesPerEpoch() * batch;
  if (shuffle && epoch != currentEpoch)
    shuffleEpoch(epoch);
  int64_t real = std::min(batch, samples - first);
  for (int64_t i = 0; i < batch; ++i) {
    int64_t position = first + std::min(i, real - 1);
    indices[i] = shuffle ? order[position] : position;
  }
  return static_cast<int>(real);
}

} // namespace descent::data
