//===- Schedules.cpp - Learning rates in nn ops ---------------------------===//
//
// The number of the update arrives as a rank-0 tensor; f32 counts exactly to 2^24 updates.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/Train.h"

#include <numbers>

using namespace mlir;
using namespace descent;
using namespace descent::train;

/// Update s of the first `warmup` has rate * s / warmup; later ones have `after`.
static Value withWarmup(ScalarMath &m, double rate, int64_t warmup, Value count, Value after) {
  if (warmup <= 0)
    return after;
  Value rising = m.mul(count, m.constant(rate / static_cast<double>(warmup)));
  Value warming =
      m.compare(nn::ComparePredicate::le, count, m.constant(static_cast<double>(warmup)));
  return m.where(warming, rising, after);
}

/// How far update `count` is between the end of warm-up (0) and `steps` (1), held at 1 afterwards.
static Value progress(ScalarMath &m, int64_t warmup, int64_t steps, Value count) {
  double span = static_cast<double>(std::max<int64_t>(1, steps - warmup));
  Value done = m.mul(m.sub(count, m.constant(static_cast<double>(warmup))), m.constant(1.0 / span));
  return m.min(done, m.constant(1.0));
}

Value ConstantScheduleAttr::buildRate(OpBuilder &builder, Location loc, Value count) const {
  ScalarMath m(builder, loc);
  return withWarmup(m, getRate(), getWarmup(), count, m.constant(getRate()));
}

Value LinearScheduleAttr::buildRate(OpBuilder &builder, Location loc, Value count) const {
  ScalarMath m(builder, loc);
  Value fall =
      m.mul(progress(m, getWarmup(), getSteps(), count), m.constant(getRate() - getMinRate()));
  return withWarmup(m, getRate(), getWarmup(), count, m.sub(m.constant(getRate()), fall));
}

Value CosineScheduleAttr::buildRate(OpBuilder &builder, Location loc, Value count) const {
  ScalarMath m(builder, loc);
  Value angle = m.mul(progress(m, getWarmup(), getSteps(), count), m.constant(std::numbers::pi));
  Value share = m.mul(m.add(m.cos(angle), m.constant(1.0)), m.constant(0.5));
  Value rate = m.add(m.mul(share, m.constant(getRate() - getMinRate())), m.constant(getMinRate()));
  return withWarmup(m, getRate(), getWarmup(), count, rate);
}
