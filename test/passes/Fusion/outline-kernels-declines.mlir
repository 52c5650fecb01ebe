// What is not shared: fusions of the same ops whose constant, attribute or operand order differs. What is not touched: views and what is outlined already.
// RUN: descent-opt %s --outline-kernels | FileCheck %s

// CHECK: exec.kernel @known "rows"
// CHECK-COUNT-3: exec.kernel @rows_sub_4{{(_[0-9]+)?}} "rows"
// CHECK-NOT: exec.kernel
// CHECK-LABEL: func.func @differ
// CHECK-NEXT: exec.launch @known
// CHECK-NEXT: nn.reshape
// CHECK-NEXT: exec.launch @[[A:rows_sub_4[_0-9]*]](
// CHECK-NOT: exec.launch @[[A]](
// CHECK: return
exec.kernel @known "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x : tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}
func.func @differ(%x: tensor<4xf32>, %y: tensor<2x2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %k = exec.launch @known(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %v = nn.reshape %y [4] : tensor<2x2xf32>
  %0 = exec.fusion "rows"(%k, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %r = nn.sub %a, %b : tensor<4xf32>, tensor<4xf32>
    exec.yield %r : tensor<4xf32>
  }
  %1 = exec.fusion "rows"(%k, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %r = nn.sub %b, %a : tensor<4xf32>, tensor<4xf32>
    exec.yield %r : tensor<4xf32>
  }
  %2 = exec.fusion "rows"(%k) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %c = nn.constant dense<2.0> : tensor<f32>
    %r = nn.sub %a, %c : tensor<4xf32>, tensor<f32>
    exec.yield %r : tensor<4xf32>
  }
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
