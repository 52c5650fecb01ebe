// RUN: descent-opt %s --phase-fusion | FileCheck %s

// Convolution, bias, relu, pooling and a linear layer, with the gradients back to the image.

// Bias and activation are computed on the product's tile; the comparison that the gradient needs leaves with it.
// CHECK:      exec.kernel @conv_conv2d_relu_compare_3x8x8x2_3x3x2x5 "conv"
// CHECK-NEXT:   = nn.conv2d
// CHECK:        = nn.add
// CHECK-NEXT:   nn.relu
// CHECK-NEXT:   nn.compare gt
// CHECK-NEXT:   exec.yield
// CHECK-DAG: exec.kernel @pool{{.*}} "pool"
// CHECK-DAG: exec.kernel @columns_reduce_sum_3x8x8x5 "columns"
// CHECK-LABEL: func.func @convnet
func.func @convnet(%x: tensor<3x8x8x2xf32>, %w: tensor<3x3x2x5xf32>, %b: tensor<5xf32>, %v: tensor<80x7xf32>, %dl: tensor<3x7xf32>)
    -> (tensor<3x7xf32>, tensor<3x8x8x2xf32>, tensor<3x3x2x5xf32>, tensor<5xf32>, tensor<80x7xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<3x8x8x2xf32>, tensor<3x3x2x5xf32>
  %1 = nn.add %0, %b : tensor<3x8x8x5xf32>, tensor<5xf32>
  %2 = nn.relu %1 : tensor<3x8x8x5xf32>
  %3 = nn.max_pool2d %2 kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<3x8x8x5xf32>
  %4 = nn.reshape %3 [3, 80] : tensor<3x4x4x5xf32>
  %5 = nn.matmul %4, %v : tensor<3x80xf32>, tensor<80x7xf32>
  %dv = nn.matmul %4, %dl {transpose_a} : tensor<3x80xf32>, tensor<3x7xf32>
  %d4 = nn.matmul %dl, %v {transpose_b} : tensor<3x7xf32>, tensor<80x7xf32>
  %d3 = nn.reshape %d4 [3, 4, 4, 5] : tensor<3x80xf32>
  %d2 = nn.max_pool2d_grad %d3, %2 kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<3x4x4x5xf32>, tensor<3x8x8x5xf32>
  %on = nn.compare gt %1, %zero : tensor<3x8x8x5xf32>, tensor<f32>
  %d1 = nn.where %on, %d2, %zero : tensor<3x8x8x5xi1>, tensor<3x8x8x5xf32>, tensor<f32>
  %db = nn.reduce_sum %d1 [0, 1, 2] : tensor<3x8x8x5xf32>
  %dw = nn.conv2d_grad_weight %x, %d1 strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] kernel [3, 3, 2, 5] : tensor<3x8x8x2xf32>, tensor<3x8x8x5xf32>
  %dx = nn.conv2d_grad_input %d1, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] input [3, 8, 8, 2] : tensor<3x8x8x5xf32>, tensor<3x3x2x5xf32>
  return %5, %dx, %dw, %db, %dv : tensor<3x7xf32>, tensor<3x8x8x2xf32>, tensor<3x3x2x5xf32>, tensor<5xf32>, tensor<80x7xf32>
}
