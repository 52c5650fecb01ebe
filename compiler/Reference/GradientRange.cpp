//===- GradientRange.cpp - How large the gradients of a step are ----------===//
//
// Counts at the given scales round every value, so that they hold for any scale; the histogram
// keeps exponents only, which is all that moving by a power of two needs.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/GradientRange.h"

#include <cmath>

using namespace descent;
using namespace descent::reference;

GradientRange::GradientRange(const nn::FloatFormat &format, std::vector<double> scales)
    : rounding(format) {
  for (double scale : scales)
    kept.push_back({scale});
}

void GradientRange::add(const std::vector<double> &values, double dividedBy) {
  double leastNormal = rounding.leastNormal();
  for (double value : values) {
    double magnitude = std::fabs(value) / dividedBy;
    if (!std::isfinite(magnitude))
      continue;
    if (magnitude == 0.0) {
      ++exactZeros;
      continue;
    }
    ++total;
    ++histogram[std::ilogb(magnitude)];
    most = std::max(most, magnitude);
    for (RangeCount &count : kept) {
      double rounded = nn::roundToFormat(magnitude * count.scale, rounding);
      if (rounded == 0.0)
        ++count.lost;
      else if (rounded < leastNormal)
        ++count.subnormal;
      else if (!(rounded <= rounding.largest))
        ++count.overflowing;
    }
  }
}

double GradientRange::recommendedScale(int headroom) const {
  if (most == 0.0)
    return 1.0;
  int exponent = std::ilogb(rounding.largest / most) - headroom;
  return std::ldexp(1.0, std::max(0, exponent));
}
