// Reverse mode on one loss: parameters become symbols, each trainable one gets the gradient of the loss *sum*, and @evaluate is the forward pass alone.
// RUN: descent-opt --differentiate %s | FileCheck %s

// CHECK-DAG: train.parameter @w : tensor<4x3xf32> {init = #nn.normal<0.0, 0.5>}
// CHECK-DAG: train.parameter @scale : tensor<3xf32> {frozen, init = #nn.constant<2.0>}

// CHECK-LABEL: train.func @step
// CHECK:         %[[W:.*]] = train.read @w
// CHECK:         %[[SCALE:.*]] = train.read @scale
// CHECK:         %[[Y:.*]] = nn.matmul %{{.*}}, %[[W]]
// CHECK:         %[[Z:.*]] = nn.mul %[[Y]], %[[SCALE]]
// CHECK:         %[[SUM:.*]], %[[WEIGHT:.*]] = nn.mse %[[Z]]
// Nothing is divided by the weight here.
// CHECK:         train.seed
// CHECK-NOT:     nn.div %{{.*}}, %[[WEIGHT]]
// CHECK:         %[[DW:.*]] = nn.matmul %{{.*}} {transpose_a}
// CHECK:         train.gradient @w, %[[DW]] : tensor<4x3xf32>
// A frozen parameter gets none.
// CHECK-NOT:     train.gradient @scale
// CHECK:         train.return ["loss_sum", "loss_weight"] %[[SUM]], %[[WEIGHT]]

// CHECK-LABEL: train.func @evaluate
// CHECK-NOT:     train.gradient
// CHECK:         train.return ["loss_sum", "loss_weight", "predictions"]
nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x3xf32> {nn.role = "target"}) {
  %w = nn.parameter "w" normal(0.0, 0.5) : tensor<4x3xf32>
  %scale = nn.parameter "scale" constant(2.0) frozen : tensor<3xf32>
  %y = nn.matmul %x, %w : tensor<5x4xf32>, tensor<4x3xf32>
  %z = nn.mul %y, %scale : tensor<5x3xf32>, tensor<3xf32>
  %sum, %weight = nn.mse %z, %t : tensor<5x3xf32>, tensor<5x3xf32>
  nn.loss %sum, %weight, %z : tensor<5x3xf32>
}
