// One atomic update: the gradient of the sum is scaled by one over the weight and the clip in one factor, the condition is false for NaN, infinity and an empty
// batch, matrices and vectors fall into groups with and without decay, and a pattern makes a group of its own.
// RUN: descent-opt --insert-optimizer %s | FileCheck %s

module attributes {
  train.optimizer = #train.adam<beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-8, decoupled = true>,
  train.schedule = #train.cosine<rate = 1.0e-3, min_rate = 1.0e-4, warmup = 10, steps = 100>,
  train.weight_decay = 0.1, train.clip_norm = 1.0,
  train.groups = [#train.group<match = "head.*", rate_scale = 0.5, weight_decay = 0.0>]
} {
  // CHECK-DAG: train.parameter @w : tensor<4x3xf32> {group = "decay", init = #nn.constant<1.0>, weight_decay = 1.000000e-01 : f64}
  // CHECK-DAG: train.parameter @b : tensor<3xf32> {group = "no_decay"
  // CHECK-DAG: train.parameter @head.w : tensor<3x3xf32> {group = "head.*", init = #nn.constant<1.0>, rate_scale = 5.000000e-01 : f64}
  train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
  train.parameter @b : tensor<3xf32> {init = #nn.constant<0.0>}
  train.parameter @head.w : tensor<3x3xf32> {init = #nn.constant<1.0>}
  // CHECK-DAG: train.state @w.m of @w : tensor<4x3xf32>
  // CHECK-DAG: train.state @w.v of @w : tensor<4x3xf32>
  // CHECK-DAG: train.state @updates : tensor<i64>

  // CHECK-LABEL: train.func @step
  // CHECK:         %[[T:.*]] = train.read @updates
  // CHECK:         %[[NEXT:.*]] = nn.add %[[T]]
  // CHECK:         %[[FINITE:.*]] = train.all_finite %arg2, %arg3, %arg4
  // CHECK:         %[[NORM:.*]] = train.norm
  // CHECK:         %[[INVERSE:.*]] = nn.div %{{.*}}, %arg1
  // CHECK:         %[[MEAN:.*]] = nn.mul %[[NORM]], %[[INVERSE]]
  // CHECK:         nn.compare gt %[[MEAN]]
  // CHECK:         %[[SCALE:.*]] = nn.mul %[[INVERSE]]
  // CHECK:         %[[BOUNDED:.*]] = nn.compare lt %[[MEAN]]
  // CHECK:         %[[SOUND:.*]] = nn.compare lt
  // CHECK:         %[[BOTH:.*]] = nn.where %[[SOUND]], %[[BOUNDED]]
  // CHECK:         %[[OK:.*]] = nn.where %[[FINITE]], %[[BOTH]]
  // CHECK:         train.commit if %[[OK]]
  // CHECK-NEXT:      train.update "decay" [@w] with ({{.*}}) scale %[[SCALE]]
  // CHECK-NEXT:      train.update "no_decay" [@b]
  // CHECK-NEXT:      train.update "head.*" [@head.w]
  // CHECK-NEXT:      train.write @updates, %[[NEXT]]
  // CHECK:         train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %arg0, %arg1, %[[MEAN]], %{{.*}}, %[[OK]]
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<4x3xf32>, %db: tensor<3xf32>, %dh: tensor<3x3xf32>) -> (tensor<f32>, tensor<f32>) {
    train.gradient @w, %dw : tensor<4x3xf32>
    train.gradient @b, %db : tensor<3xf32>
    train.gradient @head.w, %dh : tensor<3x3xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}
