// A parameter used twice is one parameter with one summed gradient, added in the reverse order of use.
// RUN: descent-opt --differentiate %s | FileCheck %s

// CHECK-COUNT-1: train.parameter @w
// CHECK-LABEL: train.func @step
// CHECK:         %[[LATE:.*]] = nn.matmul %{{.*}}, %{{.*}} {transpose_a}
// CHECK:         %[[EARLY:.*]] = nn.matmul %{{.*}}, %{{.*}} {transpose_a}
// CHECK:         %[[SUM:.*]] = nn.add %[[LATE]], %[[EARLY]]
// CHECK:         train.gradient @w, %[[SUM]]
// CHECK-NOT:     train.gradient
// CHECK:         train.return
nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"}) {
  %w = nn.parameter "w" normal(0.0, 0.5) : tensor<4x4xf32>
  %h = nn.matmul %x, %w : tensor<5x4xf32>, tensor<4x4xf32>
  %y = nn.matmul %h, %w : tensor<5x4xf32>, tensor<4x4xf32>
  %sum, %weight = nn.mse %y, %t : tensor<5x4xf32>, tensor<5x4xf32>
  nn.loss %sum, %weight, %y : tensor<5x4xf32>
}
