// decompose-ops turns named computations into elementwise ops and reductions over the first or last axes, on rows that keep their axis.
// RUN: descent-opt %s --decompose-ops --split-input-file | FileCheck %s
// RUN: descent-opt %s --decompose-ops --cse --split-input-file | FileCheck %s --check-prefix=SHARED

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<3x5xf32>)
func.func @softmax(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  // CHECK: %[[MAX:.*]] = nn.reduce_max %[[X]] [1] keep
  // CHECK: %[[SHIFTED:.*]] = nn.sub %[[X]], %[[MAX]]
  // CHECK: %[[EXP:.*]] = nn.exp %[[SHIFTED]]
  // CHECK: %[[SUM:.*]] = nn.reduce_sum %[[EXP]] [1] keep
  // CHECK: %[[INVERSE:.*]] = nn.div %{{.*}}, %[[SUM]]
  // CHECK: nn.mul %[[EXP]], %[[INVERSE]]
  // CHECK-NOT: nn.softmax
  %y = nn.softmax %x axis 1 : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

// Narrow rows are computed in f32 and rounded once.
// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<3x5xbf16>, %g: tensor<5xbf16>, %b: tensor<5xbf16>) -> tensor<3x5xbf16> {
  // CHECK: nn.cast %{{.*}} to f32 : tensor<3x5xbf16>
  // CHECK: nn.reduce_mean %{{.*}} [1] keep : tensor<3x5xf32>
  // CHECK: nn.rsqrt {{.*}} : tensor<3x1xf32>
  // CHECK: nn.cast %{{.*}} to bf16 : tensor<3x5xf32>
  // CHECK-NOT: nn.layer_norm
  %y = nn.layer_norm %x, %g, %b : tensor<3x5xbf16>, tensor<5xbf16>, tensor<5xbf16>
  return %y : tensor<3x5xbf16>
}

// -----

// Two norms of one value share their statistics after CSE, as a norm and its gradient do.
// SHARED-LABEL: func.func @shared
func.func @shared(%x: tensor<3x5xf32>, %g: tensor<5xf32>, %b: tensor<5xf32>, %h: tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  // SHARED-COUNT-1: nn.rsqrt
  // SHARED-NOT: nn.rsqrt
  %y = nn.layer_norm %x, %g, %b : tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>
  %z = nn.layer_norm %x, %h, %b : tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>
  return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}

// -----

// A reduction over a middle axis brings it to the end; one over the outer axes is two reductions.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<2x3x5xf32>) -> (tensor<2x5xf32>, tensor<3xf32>) {
  // CHECK: nn.transpose %{{.*}} [0, 2, 1]
  // CHECK: nn.reduce_sum %{{.*}} [2] : tensor<2x5x3xf32>
  %a = nn.reduce_sum %x [1] : tensor<2x3x5xf32>
  // CHECK: nn.reduce_mean %{{.*}} [2] keep : tensor<2x3x5xf32>
  // CHECK: nn.reduce_mean %{{.*}} [0] keep : tensor<2x3x1xf32>
  %b = nn.reduce_mean %x [0, 2] : tensor<2x3x5xf32>
  return %a, %b : tensor<2x5xf32>, tensor<3xf32>
}

// -----

// Does not: primitive reductions and elementwise ops stay as they are.
// CHECK-LABEL: func.func @primitive
func.func @primitive(%x: tensor<2x3x5xf32>) -> (tensor<2x3xf32>, tensor<5xf32>) {
  // CHECK-NEXT: nn.gelu
  // CHECK-NEXT: nn.reduce_sum %{{.*}} [2]
  // CHECK-NEXT: nn.reduce_max %{{.*}} [0, 1]
  // CHECK-NEXT: return
  %g = nn.gelu %x erf : tensor<2x3x5xf32>
  %a = nn.reduce_sum %g [2] : tensor<2x3x5xf32>
  %b = nn.reduce_max %g [0, 1] : tensor<2x3x5xf32>
  return %a, %b : tensor<2x3xf32>, tensor<5xf32>
}

// -----

// Dropout draws numbers where it has a key, and is the identity in evaluation.
// CHECK-LABEL: func.func @dropout
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>,
func.func @dropout(%x: tensor<8xf32>, %rng: tensor<4xi32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[R:.*]] = nn.random %{{.*}} [8] id 3
  // CHECK: %[[M:.*]] = nn.compare ge %[[R]]
  // CHECK: %[[Y:.*]] = nn.where %[[M]]
  %y = nn.dropout %x rng %rng {rate = 0.5, id = 3} : tensor<8xf32>
  %z = nn.dropout %x {rate = 0.5} : tensor<8xf32>
  // CHECK: return %[[Y]], %[[X]]
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}

// -----

// The target is selected by comparison with its class, without a gather.
// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%x: tensor<2x3x5xf32>, %t: tensor<2x3xi32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: nn.iota [5] axis 0 i32
  // CHECK: nn.compare eq {{.*}} : tensor<5xi32>, tensor<2x3x1xi32>
  // CHECK: nn.reduce_sum %{{.*}} [2] keep : tensor<2x3x5xf32>
  // CHECK: nn.reduce_sum %{{.*}} [0, 1, 2] : tensor<2x3x1xf32>
  // CHECK: nn.reduce_sum %{{.*}} [0, 1, 2] : tensor<2x3x1xf32>
  // CHECK-NOT: nn.cross_entropy
  %s, %w = nn.cross_entropy %x, %t : tensor<2x3x5xf32>, tensor<2x3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
