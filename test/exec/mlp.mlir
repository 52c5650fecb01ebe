// RUN: descent-opt %s --phase-fusion | FileCheck %s

// A two-layer perceptron with cross entropy, forward and backward, on a ragged size. ProgramJitTest runs it and compares every result with the
// interpreter; here, its kernels: each product takes its bias and activation along, and the loss shares a kernel with its gradient.

// CHECK-DAG: exec.kernel @gemm_add_gelu{{.*}}_37x50x24 "gemm"
// CHECK-DAG: exec.kernel @gemm_add_37x10x50 "gemm"
// CHECK-DAG: exec.kernel @columns_reduce_sum_37x10 "columns"
// CHECK-LABEL: func.func @mlp
func.func @mlp(%x: tensor<37x24xf32>, %targets: tensor<37xi32>, %w1: tensor<24x50xf32>, %b1: tensor<50xf32>, %w2: tensor<50x10xf32>, %b2: tensor<10xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<37x10xf32>, tensor<24x50xf32>, tensor<50xf32>, tensor<50x10xf32>, tensor<10xf32>) {
  %0 = nn.matmul %x, %w1 : tensor<37x24xf32>, tensor<24x50xf32>
  %pre = nn.add %0, %b1 : tensor<37x50xf32>, tensor<50xf32>
  %h = nn.gelu %pre tanh : tensor<37x50xf32>
  %1 = nn.matmul %h, %w2 : tensor<37x50xf32>, tensor<50x10xf32>
  %logits = nn.add %1, %b2 : tensor<37x10xf32>, tensor<10xf32>
  %sum, %weight = nn.cross_entropy %logits, %targets : tensor<37x10xf32>, tensor<37xi32>
  // The gradient of the sum: softmax minus one at the target.
  %p = nn.softmax %logits axis 1 : tensor<37x10xf32>
  %classes = nn.iota [1, 10] axis 1 i32
  %t = nn.reshape %targets [37, 1] : tensor<37xi32>
  %hit = nn.compare eq %classes, %t : tensor<1x10xi32>, tensor<37x1xi32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %onehot = nn.where %hit, %one, %zero : tensor<37x10xi1>, tensor<f32>, tensor<f32>
  %d = nn.sub %p, %onehot : tensor<37x10xf32>, tensor<37x10xf32>
  %dw2 = nn.matmul %h, %d {transpose_a} : tensor<37x50xf32>, tensor<37x10xf32>
  %db2 = nn.reduce_sum %d [0] : tensor<37x10xf32>
  %dh = nn.matmul %d, %w2 {transpose_b} : tensor<37x10xf32>, tensor<50x10xf32>
  %slope = nn.gelu_grad %pre tanh : tensor<37x50xf32>
  %dpre = nn.mul %dh, %slope : tensor<37x50xf32>, tensor<37x50xf32>
  %dw1 = nn.matmul %x, %dpre {transpose_a} : tensor<37x24xf32>, tensor<37x50xf32>
  %db1 = nn.reduce_sum %dpre [0] : tensor<37x50xf32>
  return %sum, %weight, %logits, %dw1, %db1, %dw2, %db2
      : tensor<f32>, tensor<f32>, tensor<37x10xf32>, tensor<24x50xf32>, tensor<50xf32>, tensor<50x10xf32>, tensor<10xf32>
}
