// Repeated indices add, in order; negative indices count from the end, forward and backward alike; unused rows are exactly 0.
// RUN: descent-run --gradients %s | FileCheck %s

// x = [0.1], index [0, 0], dy = [0.2, 0.3]: dx = [0.5].
func.func @repeated(%x: tensor<1x1xf32> {check.value = dense<0.1> : tensor<1x1xf32>}) -> tensor<2x1xf32> {
  %i = nn.constant dense<0> : tensor<2xi32>
  %dy = nn.constant dense<[[0.2], [0.3]]> : tensor<2x1xf32>
  %rows = nn.embedding %i, %x : tensor<2xi32>, tensor<1x1xf32>
  %y = nn.mul %rows, %dy : tensor<2x1xf32>, tensor<2x1xf32>
  return %y : tensor<2x1xf32>
}
// CHECK: @repeated gradient of argument 0 = [0.5{{(000000[0-9]+)?}}]

func.func @negative(%x: tensor<3x1xf32> {check.value = dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>}) -> tensor<2x1xf32> {
  %i = nn.constant dense<[-1, 2]> : tensor<2xi32>
  %y = nn.embedding %i, %x : tensor<2xi32>, tensor<3x1xf32>
  return %y : tensor<2x1xf32>
}
// CHECK: @negative result 0 = [3, 3]
// CHECK: @negative gradient of argument 0 = [0, 0, 2]
