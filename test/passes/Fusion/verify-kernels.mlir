// Kernels that keep their kind's rules and a program of launches, views and ops of other dialects pass unchanged.
// RUN: descent-opt %s --verify-kernels | FileCheck %s

// CHECK: exec.kernel @bias_relu "gemm"
exec.kernel @bias_relu "gemm" (%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  %0 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x4xf32>
  %1 = nn.add %0, %b : tensor<4x4xf32>, tensor<4xf32>
  %2 = nn.relu %1 : tensor<4x4xf32>
  exec.yield %2 : tensor<4x4xf32>
}
// CHECK: exec.kernel @softmax_sum "rows"
exec.kernel @softmax_sum "rows" (%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>) {
  %0 = nn.exp %x : tensor<4x4xf32>
  %1 = nn.reduce_sum %0 [1] keep : tensor<4x4xf32>
  exec.yield %0, %1 : tensor<4x4xf32>, tensor<4x1xf32>
}
// CHECK-LABEL: func.func @program
// CHECK-NEXT: exec.launch @bias_relu
// CHECK-NEXT: exec.launch @softmax_sum
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: return
func.func @program(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<16xf32> {
  %0 = exec.launch @bias_relu(%x, %w, %b) : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %1:2 = exec.launch @softmax_sum(%0) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xf32>)
  %2 = nn.reshape %1#0 [16] : tensor<4x4xf32>
  return %2 : tensor<16xf32>
}
