// What is primitive already stays as it is: elementwise ops, products, views, and reductions over the last or the first group of axes. Nothing is copied.
// RUN: descent-opt %s --decompose-ops | FileCheck %s

// CHECK-LABEL: func.func @primitive
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: nn.relu
// CHECK-NEXT: nn.reduce_sum %{{.*}} [1]
// CHECK-NEXT: nn.reduce_max %{{.*}} [0]
// CHECK-NEXT: nn.reduce_sum %{{.*}} [0, 1]
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: return
func.func @primitive(%x: tensor<3x5xf32>, %w: tensor<5x7xf32>) -> (tensor<3xf32>, tensor<7xf32>, tensor<f32>, tensor<7x3xf32>) {
  %0 = nn.matmul %x, %w : tensor<3x5xf32>, tensor<5x7xf32>
  %1 = nn.relu %0 : tensor<3x7xf32>
  %2 = nn.reduce_sum %1 [1] : tensor<3x7xf32>
  %3 = nn.reduce_max %1 [0] : tensor<3x7xf32>
  %4 = nn.reduce_sum %1 [0, 1] : tensor<3x7xf32>
  %5 = nn.reshape %1 [7, 3] : tensor<3x7xf32>
  return %2, %3, %4, %5 : tensor<3xf32>, tensor<7xf32>, tensor<f32>, tensor<7x3xf32>
}

// Attention has generators of its own and stays whole.
// CHECK-LABEL: func.func @attention
// CHECK-NEXT: nn.attention
// CHECK-NEXT: return
func.func @attention(%q: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %0 = nn.attention %q, %q, %q heads 2 causal : tensor<2x5x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>
  return %0 : tensor<2x5x6xf32>
}
