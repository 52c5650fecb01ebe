// RUN: descent-opt %s --form-kernels --fold-epilogues --outline-kernels --verify-kernels | FileCheck %s

// Two equal layers share one kernel; each launch names its own source ops. Names follow from kind, ops and sizes (m, n, k of a product).
// CHECK: exec.kernel @gemm_add_relu_32x16x16 "gemm"
// CHECK-SAME: (tensor<32x16xf32>, tensor<32x16xf32>)
// CHECK-SAME: sources = ["nn.matmul
// CHECK-NOT: exec.kernel @gemm
// CHECK: exec.kernel @rows_gelu_4x4 "rows"
// CHECK: exec.kernel @rows_gelu_4x4_0 "rows"
// CHECK: exec.kernel @rows_add_8 "rows"
// CHECK: exec.kernel @rows_add_8_{{[0-9]+}} "rows"
// CHECK-NOT: exec.kernel @gemm
// CHECK-LABEL: func.func @layers
// CHECK: %[[A:.*]]:2 = exec.launch @gemm_add_relu_32x16x16({{.*}}) {sources = ["nn.matmul (outline-kernels.mlir:[[#LINE:]])"
// CHECK: exec.launch @gemm_add_relu_32x16x16(%[[A]]#1, {{.*}}) {sources = ["nn.matmul (outline-kernels.mlir:[[#LINE + 3]])"
func.func @layers(%x: tensor<32x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>, %v: tensor<16x16xf32>, %c: tensor<16xf32>)
    -> (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x16xf32>
  %1 = nn.add %0, %b : tensor<32x16xf32>, tensor<16xf32>
  %2 = nn.relu %1 : tensor<32x16xf32>
  %3 = nn.matmul %2, %v : tensor<32x16xf32>, tensor<16x16xf32>
  %4 = nn.add %3, %c : tensor<32x16xf32>, tensor<16xf32>
  %5 = nn.relu %4 : tensor<32x16xf32>
  return %1, %4, %5 : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>
}

// An attribute makes the difference, and so does a constant's value: two kernels, whose equal names are made distinct.
// CHECK-LABEL: func.func @differ
func.func @differ(%x: tensor<4x4xf32>, %y: tensor<8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = nn.constant dense<1.0> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %t = nn.transpose %x [1, 0] : tensor<4x4xf32>
  %z = nn.slice %y from [0] to [8] by [1] : tensor<8xf32>
  %0 = nn.gelu %x tanh : tensor<4x4xf32>
  %1 = nn.gelu %t erf : tensor<4x4xf32>
  %2 = nn.add %y, %one : tensor<8xf32>, tensor<f32>
  %3 = nn.add %z, %two : tensor<8xf32>, tensor<f32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<8xf32>, tensor<8xf32>
}
