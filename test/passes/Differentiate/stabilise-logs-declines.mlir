// What stabilise-logs leaves alone.
// RUN: descent-opt %s --stabilise-logs | FileCheck %s

// Does not: something stands between the two, or there is no probability.
// CHECK-LABEL: func.func @other
func.func @other(%x: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  // CHECK-NEXT: nn.softmax
  // CHECK-NEXT: nn.add
  // CHECK-NEXT: nn.log
  // CHECK-NEXT: nn.tanh
  // CHECK-NEXT: nn.log
  %p = nn.softmax %x axis 1 : tensor<1x3xf32>
  %q = nn.add %p, %x : tensor<1x3xf32>, tensor<1x3xf32>
  %y = nn.log %q : tensor<1x3xf32>
  %t = nn.tanh %x : tensor<1x3xf32>
  %z = nn.log %t : tensor<1x3xf32>
  return %y, %z : tensor<1x3xf32>, tensor<1x3xf32>
}
