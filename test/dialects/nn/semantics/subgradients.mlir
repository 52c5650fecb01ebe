// Subgradients at kinks, as documented in NNGradients.cpp. Over a window or reduction they sum to dy.
// RUN: descent-run --gradients %s | FileCheck %s
// RUN: descent-run --linalg %s

// The 2-norm at the zero vector has gradient 0.
func.func @norm_at_zero(%x: tensor<3xf32> {check.value = dense<0.0> : tensor<3xf32>}) -> tensor<f32> {
  %square = nn.mul %x, %x : tensor<3xf32>, tensor<3xf32>
  %sum = nn.reduce_sum %square [0] : tensor<3xf32>
  %y = nn.sqrt %sum : tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @norm_at_zero gradient of argument 0 = [0, 0, 0]

func.func @abs_at_zero(%x: tensor<3xf32> {check.value = dense<[-2.0, 0.0, 2.0]> : tensor<3xf32>}) -> tensor<3xf32> {
  %y = nn.abs %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
// CHECK: @abs_at_zero gradient of argument 0 = [-1, 0, 1]

func.func @relu_at_zero(%x: tensor<3xf32> {check.value = dense<[-2.0, 0.0, 2.0]> : tensor<3xf32>}) -> tensor<3xf32> {
  %y = nn.relu %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
// CHECK: @relu_at_zero gradient of argument 0 = [0, 0, 1]

// Clip passes the gradient at its bounds.
func.func @clip(%x: tensor<5xf32> {check.value = dense<[-2.0, -1.0, 0.0, 1.0, 2.0]> : tensor<5xf32>}) -> tensor<5xf32> {
  %low = nn.constant dense<-1.0> : tensor<f32>
  %high = nn.constant dense<1.0> : tensor<f32>
  %above = nn.maximum %x, %low : tensor<5xf32>, tensor<f32>
  %y = nn.minimum %above, %high : tensor<5xf32>, tensor<f32>
  return %y : tensor<5xf32>
}
// CHECK: @clip gradient of argument 0 = [0, 1, 1, 1, 0]

// Two operands that tie: the first takes all of dy.
func.func @maximum_tie(%a: tensor<1xf32> {check.value = dense<3.0> : tensor<1xf32>},
                       %b: tensor<1xf32> {check.value = dense<3.0> : tensor<1xf32>}) -> tensor<1xf32> {
  %y = nn.maximum %a, %b : tensor<1xf32>, tensor<1xf32>
  return %y : tensor<1xf32>
}
// CHECK: @maximum_tie gradient of argument 0 = [1]
// CHECK: @maximum_tie gradient of argument 1 = [0]

// A reduction with ties shares dy among them.
func.func @reduce_max_ties(%x: tensor<1x4xf32> {check.value = dense<[[2.0, 5.0, 5.0, 1.0]]> : tensor<1x4xf32>}) -> tensor<1xf32> {
  %y = nn.reduce_max %x [1] : tensor<1x4xf32>
  return %y : tensor<1xf32>
}
// CHECK: @reduce_max_ties gradient of argument 0 = [0, 0.5, 0.5, 0]

// 0^0 = 1 and 0^2 have slope 0 in the base.
func.func @pow_at_zero(%x: tensor<2xf32> {check.value = dense<0.0> : tensor<2xf32>}) -> tensor<2xf32> {
  %b = nn.constant dense<[0.0, 2.0]> : tensor<2xf32>
  %y = nn.pow %x, %b : tensor<2xf32>, tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK: @pow_at_zero gradient of argument 0 = [0, 0]
