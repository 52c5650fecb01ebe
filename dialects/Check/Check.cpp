//===- Check.cpp - Execution tests as programs ----------------------------===//

#include "dialects/Check/Check.h"
#include "mlir/IR/DialectImplementation.h"

#include <cmath>

using namespace mlir;
using namespace descent;
using namespace descent::check;
using reference::Tensor;

#include "dialects/Check/CheckDialect.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Check/CheckOps.cpp.inc"

void CheckDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Check/CheckOps.cpp.inc"
      >();
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
static uint64_t splitMix(uint64_t state) {
  state += 0x9E3779B97F4A7C15;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

Tensor check::randomTensor(RankedTensorType type, uint64_t seed, double low, double high) {
  Tensor result(type.getShape().vec());
  uint64_t state = splitMix(seed);
  for (double &value : result.values) {
    state = splitMix(state);
    double unit = static_cast<double>(state >> 11) * 0x1p-53;
    value = low + (high - low) * unit;
    if (type.getElementType().isInteger(1))
      value = static_cast<double>(state >> 63);
    else if (!isa<FloatType>(type.getElementType()))
      value = std::floor(value);
    else // what every float type of a test can hold: compiled code starts from the same numbers
      value =
          static_cast<double>(static_cast<float>(std::ldexp(std::round(std::ldexp(value, 6)), -6)));
  }
  return result;
}

int64_t check::firstDifference(const Tensor &actual, const Tensor &expected, double tolerance) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    double a = actual.values[i], e = expected.values[i];
    bool close = a == e || (std::isnan(a) && std::isnan(e)) ||
                 std::fabs(a - e) <= tolerance * std::max(1.0, std::fabs(e));
    // An infinite expectation has an infinite allowance.
    if (!close || (std::isinf(e) && a != e))
      return i;
  }
  return -1;
}

LogicalResult RandomInputOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(randomTensor(cast<RankedTensorType>(getY().getType()),
                                 static_cast<uint64_t>(getSeed()), getLow().convertToDouble(),
                                 getHigh().convertToDouble()));
  return success();
}

LogicalResult ExpectCloseOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  double tolerance = getTolerance().convertToDouble();
  int64_t position = firstDifference(operands[0], operands[1], tolerance);
  if (position < 0)
    return success();
  return emitOpError() << "element " << position << " is " << operands[0].values[position]
                       << " and should be " << operands[1].values[position] << " within "
                       << tolerance;
}
