// A NaN is never hidden: relu, maximum, minimum and reduce_max let it through, compiled and interpreted alike.
// RUN: descent-run %s | FileCheck %s
// RUN: descent-run --linalg-forward %s

func.func @nan(%x: tensor<1x3xf32> {check.value = dense<[[0x7FC00000, 1.0, -1.0]]> : tensor<1x3xf32>}) -> (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %a = nn.relu %x : tensor<1x3xf32>
  %b = nn.maximum %zero, %x : tensor<f32>, tensor<1x3xf32>
  %c = nn.minimum %x, %zero : tensor<1x3xf32>, tensor<f32>
  %d = nn.reduce_max %x [1] : tensor<1x3xf32>
  return %a, %b, %c, %d : tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1xf32>
}
// CHECK: @nan result 0 = [nan, 1, 0]
// CHECK: @nan result 1 = [nan, 1, 0]
// CHECK: @nan result 2 = [nan, 0, -1]
// CHECK: @nan result 3 = [nan]
