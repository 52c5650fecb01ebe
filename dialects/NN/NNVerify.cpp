//===- NNVerify.cpp - Rules that are not about result types ---------------===//
//
// Shapes and element types are checked by inference (NNInfer*.cpp), which the verifier runs as
// well. What is left are values of attributes and operands that belong together.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNInfer.h"

#include <cmath>

using namespace mlir;
using namespace descent;
using namespace descent::nn;

LogicalResult ParameterOp::verify() {
  auto type = getValue().getType();
  if (getName().empty()) // C1
    return emitOpError("needs a name; it is how recipes, checkpoints and messages call it");
  if (!type.hasStaticShape()) // C2
    return emitOpError() << "'" << getName() << "' is " << type
                         << "; a parameter's sizes must be known: it does not depend on the batch";
  if (type.getNumElements() == 0) // C2
    return emitOpError() << "'" << getName() << "' is " << type << ", which holds no elements";
  auto finite = [&](double value) { return std::isfinite(value); };
  if (auto constant = dyn_cast<ConstantInitAttr>(getInit())) {
    if (!finite(constant.getValue())) // C3
      return emitOpError() << "'" << getName() << "' starts as " << constant.getValue()
                           << "; initial values must be finite";
  } else if (auto normal = dyn_cast<NormalInitAttr>(getInit())) {
    if (!finite(normal.getMean()) || !finite(normal.getDeviation()) ||
        !(normal.getDeviation() >= 0)) // C3
      return emitOpError() << "'" << getName() << "' has mean " << normal.getMean()
                           << " and standard deviation " << normal.getDeviation()
                           << "; both must be finite and the deviation not negative";
  } else if (auto uniform = dyn_cast<UniformInitAttr>(getInit())) {
    if (!finite(uniform.getLow()) || !finite(uniform.getHigh()) ||
        !(uniform.getLow() <= uniform.getHigh())) // C3
      return emitOpError() << "'" << getName() << "' is uniform in [" << uniform.getLow() << ", "
                           << uniform.getHigh() << "); the bounds must be finite and in order";
  }
  return success();
}

LogicalResult RandomOp::verify() {
  int64_t id = getId();
  if (id < 0) // C2
    return emitOpError() << "id " << id << "; ids tell the random tensors of a step apart and are "
                         << "not negative";
  return success();
}

LogicalResult LayerNormOp::verify() {
  double epsilon = getEpsilon().convertToDouble();
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) // C4
    return emitOpError() << "epsilon " << epsilon << "; it must be finite and not negative";
  return success();
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1)) // C1
    return emitOpError() << "rate " << rate
                         << "; it is the share of elements that are dropped, in [0, 1)";
  if (bool(getRng()) != getId().has_value()) // C2
    return emitOpError() << (getRng() ? "has rng but no id" : "has an id but no rng")
                         << "; attach-row-weights adds both, a model file has neither";
  if (getId() && static_cast<int64_t>(*getId()) < 0) // C3
    return emitOpError() << "id " << static_cast<int64_t>(*getId()) << "; ids are not negative";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  double smoothing = getLabelSmoothing().convertToDouble();
  if (!(smoothing >= 0 && smoothing <= 1)) // C5
    return emitOpError() << "label_smoothing " << smoothing
                         << "; it is the share taken from the target class, in [0, 1]";
  return success();
}
