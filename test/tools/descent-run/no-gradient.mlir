// An op that implements no gradient is named; so is a parameter without a value.
// RUN: not descent-run --gradients %s 2>&1 | FileCheck %s

// CHECK: 'nn.gelu_grad' op has no gradient
func.func @second_derivative(%x: tensor<1xf32>) -> tensor<1xf32> {
  %y = nn.gelu_grad %x erf : tensor<1xf32>
  return %y : tensor<1xf32>
}
// CHECK: 'nn.parameter' op 'w' has no value to start from
func.func @parameter(%x: tensor<1xf32>) -> tensor<1xf32> {
  %w = nn.parameter "w" zeros : tensor<1xf32>
  %y = nn.mul %x, %w : tensor<1xf32>, tensor<1xf32>
  return %y : tensor<1xf32>
}
