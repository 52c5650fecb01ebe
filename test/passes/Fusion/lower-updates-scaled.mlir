// With a loss scale the gradients in memory are scaled. Check and norm unscale what they read; the update unscales by a factor that waits for the decision, so
// that it cannot share a kernel with them, which would have to keep every new value until the condition is known. The skipped outcome's writes are selected too.
// RUN: descent-opt --lower-updates %s | FileCheck %s

module {
  train.parameter @w : tensor<5x3xf32> {init = #nn.constant<1.0>}
  train.state @w.momentum of @w : tensor<5x3xf32>
  train.state @skipped_steps : tensor<i64>
  train.working_copy @w.bf16 of @w : tensor<5x3xbf16>

  // CHECK-DAG: train.slab @all.gradients "gradients" [@w] at [0] : tensor<1x1024xf32>
  // CHECK-DAG: train.slab @all.working.bf16 "working" [@w.bf16] at [0] : tensor<1x1024xbf16>

  // CHECK-LABEL: train.func @step
  // CHECK-SAME:    %[[DW:arg[0-9]+]]: tensor<5x3xf32>, %[[FACTOR:arg[0-9]+]]: tensor<f32>, %{{.*}}: tensor<f32>, %[[MORE:arg[0-9]+]]: tensor<i64>
  // CHECK:         %[[G:.*]] = train.pack @all.gradients(%[[DW]])
  // CHECK:         %[[U:.*]] = nn.mul %[[G]], %[[FACTOR]] : tensor<1x1024xf32>, tensor<f32>
  // The finite check: a sum of x * 0.
  // CHECK:         %[[NOUGHT:.*]] = nn.mul %[[U]], %{{.*}} : tensor<1x1024xf32>, tensor<f32>
  // CHECK:         nn.reduce_sum %[[NOUGHT]]
  // CHECK:         %[[OK:.*]] = nn.compare eq
  // CHECK:         %[[SQUARE:.*]] = nn.mul %[[U]], %[[U]]
  // CHECK:         nn.reduce_sum %[[SQUARE]]
  // CHECK:         %[[DECIDED:.*]] = nn.where %[[OK]], %[[FACTOR]], %{{.*}} : tensor<i1>, tensor<f32>, tensor<f32>
  // CHECK:         nn.mul %[[G]], %[[DECIDED]] : tensor<1x1024xf32>, tensor<f32>
  // CHECK:         %[[NEWP:.*]] = nn.where %[[OK]], %{{.*}}, %{{.*}} : tensor<i1>, tensor<1x1024xf32>, tensor<1x1024xf32>
  // CHECK:         train.write @all.parameters, %[[NEWP]]
  // CHECK:         %[[COPY:.*]] = nn.cast %[[NEWP]] to bf16
  // CHECK:         train.write @all.working.bf16, %[[COPY]]
  // CHECK:         %[[OLD:.*]] = train.read @skipped_steps
  // CHECK:         %[[COUNT:.*]] = nn.where %[[OK]], %[[OLD]], %[[MORE]]
  // CHECK:         train.write @skipped_steps, %[[COUNT]]
  // CHECK-NOT:     train.unscale
  train.func @step(%dw: tensor<5x3xf32>, %factor: tensor<f32>, %rate: tensor<f32>, %more: tensor<i64>) -> tensor<f32> {
    %u = train.unscale %dw by %factor : tensor<5x3xf32>
    %ok = train.all_finite %u : (tensor<5x3xf32>) -> tensor<i1>
    %norm = train.norm %u : (tensor<5x3xf32>) -> tensor<f32>
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w] with (%u) scale %rate rate %rate count %rate by #train.sgd<momentum = 0.9, nesterov = false> decay 0.0 : tensor<5x3xf32>
    } else {
      train.write @skipped_steps, %more : tensor<i64>
    }
    train.return ["norm"] %norm : tensor<f32>
  }
}
