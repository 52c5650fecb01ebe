// RUN: descent-opt %s --phase-fusion | FileCheck %s

// A pre-norm block of a GPT with dropout, and the parts of its gradient that have kernels of their own: attention, the norm with its gain and
// bias, the residual path.

// CHECK-DAG: exec.kernel @gemm_add_40x96x32 "gemm"
// CHECK-DAG: exec.kernel @attention{{.*}} "attention"
// CHECK-DAG: exec.kernel @attention_grad{{.*}} "attention_grad"
// CHECK-DAG: exec.kernel @columns{{.*}}_2x20x32 "columns"
// CHECK-LABEL: func.func @block
// CHECK-NOT: exec.fusion
func.func @block(%x: tensor<2x20x32xf32>, %gain: tensor<32xf32>, %bias: tensor<32xf32>, %wqkv: tensor<32x96xf32>, %bqkv: tensor<96xf32>,
    %wo: tensor<32x32xf32>, %bo: tensor<32xf32>, %w1: tensor<32x128xf32>, %b1: tensor<128xf32>, %w2: tensor<128x32xf32>, %b2: tensor<32xf32>,
    %dy: tensor<2x20x32xf32>, %rng: tensor<4xi32>)
    -> (tensor<2x20x32xf32>, tensor<2x20x96xf32>, tensor<2x20x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x96xf32>, tensor<96xf32>) {
  %n1 = nn.layer_norm %x, %gain, %bias : tensor<2x20x32xf32>, tensor<32xf32>, tensor<32xf32>
  %0 = nn.matmul %n1, %wqkv : tensor<2x20x32xf32>, tensor<32x96xf32>
  %qkv = nn.add %0, %bqkv : tensor<2x20x96xf32>, tensor<96xf32>
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<2x20x96xf32>
  %o, %lse = nn.attention %q, %k, %v heads 4 causal save_logsumexp : tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %1 = nn.matmul %o, %wo : tensor<2x20x32xf32>, tensor<32x32xf32>
  %2 = nn.add %1, %bo : tensor<2x20x32xf32>, tensor<32xf32>
  %3 = nn.dropout %2 rng %rng {rate = 0.25 : f64, id = 7 : i64} : tensor<2x20x32xf32>
  %h = nn.add %x, %3 : tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %n2 = nn.layer_norm %h, %gain, %bias : tensor<2x20x32xf32>, tensor<32xf32>, tensor<32xf32>
  %4 = nn.matmul %n2, %w1 : tensor<2x20x32xf32>, tensor<32x128xf32>
  %5 = nn.add %4, %b1 : tensor<2x20x128xf32>, tensor<128xf32>
  %6 = nn.gelu %5 erf : tensor<2x20x128xf32>
  %7 = nn.matmul %6, %w2 : tensor<2x20x128xf32>, tensor<128x32xf32>
  %8 = nn.add %7, %b2 : tensor<2x20x32xf32>, tensor<32xf32>
  %y = nn.add %h, %8 : tensor<2x20x32xf32>, tensor<2x20x32xf32>

  // Attention's gradient, through the split and the concat.
  %do = nn.matmul %dy, %wo {transpose_b} : tensor<2x20x32xf32>, tensor<32x32xf32>
  %dq, %dk, %dv = nn.attention_grad %do, %q, %k, %v, %o, %lse heads 4 causal
      : tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x4x20xf32>
  %dqkv = nn.concat %dq, %dk, %dv axis 2 : tensor<2x20x32xf32>, tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %flat = nn.reshape %dqkv [40, 96] : tensor<2x20x96xf32>
  %n1flat = nn.reshape %n1 [40, 32] : tensor<2x20x32xf32>
  %dwqkv = nn.matmul %n1flat, %flat {transpose_a} : tensor<40x32xf32>, tensor<40x96xf32>
  %dbqkv = nn.reduce_sum %dqkv [0, 1] : tensor<2x20x96xf32>

  // The norm's gradient: with n the normalised rows, g = dn gain, dx = scale (g - mean(g) - n mean(g n)).
  %dn = nn.matmul %dqkv, %wqkv {transpose_b} : tensor<2x20x96xf32>, tensor<32x96xf32>
  %mean = nn.reduce_mean %x [2] keep : tensor<2x20x32xf32>
  %c = nn.sub %x, %mean : tensor<2x20x32xf32>, tensor<2x20x1xf32>
  %cc = nn.mul %c, %c : tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %var = nn.reduce_mean %cc [2] keep : tensor<2x20x32xf32>
  %eps = nn.constant dense<1.0e-5> : tensor<f32>
  %ve = nn.add %var, %eps : tensor<2x20x1xf32>, tensor<f32>
  %scale = nn.rsqrt %ve : tensor<2x20x1xf32>
  %n = nn.mul %c, %scale : tensor<2x20x32xf32>, tensor<2x20x1xf32>
  %g = nn.mul %dn, %gain : tensor<2x20x32xf32>, tensor<32xf32>
  %mg = nn.reduce_mean %g [2] keep : tensor<2x20x32xf32>
  %gn = nn.mul %g, %n : tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %mgn = nn.reduce_mean %gn [2] keep : tensor<2x20x32xf32>
  %nm = nn.mul %n, %mgn : tensor<2x20x32xf32>, tensor<2x20x1xf32>
  %d1 = nn.sub %g, %mg : tensor<2x20x32xf32>, tensor<2x20x1xf32>
  %d2 = nn.sub %d1, %nm : tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %dx = nn.mul %d2, %scale : tensor<2x20x32xf32>, tensor<2x20x1xf32>
  %dnn = nn.mul %dn, %n : tensor<2x20x32xf32>, tensor<2x20x32xf32>
  %dgain = nn.reduce_sum %dnn [0, 1] : tensor<2x20x32xf32>
  %dbias = nn.reduce_sum %dn [0, 1] : tensor<2x20x32xf32>
  return %y, %dqkv, %dx, %dgain, %dbias, %dwqkv, %dbqkv
      : tensor<2x20x32xf32>, tensor<2x20x96xf32>, tensor<2x20x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x96xf32>, tensor<96xf32>
}
