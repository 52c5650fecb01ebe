// The gradient of a pooling window goes to its first maximum: over the window it sums to dy.
// RUN: descent-run --gradients %s | FileCheck %s

func.func @pool(%x: tensor<1x2x2x1xf32> {check.value = dense<7.0> : tensor<1x2x2x1xf32>}) -> tensor<1x1x1x1xf32> {
  %y = nn.max_pool2d %x kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<1x2x2x1xf32>
  return %y : tensor<1x1x1x1xf32>
}
// CHECK: @pool gradient of argument 0 = [1, 0, 0, 0]
