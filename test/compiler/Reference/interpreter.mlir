// The interpreter runs what later phases make of a program: fusions, launches of outlined kernels, calls.
// RUN: descent-run %s | FileCheck %s

exec.kernel @double "rows" (%0: tensor<2xf32>) -> tensor<2xf32> {
  %1 = nn.add %0, %0 : tensor<2xf32>, tensor<2xf32>
  exec.yield %1 : tensor<2xf32>
}
func.func private @negate(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = nn.neg %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK: @main result 0 = [-5, -9]
func.func @main(%x: tensor<2xf32> {check.value = dense<[2.0, 4.0]> : tensor<2xf32>}) -> tensor<2xf32> {
  %a = exec.launch @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = exec.fusion "rows" (%a) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%0: tensor<2xf32>):
    %one = nn.constant dense<1.0> : tensor<f32>
    %1 = nn.add %0, %one : tensor<2xf32>, tensor<f32>
    exec.yield %1 : tensor<2xf32>
  }
  %c = func.call @negate(%b) : (tensor<2xf32>) -> tensor<2xf32>
  return %c : tensor<2xf32>
}
