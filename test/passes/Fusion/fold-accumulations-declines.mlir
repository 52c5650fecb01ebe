// Where the sum may not lie over the other contribution.
// RUN: descent-opt %s --form-kernels --fold-epilogues --fold-accumulations | FileCheck %s --implicit-check-not=accumulate

// A function's argument must survive.
// CHECK-LABEL: func.func @argument
// CHECK: return
func.func @argument(%a: tensor<8x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %a, %a {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %1 = nn.add %c, %0 : tensor<16x16xf32>, tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}

// An epilogue that does more than add has its own way of reading.
// CHECK-LABEL: func.func @more
// CHECK: return
func.func @more(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %a, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %1 = nn.matmul %b, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %2 = nn.add %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
  %3 = nn.relu %2 : tensor<16x16xf32>
  return %3 : tensor<16x16xf32>
}

// The first contribution is read again.
// CHECK-LABEL: func.func @read_again
// CHECK: return
func.func @read_again(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = nn.matmul %a, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %1 = nn.matmul %b, %b {transpose_a} : tensor<8x16xf32>, tensor<8x16xf32>
  %2 = nn.add %0, %1 : tensor<16x16xf32>, tensor<16x16xf32>
  return %0, %2 : tensor<16x16xf32>, tensor<16x16xf32>
}
