// Parameters without masters serve the products themselves; states in bf16; stochastic rounding needs a key.
// RUN: descent-opt --narrow-storage %s | FileCheck %s

module attributes {train.storage = #train.storage<master = false, state = bf16, stochastic = true>} {
  // CHECK-DAG: train.parameter @w : tensor<4x3xbf16>
  // CHECK-DAG: train.parameter @b : tensor<3xbf16>
  // CHECK-DAG: train.state @w.m of @w : tensor<4x3xbf16>
  // CHECK-DAG: train.state @updates : tensor<i64>
  // CHECK-NOT: train.working_copy
  train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
  train.parameter @b : tensor<3xf32> {init = #nn.constant<1.0>}
  train.working_copy @w.bf16 of @w : tensor<4x3xbf16>
  train.state @w.m of @w : tensor<4x3xf32>
  train.state @updates : tensor<i64>
  // CHECK-LABEL: train.func @step
  // CHECK-SAME:    tensor<4xi32> {nn.name = "rng", nn.role = "rng"}
  train.func @step(%x: tensor<5x4xbf16>) -> tensor<5x3xf32> {
    // CHECK: %[[W:.*]] = train.read @w : tensor<4x3xbf16>
    %0 = train.read @w.bf16 : tensor<4x3xbf16>
    // CHECK: %[[B:.*]] = train.read @b : tensor<3xbf16>
    // CHECK: %[[WIDE:.*]] = nn.cast %[[B]] to f32
    %1 = train.read @b : tensor<3xf32>
    // CHECK: nn.matmul %{{.*}}, %[[W]]
    %2 = nn.matmul %x, %0 {result_type = f32} : tensor<5x4xbf16>, tensor<4x3xbf16>
    // CHECK: nn.add %{{.*}}, %[[WIDE]]
    %3 = nn.add %2, %1 : tensor<5x3xf32>, tensor<3xf32>
    train.return ["a"] %3 : tensor<5x3xf32>
  }
}
