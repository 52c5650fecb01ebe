//===- GradientRange.h - How large the gradients of a step are ------------===//

#ifndef DESCENT_COMPILER_REFERENCE_GRADIENTRANGE_H
#define DESCENT_COMPILER_REFERENCE_GRADIENTRANGE_H

#include "dialects/NN/Rounding.h"

#include <map>

namespace descent::reference {

/// What a format makes of some values at one loss scale. Exact zeros are not among them: a mask's
/// zeros are no loss.
struct RangeCount {
  double scale = 1.0;
  int64_t lost = 0;        ///< rounds to zero
  int64_t subnormal = 0;   ///< keeps fewer bits than the format has
  int64_t overflowing = 0; ///< beyond the largest finite number
};

/// Collects magnitudes of gradients as they would be without a loss scale, before any rounding, and
/// says what a narrow format loses of them. Values that are not finite are not counted.
class GradientRange {
public:
  /// `scales` are those that counts are kept for.
  GradientRange(const nn::FloatFormat &format, std::vector<double> scales);

  void add(const std::vector<double> &values, double dividedBy = 1.0);

  const nn::FloatFormat &format() const { return rounding; }
  int64_t elements() const { return total; } ///< not zero
  int64_t zeros() const { return exactZeros; }
  double largest() const { return most; }
  /// Number of elements with magnitudes in [2^e, 2^(e+1)), by e.
  const std::map<int, int64_t> &exponents() const { return histogram; }
  const std::vector<RangeCount> &counts() const { return kept; }
  double share(int64_t count) const {
    return total == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(total);
  }

  /// The largest power of two at which the largest gradient is still 2^`headroom` below the
  /// format's largest number, so that later steps may have that much larger ones; never below 1, 1
  /// if there are no gradients.
  double recommendedScale(int headroom = 4) const;

private:
  nn::FloatFormat rounding;
  std::vector<RangeCount> kept;
  std::map<int, int64_t> histogram;
  int64_t total = 0, exactZeros = 0;
  double most = 0.0;
};

} // namespace descent::reference

#endif // DESCENT_COMPILER_REFERENCE_GRADIENTRANGE_H
