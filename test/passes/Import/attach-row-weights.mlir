// Losses get the weights of their rows; only a model with dropout gets random numbers, each dropout under its own id.
// RUN: descent-opt --attach-row-weights -split-input-file %s | FileCheck %s

// CHECK-LABEL: nn.model @plain
// CHECK-SAME:  %[[W:[a-z0-9]+]]: tensor<2xf32> {nn.name = "row_weights", nn.role = "row_weights"})
// CHECK-NOT:   rng
nn.model @plain(%x: tensor<2x4xf32> {nn.role = "data"}, %t: tensor<2xi32> {nn.role = "target"}) {
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} row_weights %[[W]] : tensor<2xf32>
  %s, %n = nn.cross_entropy %x, %t : tensor<2x4xf32>, tensor<2xi32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: nn.model @random
// CHECK-SAME:  %[[W:[a-z0-9]+]]: tensor<2xf32> {nn.name = "row_weights", nn.role = "row_weights"}, %[[RNG:[a-z0-9]+]]: tensor<4xi32> {nn.name = "rng", nn.role = "rng"})
nn.model @random(%x: tensor<2x4xf32> {nn.role = "data"}) {
  // CHECK: nn.dropout %{{.*}} rng %[[RNG]] {id = 0 : i64
  %0 = nn.dropout %x {rate = 0.5} : tensor<2x4xf32>
  // CHECK: nn.dropout %{{.*}} rng %[[RNG]] {id = 1 : i64
  %1 = nn.dropout %0 {rate = 0.5} : tensor<2x4xf32>
  // CHECK: nn.mse %{{.*}}, %{{.*}} row_weights %[[W]] : tensor<2xf32>
  %s, %n = nn.mse %1, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %1 : tensor<2x4xf32>
}
