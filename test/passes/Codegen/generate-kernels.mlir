// RUN: descent-opt %s --generate-kernels="cpu=haswell" | FileCheck %s

// Each kernel's function stands in @kernels under the kernel's name: buffers of the inputs, then of the outputs (a boolean is a byte), the tasks and
// the scratch. Two products share their tile, which is there once.

// CHECK: exec.kernel @rows_relu_8x64
// CHECK: module @kernels
// CHECK-DAG: func.func @rows_relu_8x64({{.*}}: memref<8x64xf32>, {{.*}}: memref<8x64xf32>, {{.*}}: memref<8x64xi8>, {{.*}}: index, {{.*}}: index, {{.*}}: memref<{{[0-9]+}}xi8>) attributes {descent.scratch = {{[0-9]+}} : i64, descent.tasks = {{[0-9]+}} : i64}
// CHECK-DAG: func.func @gemm_add_relu_32x16x24(
// CHECK-DAG: func.func @gemm_32x16x24(
// CHECK-DAG: func.func @columns_reduce_sum_8x64(
exec.kernel @rows_relu_8x64 "rows" (%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xi1>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.relu %x : tensor<8x64xf32>
  %1 = nn.compare gt %x, %zero : tensor<8x64xf32>, tensor<f32>
  exec.yield %0, %1 : tensor<8x64xf32>, tensor<8x64xi1>
}
exec.kernel @gemm_add_relu_32x16x24 "gemm" (%x: tensor<32x24xf32>, %w: tensor<24x16xf32>, %b: tensor<16xf32>) -> tensor<32x16xf32> {
  %0 = nn.matmul %x, %w : tensor<32x24xf32>, tensor<24x16xf32>
  %1 = nn.add %0, %b : tensor<32x16xf32>, tensor<16xf32>
  %2 = nn.relu %1 : tensor<32x16xf32>
  exec.yield %2 : tensor<32x16xf32>
}
exec.kernel @gemm_32x16x24 "gemm" (%x: tensor<32x24xf32>, %w: tensor<24x16xf32>) -> tensor<32x16xf32> {
  %0 = nn.matmul %x, %w : tensor<32x24xf32>, tensor<24x16xf32>
  exec.yield %0 : tensor<32x16xf32>
}
exec.kernel @columns_reduce_sum_8x64 "columns" (%x: tensor<8x64xf32>) -> tensor<64xf32> {
  %0 = nn.reduce_sum %x [0] : tensor<8x64xf32>
  exec.yield %0 : tensor<64xf32>
}
