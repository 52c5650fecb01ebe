// RUN: descent-opt %s --form-kernels --fold-epilogues | FileCheck %s

// The other operand waits for the product: folding would make the kernel wait for itself. It folds into the second product instead.
// CHECK-LABEL: func.func @waits
// CHECK: %[[A:.*]] = exec.fusion "gemm"
// CHECK: nn.matmul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "gemm"(%[[A]], %{{.*}}, %[[A]])
// CHECK: nn.matmul
// CHECK: nn.add
func.func @waits(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %x, %w : tensor<16x16xf32>, tensor<16x16xf32>
  %1 = nn.matmul %0, %w : tensor<16x16xf32>, tensor<16x16xf32>
  %2 = nn.add %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// Two values that feed one reduction: the product would write both where it writes one now.
// CHECK-LABEL: func.func @more_writes
// CHECK: exec.fusion "gemm"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "rows"
func.func @more_writes(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x1xf32> {
  %0 = nn.matmul %x, %w : tensor<16x16xf32>, tensor<16x16xf32>
  %1 = nn.exp %0 : tensor<16x16xf32>
  %2 = nn.reduce_max %0 [1] keep : tensor<16x16xf32>
  %3 = nn.reduce_sum %1 [1] keep : tensor<16x16xf32>
  %4 = nn.add %2, %3 : tensor<16x1xf32>, tensor<16x1xf32>
  return %4 : tensor<16x1xf32>
}

// An epilogue has no place for random numbers, whose elements are known by index only.
// CHECK-LABEL: func.func @dropout
// CHECK: exec.fusion "gemm"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "rows"
// CHECK: nn.random
func.func @dropout(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %rng: tensor<4xi32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %x, %w : tensor<16x16xf32>, tensor<16x16xf32>
  %1 = nn.random %rng [16, 16] id 0
  %2 = nn.mul %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
