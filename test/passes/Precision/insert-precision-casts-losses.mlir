// Everything in f16, losses too: an override for all ops. The weights of rows are counts and stay f32; so do the scalars that nn.loss takes.
// RUN: descent-opt --insert-precision-casts %s | FileCheck %s

module attributes {train.compute = f16, train.overrides = [#train.override<op = "", match = "", type = f16>]} {
  // CHECK-LABEL: nn.model @m
  // CHECK-SAME: %[[ROWS:[a-z_0-9]+]]: tensor<5xf32> {nn.name = "row_weights"
  nn.model @m(%x: tensor<5x6xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"},
              %row_weights: tensor<5xf32> {nn.name = "row_weights", nn.role = "row_weights"}) {
    %w = nn.parameter "w" normal(0.0, 0.5) : tensor<6x4xf32>
    // CHECK: nn.matmul {{.*}} : tensor<5x6xf16>, tensor<6x4xf16>
    %0 = nn.matmul %x, %w : tensor<5x6xf32>, tensor<6x4xf32>
    // CHECK: nn.softmax %{{.*}} axis 1 : tensor<5x4xf16>
    %1 = nn.softmax %0 axis 1 : tensor<5x4xf32>
    // CHECK: %[[SUM:.*]], %[[WEIGHT:.*]] = nn.mse %{{.*}}, %{{.*}} row_weights %[[ROWS]] : tensor<5xf32> : tensor<5x4xf16>, tensor<5x4xf16>
    // CHECK: nn.loss %[[SUM]], %[[WEIGHT]],
    %sum, %weight = nn.mse %1, %t row_weights %row_weights : tensor<5xf32> : tensor<5x4xf32>, tensor<5x4xf32>
    nn.loss %sum, %weight, %1 : tensor<5x4xf32>
  }
}
