// Sums that no product of a library has beside it stay kernels of columns.
// RUN: descent-opt %s --form-kernels --fold-epilogues=target=cuda --fold-accumulations --fold-bias-gradients | FileCheck %s

// The product's k is dy's second axis: its rows are not what the product adds up.
// CHECK-LABEL: func.func @other_axis
// CHECK-DAG: exec.fusion "columns"
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<32x16xf32>
func.func @other_axis(%w: tensor<16x24xf32>, %dy: tensor<32x24xf32>) -> (tensor<32x16xf32>, tensor<24xf32>) {
  %0 = nn.matmul %dy, %w {transpose_b} : tensor<32x24xf32>, tensor<16x24xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  return %0, %1 : tensor<32x16xf32>, tensor<24xf32>
}

// Another tensor of the same shape.
// CHECK-LABEL: func.func @other_tensor
// CHECK-DAG: exec.fusion "columns"
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xf32>
func.func @other_tensor(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>, %dz: tensor<32x24xf32>) -> (tensor<16x24xf32>, tensor<24xf32>) {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  %1 = nn.reduce_sum %dz [0] : tensor<32x24xf32>
  return %0, %1 : tensor<16x24xf32>, tensor<24xf32>
}

// Fewer axes than the product adds up, and more is left.
// CHECK-LABEL: func.func @fewer_axes
// CHECK-DAG: exec.fusion "columns"
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xf32>
func.func @fewer_axes(%x: tensor<32x16xf32>, %dy: tensor<4x8x24xf32>) -> (tensor<16x24xf32>, tensor<8x24xf32>) {
  %0 = nn.reshape %dy [32, 24] : tensor<4x8x24xf32>
  %1 = nn.matmul %x, %0 {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  %2 = nn.reduce_sum %dy [0] : tensor<4x8x24xf32>
  return %1, %2 : tensor<16x24xf32>, tensor<8x24xf32>
}

// Two sums of one kernel, of which the library has one: dy is read for the other in any case.
// CHECK-LABEL: func.func @two_sums
// CHECK-DAG: exec.fusion "columns"({{.*}}) : ({{.*}}) -> (tensor<24xf32>, tensor<24xf32>)
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xf32>
func.func @two_sums(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>) -> (tensor<16x24xf32>, tensor<24xf32>, tensor<24xf32>) {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  %2 = nn.mul %dy, %dy : tensor<32x24xf32>, tensor<32x24xf32>
  %3 = nn.reduce_sum %2 [0] : tensor<32x24xf32>
  return %0, %1, %3 : tensor<16x24xf32>, tensor<24xf32>, tensor<24xf32>
}

// The result is narrow, and the sum would be.
// CHECK-LABEL: func.func @narrow_result
// CHECK-DAG: exec.fusion "columns"({{.*}}) : ({{.*}}) -> tensor<24xf32>
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xbf16>
func.func @narrow_result(%x: tensor<32x16xbf16>, %dy: tensor<32x24xbf16>) -> (tensor<16x24xbf16>, tensor<24xf32>) {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<32x16xbf16>, tensor<32x24xbf16>
  %1 = nn.cast %dy to f32 : tensor<32x24xbf16>
  %2 = nn.reduce_sum %1 [0] : tensor<32x24xf32>
  return %0, %2 : tensor<16x24xbf16>, tensor<24xf32>
}

// Of a weight that is used twice, the product that adds onto the other's result has no sum.
// CHECK-LABEL: func.func @accumulated
// CHECK-DAG: exec.fusion "columns"({{.*}}) : {{.*}} -> tensor<24xf32>
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : {{.*}} -> (tensor<16x24xf32>, tensor<24xf32>) attributes {library}
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<16x24xf32> attributes {accumulate = 2 : i64, library}
// CHECK: return
func.func @accumulated(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>, %u: tensor<32x16xf32>, %dz: tensor<32x24xf32>)
    -> (tensor<16x24xf32>, tensor<24xf32>, tensor<24xf32>) {
  %0 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  %1 = nn.matmul %x, %dy {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  %2 = nn.exp %dz : tensor<32x24xf32>
  %3 = nn.matmul %u, %2 {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  %4 = nn.add %1, %3 : tensor<16x24xf32>, tensor<16x24xf32>
  %5 = nn.reduce_sum %2 [0] : tensor<32x24xf32>
  return %4, %0, %5 : tensor<16x24xf32>, tensor<24xf32>, tensor<24xf32>
}

// The product itself waits for the sum.
// CHECK-LABEL: func.func @waits
// CHECK: exec.fusion "columns"
// CHECK: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xf32>
func.func @waits(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>) -> tensor<16x24xf32> {
  %0 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  %1 = nn.reduce_sum %0 [0] : tensor<24xf32>
  %2 = nn.mul %x, %1 : tensor<32x16xf32>, tensor<f32>
  %3 = nn.matmul %2, %dy {transpose_a} : tensor<32x16xf32>, tensor<32x24xf32>
  return %3 : tensor<16x24xf32>
}

// No product of a library: its tile is asked for.
// CHECK-LABEL: func.func @generated
// CHECK-DAG: exec.fusion "columns"
// CHECK-DAG: exec.fusion "gemm"({{.*}}) : ({{.*}}) -> tensor<16x24xf32>
func.func @generated(%x: tensor<32x16xf32>, %dy: tensor<32x24xf32>) -> (tensor<16x24xf32>, tensor<24xf32>) {
  %0 = nn.matmul %x, %dy {transpose_a, descent.tile = array<i64>} : tensor<32x16xf32>, tensor<32x24xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<32x24xf32>
  return %0, %1 : tensor<16x24xf32>, tensor<24xf32>
}
