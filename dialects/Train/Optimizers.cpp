//===- Optimizers.cpp - Update rules in nn ops ----------------------------===//
//
// Each rule is written on whole tensors of one shape; fusion makes one flat kernel of it. Scalars
// that depend on the count of updates are rank-0 tensors, so that the schedule and the bias
// corrections are computed by compiled code.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScalarMath.h"
#include "dialects/Train/Train.h"

#include <cmath>

using namespace mlir;
using namespace descent;
using namespace descent::train;

SmallVector<StringRef> SgdAttr::getStateNames() const {
  return getMomentum() == 0.0 ? SmallVector<StringRef>{} : SmallVector<StringRef>{"momentum"};
}

SmallVector<Value> SgdAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter,
                                        Value gradient, ValueRange states, Value rate, Value count,
                                        double weightDecay) const {
  ScalarMath m(builder, loc);
  if (weightDecay != 0.0)
    gradient = m.add(gradient, m.mul(parameter, m.constant(weightDecay)));
  SmallVector<Value> results;
  if (!states.empty()) {
    Value velocity = m.add(m.mul(states[0], m.constant(getMomentum())), gradient);
    gradient =
        getNesterov() ? m.add(gradient, m.mul(velocity, m.constant(getMomentum()))) : velocity;
    results.push_back(velocity);
  }
  results.insert(results.begin(), m.sub(parameter, m.mul(gradient, rate)));
  return results;
}

SmallVector<StringRef> AdamAttr::getStateNames() const { return {"m", "v"}; }

/// 1 - beta^t without cancellation: with x = t ln(beta) / 2 and T = tanh(x), 1 - exp(2x) = -2T / (1
/// - T). Computing beta^t in f32 and subtracting from one would lose five digits at t = 1 for beta
/// = 0.999.
static Value biasCorrection(ScalarMath &m, double beta, Value count) {
  Value t = m.tanh(m.mul(count, m.constant(0.5 * std::log(beta))));
  return m.div(m.mul(t, m.constant(-2.0)), m.sub(m.constant(1.0), t));
}

SmallVector<Value> AdamAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter,
                                         Value gradient, ValueRange states, Value rate, Value count,
                                         double weightDecay) const {
  ScalarMath m(builder, loc);
  if (weightDecay != 0.0 && !getDecoupled())
    gradient = m.add(gradient, m.mul(parameter, m.constant(weightDecay)));
  Value first = m.add(m.mul(states[0], m.constant(getBeta1())),
                      m.mul(gradient, m.constant(1.0 - getBeta1())));
  Value second = m.add(m.mul(states[1], m.constant(getBeta2())),
                       m.mul(m.mul(gradient, gradient), m.constant(1.0 - getBeta2())));
  // The corrections are folded into scalars, so that each element costs one square root and one
  // division.
  Value step = m.div(rate, biasCorrection(m, getBeta1(), count));
  Value root = m.rsqrt(biasCorrection(m, getBeta2(), count));
  Value denominator = m.add(m.mul(m.sqrt(second), root), m.constant(getEpsilon()));
  if (weightDecay != 0.0 && getDecoupled())
    parameter = m.mul(parameter, m.sub(m.constant(1.0), m.mul(rate, m.constant(weightDecay))));
  Value updated = m.sub(parameter, m.div(m.mul(first, step), denominator));
  return {updated, first, second};
}
