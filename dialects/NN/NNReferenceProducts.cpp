//===- NNReferenceProducts.cpp - Products, pooling, lookups in double precision -----===//
//
// Loops over the definition of each op, nothing blocked or reordered.
//
//===----------------------------------------------------------------------===//

#include "dialects/NN/NNGraph.h"
#include "dialects/NN/NNReference.h"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

using namespace mlir;
using namespace descent;
using namespace descent::nn;
using reference::Tensor;

/// [columns, rows] as [rows, columns].
static std::vector<double> transposed(const double *x, int64_t rows, int64_t columns) {
  std::vector<double> y(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y[r * columns + c] = x[c * rows + r];
  return y;
}

LogicalResult MatmulOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &a = operands[0], &b = operands[1];
  Tensor y(referenceShape(getY()));
  int64_t m = y.shape[y.rank() - 2], n = y.shape[y.rank() - 1];
  int64_t k = a.shape[a.rank() - (getTransposeA() ? 2 : 1)];
  std::vector<int64_t> batch(y.shape.begin(), y.shape.end() - 2);
  auto matrixOf = [](const Tensor &x, const std::vector<int64_t> &position) {
    Tensor batches(std::vector<int64_t>(x.shape.begin(), x.shape.end() - 2));
    return &x.values[broadcastOffset(batches, position) * x.shape[x.rank() - 2] *
                     x.shape[x.rank() - 1]];
  };
  // Each element sums its products in the order of k; rows of b are walked side by side, since
  // columns would miss the cache at every step.
  double *row = y.values.data();
  std::vector<double> aCopy, bCopy;
  for (Positions position(batch); !position.done(); position.next()) {
    const double *aMatrix = matrixOf(a, position.get()), *bMatrix = matrixOf(b, position.get());
    if (getTransposeA())
      aMatrix = (aCopy = transposed(aMatrix, m, k)).data();
    if (getTransposeB())
      bMatrix = (bCopy = transposed(bMatrix, k, n)).data();
    for (int64_t i = 0; i < m; ++i, row += n)
      for (int64_t l = 0; l < k; ++l) {
        double factor = aMatrix[i * k + l];
        const double *line = bMatrix + l * n;
        for (int64_t j = 0; j < n; ++j)
          row[j] += factor * line[j];
      }
  }
  results.push_back(std::move(y));
  return success();
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// Calls visit(offset in x, offset in w, offset in y) for every product of a convolution of x [N,
/// H, W, IC] with w [KH, KW, IC, OC] to y [N, OH, OW, OC]. The three ops differ only in which of
/// the three tensors they add into.
template <typename Visit>
static void forEachProduct(ArrayRef<int64_t> x, ArrayRef<int64_t> w, ArrayRef<int64_t> y,
                           ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                           ArrayRef<int64_t> dilations, Visit visit) {
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t oh = 0; oh < y[1]; ++oh)
      for (int64_t ow = 0; ow < y[2]; ++ow)
        for (int64_t kh = 0; kh < w[0]; ++kh)
          for (int64_t kw = 0; kw < w[1]; ++kw) {
            int64_t h = oh * strides[0] - padding[0] + kh * dilations[0];
            int64_t v = ow * strides[1] - padding[2] + kw * dilations[1];
            if (h < 0 || h >= x[1] || v < 0 || v >= x[2])
              continue;
            for (int64_t ic = 0; ic < w[2]; ++ic)
              for (int64_t oc = 0; oc < w[3]; ++oc)
                visit(((n * x[1] + h) * x[2] + v) * x[3] + ic,
                      ((kh * w[1] + kw) * w[2] + ic) * w[3] + oc,
                      ((n * y[1] + oh) * y[2] + ow) * y[3] + oc);
          }
}

LogicalResult Conv2DOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0], &w = operands[1];
  Tensor y(referenceShape(getY()));
  forEachProduct(
      x.shape, w.shape, y.shape, getStrides(), getPadding(), getDilations(),
      [&](int64_t i, int64_t j, int64_t o) { y.values[o] += x.values[i] * w.values[j]; });
  results.push_back(std::move(y));
  return success();
}

LogicalResult Conv2DGradInputOp::evaluate(ArrayRef<Tensor> operands,
                                          SmallVectorImpl<Tensor> &results) {
  const Tensor &dy = operands[0], &w = operands[1];
  Tensor dx(referenceShape(getDx()));
  forEachProduct(
      dx.shape, w.shape, dy.shape, getStrides(), getPadding(), getDilations(),
      [&](int64_t i, int64_t j, int64_t o) { dx.values[i] += dy.values[o] * w.values[j]; });
  results.push_back(std::move(dx));
  return success();
}

LogicalResult Conv2DGradWeightOp::evaluate(ArrayRef<Tensor> operands,
                                           SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0], &dy = operands[1];
  Tensor dw(referenceShape(getDw()));
  forEachProduct(
      x.shape, dw.shape, dy.shape, getStrides(), getPadding(), getDilations(),
      [&](int64_t i, int64_t j, int64_t o) { dw.values[j] += dy.values[o] * x.values[i]; });
  results.push_back(std::move(dw));
  return success();
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// Offset of the first maximum of each window, by output element; a NaN counts as the largest; -1
/// where the window holds padding only.
static std::vector<int64_t> firstMaxima(const Tensor &x, ArrayRef<int64_t> y,
                                        ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                        ArrayRef<int64_t> padding) {
  std::vector<int64_t> offsets;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t oh = 0; oh < y[1]; ++oh)
      for (int64_t ow = 0; ow < y[2]; ++ow)
        for (int64_t c = 0; c < y[3]; ++c) {
          int64_t best = -1;
          for (int64_t kh = 0; kh < kernel[0]; ++kh)
            for (int64_t kw = 0; kw < kernel[1]; ++kw) {
              int64_t h = oh * strides[0] - padding[0] + kh, w = ow * strides[1] - padding[2] + kw;
              if (h < 0 || h >= x.shape[1] || w < 0 || w >= x.shape[2])
                continue;
              int64_t offset = ((n * x.shape[1] + h) * x.shape[2] + w) * x.shape[3] + c;
              if (best >= 0 && std::isnan(x.values[best]))
                continue;
              if (best < 0 || x.values[offset] > x.values[best] || std::isnan(x.values[offset]))
                best = offset;
            }
          offsets.push_back(best);
        }
  return offsets;
}

LogicalResult MaxPool2DOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor y(referenceShape(getY()));
  std::vector<int64_t> from =
      firstMaxima(operands[0], y.shape, getKernel(), getStrides(), getPadding());
  for (int64_t i = 0; i < y.size(); ++i)
    y.values[i] =
        from[i] < 0 ? -std::numeric_limits<double>::infinity() : operands[0].values[from[i]];
  results.push_back(std::move(y));
  return success();
}

LogicalResult MaxPool2DGradOp::evaluate(ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  const Tensor &dy = operands[0], &x = operands[1];
  Tensor dx(x.shape);
  std::vector<int64_t> to = firstMaxima(x, dy.shape, getKernel(), getStrides(), getPadding());
  for (int64_t i = 0; i < dy.size(); ++i)
    if (to[i] >= 0)
      dx.values[to[i]] += dy.values[i];
  results.push_back(std::move(dx));
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

/// The row an index means; negative ones count from the end. Empty after an error.
static std::optional<int64_t> rowOf(Operation *op, const Tensor &indices, int64_t position,
                                    int64_t rows) {
  auto index = static_cast<int64_t>(indices.values[position]);
  if (index >= -rows && index < rows)
    return index < 0 ? index + rows : index;
  op->emitOpError() << "index " << index << " at position " << position
                    << " is outside the table: its rows are 0 to " << rows - 1 << " (or -" << rows
                    << " to -1 from the end)";
  return std::nullopt;
}

LogicalResult EmbeddingOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &indices = operands[0], &table = operands[1];
  Tensor y(referenceShape(getY()));
  int64_t width = table.shape[1];
  for (int64_t i = 0; i < indices.size(); ++i) {
    std::optional<int64_t> row = rowOf(*this, indices, i, table.shape[0]);
    if (!row)
      return failure();
    for (int64_t c = 0; c < width; ++c)
      y.values[i * width + c] = table.values[*row * width + c];
  }
  results.push_back(std::move(y));
  return success();
}

LogicalResult EmbeddingGradOp::evaluate(ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  const Tensor &dy = operands[0], &indices = operands[1];
  Tensor dtable(referenceShape(getDtable()));
  int64_t width = dtable.shape[1];
  for (int64_t i = 0; i < indices.size(); ++i) {
    std::optional<int64_t> row = rowOf(*this, indices, i, dtable.shape[0]);
    if (!row)
      return failure();
    for (int64_t c = 0; c < width; ++c)
      dtable.values[*row * width + c] += dy.values[i * width + c];
  }
  results.push_back(std::move(dtable));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// q, k, v are [B, T, H * D]; one head's matrices are strided views.
struct Heads {
  int64_t batch, queries, keys, heads, width;
  bool causal;

  Heads(const Tensor &q, const Tensor &k, int64_t heads, bool causal)
      : batch(q.shape[0]), queries(q.shape[1]), keys(k.shape[1]), heads(heads),
        width(q.shape[2] / heads), causal(causal) {}
  int64_t at(int64_t length, int64_t b, int64_t t, int64_t h, int64_t d) const {
    return ((b * length + t) * heads + h) * width + d;
  }
  /// q_i . k_j / sqrt(width) for all j; -inf where causality hides the key.
  std::vector<double> scores(const Tensor &q, const Tensor &k, int64_t b, int64_t h,
                             int64_t i) const {
    std::vector<double> row(keys, -std::numeric_limits<double>::infinity());
    double scale = std::sqrt(static_cast<double>(width));
    for (int64_t j = 0; j < keys && !(causal && j > i); ++j) {
      double sum = 0.0;
      for (int64_t d = 0; d < width; ++d)
        sum += q.values[at(queries, b, i, h, d)] * k.values[at(keys, b, j, h, d)];
      row[j] = sum / scale;
    }
    return row;
  }
};
} // namespace

LogicalResult AttentionOp::evaluate(ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  const Tensor &q = operands[0], &k = operands[1], &v = operands[2];
  Heads at(q, k, static_cast<int64_t>(getHeads()), getCausal());
  Tensor o(referenceShape(getO())), logsumexp({at.batch, at.heads, at.queries});
  for (int64_t b = 0; b < at.batch; ++b)
    for (int64_t h = 0; h < at.heads; ++h)
      for (int64_t i = 0; i < at.queries; ++i) {
        double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
        std::vector<double> scores = at.scores(q, k, b, h, i);
        for (double score : scores)
          max = std::max(max, score);
        if (std::isinf(max) && max < 0) { // no key is visible: output 0
          logsumexp.values[(b * at.heads + h) * at.queries + i] = max;
          continue;
        }
        for (double score : scores)
          sum += std::exp(score - max);
        for (int64_t j = 0; j < at.keys; ++j) {
          double p = std::exp(scores[j] - max) / sum;
          for (int64_t d = 0; p != 0.0 && d < at.width; ++d)
            o.values[at.at(at.queries, b, i, h, d)] += p * v.values[at.at(at.keys, b, j, h, d)];
        }
        logsumexp.values[(b * at.heads + h) * at.queries + i] = max + std::log(sum);
      }
  results.push_back(std::move(o));
  if (getSaveLogsumexp())
    results.push_back(std::move(logsumexp));
  return success();
}

LogicalResult AttentionGradOp::evaluate(ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  const Tensor &dout = operands[0], &q = operands[1], &k = operands[2], &v = operands[3],
               &o = operands[4], &logsumexp = operands[5];
  Heads at(q, k, static_cast<int64_t>(getHeads()), getCausal());
  Tensor dq(q.shape), dk(k.shape), dv(v.shape);
  double scale = 1.0 / std::sqrt(static_cast<double>(at.width));
  for (int64_t b = 0; b < at.batch; ++b)
    for (int64_t h = 0; h < at.heads; ++h)
      for (int64_t i = 0; i < at.queries; ++i) {
        double rowLog = logsumexp.values[(b * at.heads + h) * at.queries + i];
        if (std::isinf(rowLog)) // no key was visible: no gradient
          continue;
        std::vector<double> scores = at.scores(q, k, b, h, i);
        double along = 0.0; // dout . o, the part of dP that softmax takes out
        for (int64_t d = 0; d < at.width; ++d)
          along +=
              dout.values[at.at(at.queries, b, i, h, d)] * o.values[at.at(at.queries, b, i, h, d)];
        for (int64_t j = 0; j < at.keys; ++j) {
          double p = std::exp(scores[j] - rowLog);
          if (p == 0.0)
            continue;
          double dp = 0.0;
          for (int64_t d = 0; d < at.width; ++d) {
            dp += dout.values[at.at(at.queries, b, i, h, d)] * v.values[at.at(at.keys, b, j, h, d)];
            dv.values[at.at(at.keys, b, j, h, d)] += p * dout.values[at.at(at.queries, b, i, h, d)];
          }
          double ds = p * (dp - along) * scale;
          for (int64_t d = 0; d < at.width; ++d) {
            dq.values[at.at(at.queries, b, i, h, d)] += ds * k.values[at.at(at.keys, b, j, h, d)];
            dk.values[at.at(at.keys, b, j, h, d)] += ds * q.values[at.at(at.queries, b, i, h, d)];
          }
        }
      }
  results.push_back(std::move(dq));
  results.push_back(std::move(dk));
  results.push_back(std::move(dv));
  return success();
}
