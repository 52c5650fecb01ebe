// The gradient of a branch not taken never leaks: masks are selects, and an infinite derivative times no gradient is no gradient.
// RUN: descent-run --gradients %s | FileCheck %s
// RUN: descent-run --linalg %s

// sqrt(-1) is NaN, and so is its derivative.
func.func @where_sqrt(%x: tensor<2xf32> {check.value = dense<[-1.0, -4.0]> : tensor<2xf32>}) -> tensor<2xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %positive = nn.compare gt %x, %zero : tensor<2xf32>, tensor<f32>
  %root = nn.sqrt %x : tensor<2xf32>
  %y = nn.where %positive, %root, %x : tensor<2xi1>, tensor<2xf32>, tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK: @where_sqrt gradient of argument 0 = [1, 1]

// exp(100) is infinite in f32.
func.func @where_exp(%x: tensor<f32> {check.value = dense<100.0> : tensor<f32>}) -> tensor<f32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %low = nn.compare le %x, %zero : tensor<f32>, tensor<f32>
  %e = nn.exp %x : tensor<f32>
  %next = nn.add %one, %x : tensor<f32>, tensor<f32>
  %y = nn.where %low, %e, %next : tensor<i1>, tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @where_exp gradient of argument 0 = [1]

// log and division at zero, behind a mask.
func.func @where_log(%x: tensor<2xf32> {check.value = dense<[0.0, 2.0]> : tensor<2xf32>}) -> tensor<2xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %positive = nn.compare gt %x, %zero : tensor<2xf32>, tensor<f32>
  %log = nn.log %x : tensor<2xf32>
  %inverse = nn.div %one, %x : tensor<f32>, tensor<2xf32>
  %sum = nn.add %log, %inverse : tensor<2xf32>, tensor<2xf32>
  %y = nn.where %positive, %sum, %zero : tensor<2xi1>, tensor<2xf32>, tensor<f32>
  return %y : tensor<2xf32>
}
// CHECK: @where_log gradient of argument 0 = [0, 0.25]
