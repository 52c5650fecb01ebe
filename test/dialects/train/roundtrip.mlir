// Every op and attribute of the dialect, printed and parsed again, in its own syntax and in the generic one.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-opt --mlir-print-op-generic %s | descent-opt | FileCheck %s

// CHECK: module attributes {
// CHECK-SAME: train.clip_norm = 1.000000e+00 : f64
// CHECK-SAME: train.groups = [#train.group<match = "head.*", rate_scale = 0.5, weight_decay = -1.0>]
// CHECK-SAME: train.optimizer = #train.adam<beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-08, decoupled = true>
// CHECK-SAME: train.schedule = #train.cosine<rate = 0.001, min_rate = 0.0, warmup = 10, steps = 100>
module attributes {
  train.clip_norm = 1.0 : f64,
  train.groups = [#train.group<match = "head.*", rate_scale = 0.5, weight_decay = -1.0>],
  train.optimizer = #train.adam<beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-8, decoupled = true>,
  train.schedule = #train.cosine<rate = 1.0e-3, min_rate = 0.0, warmup = 10, steps = 100>,
  // CHECK-SAME: train.test.rules = [#train.sgd<momentum = 0.9, nesterov = true>, #train.constant<rate = 0.1, warmup = 0>, #train.linear<rate = 0.1, min_rate = 0.01, warmup = 1, steps = 9>]
  train.test.rules = [#train.sgd<momentum = 0.9, nesterov = true>, #train.constant<rate = 0.1, warmup = 0>,
                      #train.linear<rate = 0.1, min_rate = 0.01, warmup = 1, steps = 9>]
} {
  // CHECK-NEXT: train.parameter @w : tensor<5x3xf32> {group = "all", init = #nn.normal<0.0, 0.02>, weight_decay = 1.000000e-01 : f64}
  train.parameter @w : tensor<5x3xf32> {init = #nn.normal<0.0, 0.02>, group = "all", weight_decay = 0.1 : f64}
  // CHECK-NEXT: train.parameter @v : tensor<3xf32> {frozen, init = #nn.constant<1.0>}
  train.parameter @v : tensor<3xf32> {init = #nn.constant<1.0>, frozen}
  // CHECK-NEXT: train.state @w.m of @w : tensor<5x3xf32>
  train.state @w.m of @w : tensor<5x3xf32>
  // CHECK-NEXT: train.state @updates : tensor<i64> {initial = 3.000000e+00 : f64}
  train.state @updates : tensor<i64> {initial = 3.0 : f64}
  // CHECK-NEXT: train.slab @all.gradients "gradients" [@w] at [0] : tensor<1x1024xf32>
  train.slab @all.gradients "gradients" [@w] at [0] : tensor<1x1024xf32>

  // CHECK-LABEL: train.func @step(%{{.*}}: tensor<5x3xf32> {nn.name = "x"}, %{{.*}}: tensor<f32>, %{{.*}}: tensor<i1>, %{{.*}}: tensor<i64>) -> (tensor<f32>, tensor<1x1024xf32>) {
  train.func @step(%x: tensor<5x3xf32> {nn.name = "x"}, %s: tensor<f32>, %ok: tensor<i1>, %t: tensor<i64>) -> (tensor<f32>, tensor<1x1024xf32>) {
    // CHECK-NEXT: train.read @w : tensor<5x3xf32>
    %w = train.read @w : tensor<5x3xf32>
    // CHECK-NEXT: train.gradient @w, %{{.*}} : tensor<5x3xf32>
    train.gradient @w, %x : tensor<5x3xf32>
    // CHECK-NEXT: train.norm %{{.*}}, %{{.*}} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<f32>
    %n = train.norm %x, %w : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<f32>
    // CHECK-NEXT: train.pack @all.gradients(%{{.*}}) : (tensor<5x3xf32>) -> tensor<1x1024xf32>
    %p = train.pack @all.gradients(%x) : (tensor<5x3xf32>) -> tensor<1x1024xf32>
    // CHECK-NEXT: train.commit if %{{.*}} : tensor<i1> {
    train.commit if %ok : tensor<i1> {
      // CHECK-NEXT: train.update "all" [@w] with (%{{.*}}) scale %{{.*}} rate %{{.*}} count %{{.*}} by #train.sgd<momentum = 0.0, nesterov = false> decay 1.000000e-01 : tensor<5x3xf32>
      train.update "all" [@w] with (%x) scale %s rate %s count %s by #train.sgd<momentum = 0.0, nesterov = false> decay 0.1 : tensor<5x3xf32>
      // CHECK-NEXT: train.write @updates, %{{.*}} : tensor<i64>
      train.write @updates, %t : tensor<i64>
    }
    // CHECK: train.return ["norm", "packed"] %{{.*}}, %{{.*}} : tensor<f32>, tensor<1x1024xf32>
    train.return ["norm", "packed"] %n, %p : tensor<f32>, tensor<1x1024xf32>
  }
}
