// The sum of an operand's rows is a second result of the library's product that reads the same rows.
// RUN: descent-opt %s --form-kernels --fold-epilogues=target=cuda --fold-accumulations --fold-bias-gradients --outline-kernels --verify-kernels | FileCheck %s

// The gradients of a linear layer. The kernel reads dy as the product does, as one matrix, and keeps its place: in front of what reads the sum.
// CHECK-LABEL: exec.kernel @gemm_cast_reduce_sum_16x24x32 "gemm" (%{{.*}}: tensor<32x16xbf16>, %{{.*}}: tensor<32x24xbf16>) -> (tensor<16x24xf32>, tensor<24xf32>)
// CHECK-SAME: library
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} {result_type = f32, transpose_a}
// CHECK: %[[C:.*]] = nn.cast %{{.*}} to f32 : tensor<32x24xbf16>
// CHECK: %[[S:.*]] = nn.reduce_sum %[[C]] [0] : tensor<32x24xf32>
// CHECK: exec.yield %[[Y]], %[[S]]
// CHECK-NOT: "columns"
// CHECK-LABEL: func.func @linear
// CHECK: %[[X:.*]] = nn.reshape
// CHECK: %[[DY:.*]] = nn.reshape
// CHECK: %[[L:.*]]:2 = exec.launch @gemm_cast_reduce_sum_16x24x32(%[[X]], %[[DY]])
// CHECK: return %[[L]]#0, %[[L]]#1
func.func @linear(%x: tensor<4x8x16xbf16>, %dy: tensor<4x8x24xbf16>) -> (tensor<16x24xf32>, tensor<24xf32>) {
  %0 = nn.cast %dy to f32 : tensor<4x8x24xbf16>
  %1 = nn.reduce_sum %0 [0, 1] : tensor<4x8x24xf32>
  %2 = nn.reshape %x [32, 16] : tensor<4x8x16xbf16>
  %3 = nn.reshape %dy [32, 24] : tensor<4x8x24xbf16>
  %4 = nn.matmul %2, %3 {transpose_a, result_type = f32} : tensor<32x16xbf16>, tensor<32x24xbf16>
  return %4, %1 : tensor<16x24xf32>, tensor<24xf32>
}

// Of weights that lie the other way round, dy is the first operand.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: "columns"
// CHECK: %[[L:.*]]:2 = exec.launch @gemm_reduce_sum_24x16x32(%{{.*}}, %{{.*}})
// CHECK: return %[[L]]#0, %[[L]]#1
func.func @transposed(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>) -> (tensor<24x16xf32>, tensor<24xf32>) {
  %0 = nn.matmul %dy, %x {transpose_a} : tensor<32x24xf32>, tensor<32x16xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  return %0, %1 : tensor<24x16xf32>, tensor<24xf32>
}
