//===- PlainAttention.h - Attention from library matrix products ----------===//
//
// Causal attention of H heads that stand side by side in [T, 3*H*D] (q, k, v), one head after the
// other: oneDNN's sgemm on whole T x T matrices and vectorised passes for the softmax. What a
// program without fused attention does.
//
//===----------------------------------------------------------------------===//

#ifndef DESCENT_BENCH_PLAINATTENTION_H
#define DESCENT_BENCH_PLAINATTENTION_H

struct PlainAttention {
  int heads, length, depth;
  float *p, *g; ///< [T, T] each, work space

  /// o: [T, H*D]; logsumexp: [H, T].
  void forward(const float *qkv, float *o, float *logsumexp) const;
  /// dqkv: [T, 3*H*D].
  void gradient(const float *dout, const float *qkv, const float *o, const float *logsumexp,
                float *dqkv) const;
};

#endif // DESCENT_BENCH_PLAINATTENTION_H
