//===- PlainAttention.cpp - Attention from library matrix products --------===//
//
// exp is a polynomial that the C++ compiler turns into vector code, of the same cost as the
// generated kernels'.
//
//===----------------------------------------------------------------------===//

#include "PlainAttention.h"
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.h>

static inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  float whole = std::nearbyint(x * 1.44269504f);
  float rest = whole * 2.12194440e-4f + (whole * -0.693359375f + x);
  float y = 1.98756915e-4f;
  for (float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 0.5f, 1.0f, 1.0f})
    y = y * rest + coefficient;
  int32_t bits;
  std::memcpy(&bits, &y, 4);
  bits += int32_t(whole) * (1 << 23);
  std::memcpy(&y, &bits, 4);
  return y;
}

void PlainAttention::forward(const float *qkv, float *o, float *logsumexp) const {
  int T = length, D = depth, C = heads * D, S = 3 * C;
  float scale = 1 / std::sqrt(float(D));
  for (int h = 0; h < heads; ++h) {
    const float *q = qkv + h * D, *k = q + C, *v = k + C;
    dnnl_sgemm('N', 'T', T, T, D, scale, q, S, k, S, 0, p, T);
    for (int i = 0; i < T; ++i) {
      float *row = p + size_t(i) * T, most = row[0], total = 0;
      for (int j = 1; j <= i; ++j)
        most = row[j] > most ? row[j] : most;
      for (int j = 0; j <= i; ++j)
        row[j] = exponential(row[j] - most);
      for (int j = 0; j <= i; ++j)
        total += row[j];
      logsumexp[h * T + i] = most + std::log(total);
      total = 1 / total;
      for (int j = 0; j <= i; ++j)
        row[j] *= total;
      for (int j = i + 1; j < T; ++j)
        row[j] = 0;
    }
    dnnl_sgemm('N', 'N', T, D, T, 1, p, T, v, S, 0, o + h * D, C);
  }
}

void PlainAttention::gradient(const float *dout, const float *qkv, const float *o,
                              const float *logsumexp, float *dqkv) const {
  int T = length, D = depth, C = heads * D, S = 3 * C;
  float scale = 1 / std::sqrt(float(D));
  for (int h = 0; h < heads; ++h) {
    const float *q = qkv + h * D, *k = q + C, *v = k + C, *incoming = dout + h * D,
                *out = o + h * D;
    float *dq = dqkv + h * D, *dk = dq + C, *dv = dk + C;
    dnnl_sgemm('N', 'T', T, T, D, scale, q, S, k, S, 0, p, T);
    dnnl_sgemm('N', 'T', T, T, D, 1, incoming, C, v, S, 0, g, T);
    for (int i = 0; i < T; ++i) {
      float *row = p + size_t(i) * T, *slope = g + size_t(i) * T, most = logsumexp[h * T + i],
            mean = 0;
      for (int d = 0; d < D; ++d)
        mean += incoming[size_t(i) * C + d] * out[size_t(i) * C + d];
      for (int j = 0; j <= i; ++j) {
        row[j] = exponential(row[j] - most);
        slope[j] = row[j] * (slope[j] - mean) * scale;
      }
      for (int j = i + 1; j < T; ++j)
        row[j] = slope[j] = 0;
    }
    dnnl_sgemm('T', 'N', T, D, T, 1, p, T, incoming, C, 0, dv, S);
    dnnl_sgemm('N', 'N', T, D, T, 1, g, T, k, S, 0, dq, S);
    dnnl_sgemm('T', 'N', T, D, T, 1, g, T, q, S, 0, dk, S);
  }
}
