// RUN: descent-opt %s --form-kernels --fold-epilogues --fold-accumulations | FileCheck %s

// The second contribution to a gradient lands on the first, which nothing else reads.
// CHECK-LABEL: func.func @twice
// CHECK: %[[FIRST:.*]] = exec.fusion "gemm"(%{{.*}}, %{{.*}}) : (
// CHECK: exec.fusion "gemm"(%{{.*}}, %{{.*}}, %[[FIRST]]) {{.*}} attributes {accumulate = 2 : i64}
func.func @twice(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %a, %a {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %1 = nn.matmul %b, %0 : tensor<8x16xf32>, tensor<16x16xf32>
  %2 = nn.matmul %a, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %e = nn.exp %b : tensor<8x16xf32>
  %3 = nn.matmul %e, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %4 = nn.add %2, %3 : tensor<16x16xf32>, tensor<16x16xf32>
  return %4 : tensor<16x16xf32>
}
