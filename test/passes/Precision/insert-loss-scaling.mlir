// The order that semantics demand, to read as documentation: seed scaled, gradient unscaled once, finite check, norm, clip, commit; and the books of both outcomes.
// A batch weighs 5 * 3 = 15, which is rounded up to 16.
// RUN: descent-opt --differentiate --insert-optimizer --insert-loss-scaling %s | FileCheck %s
// Without a scale the backward pass starts from one.
// RUN: sed 's/train.loss_scale = #train.dynamic.*>,//' %s | descent-opt --differentiate --insert-optimizer --insert-loss-scaling | FileCheck %s --check-prefix=NONE

module attributes {
  train.loss_scale = #train.dynamic_scale<initial = 65536.0, growth = 2.0, backoff = 0.5, interval = 2000, floor = 1.0>,
  train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>, train.clip_norm = 1.0
} {
  // CHECK-DAG: train.state @loss_scale : tensor<f32> {initial = 6.553600e+04 : f64}
  // CHECK-DAG: train.state @clean_steps : tensor<i64>
  // CHECK-DAG: train.state @skipped_steps : tensor<i64>

  // CHECK-LABEL: train.func @step
  // CHECK:         %[[STATE:.*]] = train.read @loss_scale : tensor<f32>
  // CHECK:         %[[S:.*]] = nn.maximum %[[STATE]]
  // CHECK-NEXT:    %[[SEED:.*]] = train.scale_loss %[[S]] expected 1.600000e+01
  // CHECK:         %[[DW:.*]] = nn.matmul %{{.*}} {transpose_a}
  // CHECK:         %[[E:.*]] = nn.constant dense<1.600000e+01>
  // CHECK:         %[[FACTOR:.*]] = nn.div %[[E]], %[[S]]
  // CHECK:         %[[U:.*]] = train.unscale %[[DW]] by %[[FACTOR]] : tensor<4x3xf32>
  // CHECK:         %[[FINITE:.*]] = train.all_finite %[[U]]
  // CHECK:         %[[NORM:.*]] = train.norm %[[U]]
  // CHECK:         train.commit if %{{.*}} : tensor<i1> {
  // CHECK-NEXT:      train.update "decay" [@w] with (%[[U]])
  // CHECK-NEXT:      train.write @updates
  // CHECK-NEXT:      train.write @loss_scale
  // CHECK-NEXT:      train.write @clean_steps
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      train.write @skipped_steps
  // CHECK-NEXT:      train.write @loss_scale
  // CHECK-NEXT:      train.write @clean_steps
  // CHECK:         train.return {{.*}}"committed", "unscale", "loss_scale"]

  // NONE-LABEL: train.func @step
  // NONE:         nn.constant dense<1.000000e+00> : tensor<f32>
  // NONE-NOT:     train.unscale
  // NONE:         train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"]
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x3xf32> {nn.role = "target"}) {
    %w = nn.parameter "w" normal(0.0, 0.5) : tensor<4x3xf32>
    %y = nn.matmul %x, %w : tensor<5x4xf32>, tensor<4x3xf32>
    %sum, %weight = nn.mse %y, %t : tensor<5x3xf32>, tensor<5x3xf32>
    nn.loss %sum, %weight, %y : tensor<5x3xf32>
  }
}
