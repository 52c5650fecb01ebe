// stabilise-logs recognises log(softmax(x)) and log(sigmoid(x)), through a cast too.
// RUN: descent-opt %s --stabilise-logs --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<1x3xf32>)
func.func @softmax(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
  // CHECK-NEXT: %[[Y:.*]] = nn.log_softmax %[[X]] axis 1
  // CHECK-NEXT: return %[[Y]]
  %p = nn.softmax %x axis 1 : tensor<1x3xf32>
  %y = nn.log %p : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// -----

// The cast that widened the probabilities widens the logits.
// CHECK-LABEL: func.func @through_cast
// CHECK-SAME: (%[[X:.*]]: tensor<1x3xbf16>)
func.func @through_cast(%x: tensor<1x3xbf16>) -> tensor<1x3xf32> {
  // CHECK-NEXT: %[[WIDE:.*]] = nn.cast %[[X]] to f32
  // CHECK-NEXT: %[[Y:.*]] = nn.log_softmax %[[WIDE]] axis 1
  // CHECK-NEXT: return %[[Y]]
  %p = nn.softmax %x axis 1 : tensor<1x3xbf16>
  %w = nn.cast %p to f32 : tensor<1x3xbf16>
  %y = nn.log %w : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// -----

// CHECK-LABEL: func.func @sigmoid
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32>)
func.func @sigmoid(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: %[[A:.*]] = nn.abs %[[X]]
  // CHECK: nn.exp
  // CHECK: nn.log
  // CHECK: nn.minimum %[[X]]
  // CHECK: nn.sub
  // CHECK-NOT: nn.sigmoid
  %p = nn.sigmoid %x : tensor<3xf32>
  %y = nn.log %p : tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// The softmax stays for its other users.
// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  // CHECK: nn.softmax
  // CHECK: nn.log_softmax
  %p = nn.softmax %x axis 1 : tensor<1x3xf32>
  %y = nn.log %p : tensor<1x3xf32>
  return %p, %y : tensor<1x3xf32>, tensor<1x3xf32>
}
