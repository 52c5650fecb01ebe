// Two parameters of a group become members of slabs at multiples of 16 elements; the rule is built once on the whole slab; the commit's condition selects between
// new and old values, so that a skipped step leaves every bit.
// RUN: descent-opt --lower-updates %s | FileCheck %s

module {
  train.parameter @w : tensor<5x3xf32> {init = #nn.constant<1.0>}
  train.parameter @v : tensor<2xf32> {init = #nn.constant<1.0>}
  train.state @w.momentum of @w : tensor<5x3xf32>
  train.state @v.momentum of @v : tensor<2xf32>
  train.state @updates : tensor<i64>

  // CHECK-DAG: train.slab @all.parameters "parameters" [@w, @v] at [0, 32] : tensor<1x1024xf32>
  // CHECK-DAG: train.slab @all.gradients "gradients" [@w, @v] at [0, 32] : tensor<1x1024xf32>
  // CHECK-DAG: train.slab @all.momentum "optimizer" [@w.momentum, @v.momentum] at [0, 32] : tensor<1x1024xf32>

  // CHECK-LABEL: train.func @step
  // CHECK-SAME:    %[[DW:arg[0-9]+]]: tensor<5x3xf32>, %[[DV:arg[0-9]+]]: tensor<2xf32>
  // CHECK:         %[[G:.*]] = train.pack @all.gradients(%[[DW]], %[[DV]])
  // CHECK:         %[[SQUARE:.*]] = nn.mul %[[G]], %[[G]]
  // CHECK:         nn.reduce_sum %[[SQUARE]]
  // CHECK:         %[[NORM:.*]] = nn.sqrt
  // CHECK:         %[[OK:.*]] = nn.compare lt %[[NORM]]
  // CHECK:         %[[P:.*]] = train.read @all.parameters
  // CHECK:         %[[M:.*]] = train.read @all.momentum
  // CHECK:         %[[NEWP:.*]] = nn.where %[[OK]], %{{.*}}, %[[P]]
  // CHECK:         train.write @all.parameters, %[[NEWP]]
  // CHECK:         %[[NEWM:.*]] = nn.where %[[OK]], %{{.*}}, %[[M]]
  // CHECK:         train.write @all.momentum, %[[NEWM]]
  // CHECK:         %[[OLD:.*]] = train.read @updates
  // CHECK:         %[[T:.*]] = nn.where %[[OK]], %{{.*}}, %[[OLD]]
  // CHECK:         train.write @updates, %[[T]]
  // CHECK-NOT:     train.commit
  train.func @step(%dw: tensor<5x3xf32>, %dv: tensor<2xf32>, %limit: tensor<f32>, %next: tensor<i64>) -> tensor<f32> {
    %norm = train.norm %dw, %dv : (tensor<5x3xf32>, tensor<2xf32>) -> tensor<f32>
    %ok = nn.compare lt %norm, %limit : tensor<f32>, tensor<f32>
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w, @v] with (%dw, %dv) scale %limit rate %limit count %limit by #train.sgd<momentum = 0.9, nesterov = false> decay 0.0 : tensor<5x3xf32>, tensor<2xf32>
      train.write @updates, %next : tensor<i64>
    }
    train.return ["norm"] %norm : tensor<f32>
  }
}
