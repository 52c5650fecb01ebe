//===- NNReferenceRows.cpp - Reductions, rows and losses in double precision -----===//

#include "dialects/NN/NNGraph.h"
#include "dialects/NN/NNReference.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace descent;
using namespace descent::nn;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Folds every element of x into the element of y it is reduced to.
template <typename Combine>
static Tensor reduceElements(Operation *op, const Tensor &x, ArrayRef<int64_t> axesAttr,
                             double initial, Combine combine) {
  SmallVector<int64_t> axes = normaliseAxes(axesAttr, x.rank());
  std::vector<int64_t> kept = x.shape;
  for (int64_t axis : axes)
    kept[axis] = 1;
  Tensor y(kept, initial);
  int64_t i = 0;
  for (Positions position(x.shape); !position.done(); position.next(), ++i) {
    double &target = y.values[broadcastOffset(y, position.get())];
    target = combine(target, x.values[i]);
  }
  y.shape = referenceShape(op->getResult(0));
  return y;
}

LogicalResult ReduceSumOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(reduceElements(*this, operands[0], getAxes(), 0.0,
                                   [](double sum, double x) { return sum + x; }));
  return success();
}

LogicalResult ReduceMeanOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y = reduceElements(*this, operands[0], getAxes(), 0.0,
                            [](double sum, double x) { return sum + x; });
  double count = static_cast<double>(operands[0].size()) / static_cast<double>(y.size());
  for (double &value : y.values)
    value /= count;
  results.push_back(std::move(y));
  return success();
}

LogicalResult ReduceMaxOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(reduceElements(*this, operands[0], getAxes(),
                                   -std::numeric_limits<double>::infinity(),
                                   [](double max, double x) {
                                     if (std::isnan(max) || std::isnan(x))
                                       return std::numeric_limits<double>::quiet_NaN();
                                     return std::max(max, x);
                                   }));
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// log softmax of `count` values `stride` apart.
static void logSoftmax(const double *x, double *y, int64_t count, int64_t stride) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (int64_t i = 0; i < count; ++i)
    max = std::max(max, x[i * stride]);
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(x[i * stride] - max);
  for (int64_t i = 0; i < count; ++i)
    y[i * stride] = x[i * stride] - max - std::log(sum);
}

static Tensor logSoftmaxAlong(const Tensor &x, int64_t axis) {
  axis = normaliseAxis(axis, x.rank());
  Tensor y(x.shape);
  int64_t stride = 1;
  for (int64_t i = axis + 1; i < x.rank(); ++i)
    stride *= x.shape[i];
  int64_t count = x.shape[axis];
  for (int64_t start = 0; start < x.size(); start += count * stride)
    for (int64_t i = 0; i < stride; ++i)
      logSoftmax(&x.values[start + i], &y.values[start + i], count, stride);
  return y;
}

LogicalResult LogSoftmaxOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(logSoftmaxAlong(operands[0], static_cast<int64_t>(getAxis())));
  return success();
}

LogicalResult SoftmaxOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y = logSoftmaxAlong(operands[0], static_cast<int64_t>(getAxis()));
  for (double &value : y.values)
    value = std::exp(value);
  results.push_back(std::move(y));
  return success();
}

LogicalResult LayerNormOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0], &gain = operands[1], &bias = operands[2];
  Tensor y(x.shape);
  int64_t columns = x.shape.back();
  for (int64_t start = 0; start < x.size(); start += columns) {
    double mean = 0.0, variance = 0.0;
    for (int64_t c = 0; c < columns; ++c)
      mean += x.values[start + c] / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c)
      variance += std::pow(x.values[start + c] - mean, 2) / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c) {
      double normalised =
          (x.values[start + c] - mean) / std::sqrt(variance + getEpsilon().convertToDouble());
      // gain and bias are [C], or broadcast to it.
      y.values[start + c] = normalised * gain.values[gain.size() == 1 ? 0 : c] +
                            bias.values[bias.size() == 1 ? 0 : c];
    }
  }
  results.push_back(std::move(y));
  return success();
}

LogicalResult DropoutOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  double rate = getRate().convertToDouble();
  if (!getRng() || rate == 0.0) {
    results.push_back(operands[0]);
    return success();
  }
  // The mask is that of an nn.random of the same key.
  OpBuilder builder(getContext());
  OwningOpRef<RandomOp> random =
      RandomOp::create(builder, getLoc(), getRng(), referenceShape(getX()), getId().value_or(0));
  SmallVector<Tensor> mask;
  if (failed(random->evaluate({operands[1]}, mask)))
    return failure();
  Tensor y(operands[0].shape);
  for (int64_t i = 0; i < y.size(); ++i)
    if (mask[0].values[i] >= rate)
      y.values[i] = operands[0].values[i] * dropoutScale(*this);
  results.push_back(std::move(y));
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::evaluate(ArrayRef<Tensor> operands,
                                       SmallVectorImpl<Tensor> &results) {
  const Tensor &logits = operands[0], &targets = operands[1];
  const Tensor *classWeights = getClassWeights() ? &operands[2] : nullptr;
  const Tensor *rowWeights = getRowWeights() ? &operands.back() : nullptr;
  int64_t classes = logits.shape.back();
  double smoothing = getLabelSmoothing().convertToDouble();
  auto ignored = static_cast<int64_t>(getIgnoreIndex());

  Tensor logProbabilities = logSoftmaxAlong(logits, logits.rank() - 1);
  double sum = 0.0, weight = 0.0;
  for (int64_t row = 0; row < targets.size(); ++row) {
    auto target = static_cast<int64_t>(targets.values[row]);
    // Rows of one batch element share its weight.
    double rowWeight =
        rowWeights ? rowWeights->values[row / (targets.size() / rowWeights->size())] : 1.0;
    if (target == ignored)
      continue;
    if (target < 0 || target >= classes)
      return emitOpError() << "target " << target << " of row " << row
                           << " is not a class: classes are 0 to " << classes - 1
                           << ", and ignore_index is " << ignored;
    if (rowWeight == 0.0)
      continue;
    auto weightOf = [&](int64_t c) { return classWeights ? classWeights->values[c] : 1.0; };
    const double *logP = &logProbabilities.values[row * classes];
    if (smoothing != 1.0 && weightOf(target) != 0.0)
      sum += rowWeight * (1.0 - smoothing) * weightOf(target) * -logP[target];
    for (int64_t c = 0; c < classes; ++c)
      if (smoothing != 0.0 && weightOf(c) != 0.0)
        sum += rowWeight * smoothing / static_cast<double>(classes) * weightOf(c) * -logP[c];
    weight += rowWeight * weightOf(target);
  }
  results.push_back(Tensor({}, sum));
  results.push_back(Tensor({}, weight));
  return success();
}

LogicalResult MseOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &predictions = operands[0], &targets = operands[1];
  double sum = 0.0, weight = 0.0;
  for (int64_t i = 0; i < predictions.size(); ++i) {
    double rowWeight =
        getRowWeights() ? operands[2].values[i / (predictions.size() / operands[2].size())] : 1.0;
    if (rowWeight == 0.0)
      continue;
    sum += rowWeight * std::pow(predictions.values[i] - targets.values[i], 2);
    weight += rowWeight;
  }
  results.push_back(Tensor({}, sum));
  results.push_back(Tensor({}, weight));
  return success();
}
