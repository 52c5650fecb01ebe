// The cast of a parameter becomes a copy that lives from step to step; the forward pass of @step and @evaluate reads the same one. A frozen parameter is cast
// each time, since no update would write its copy.
// RUN: descent-opt --keep-working-copies %s | FileCheck %s

// CHECK-DAG: train.parameter @w : tensor<4x3xf32>
// CHECK-DAG: train.working_copy @w.bf16 of @w : tensor<4x3xbf16>
// CHECK-NOT: train.working_copy @f
train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
train.parameter @f : tensor<4x3xf32> {init = #nn.constant<1.0>, frozen}
// CHECK-LABEL: train.func @step
train.func @step(%x: tensor<5x4xbf16>) -> (tensor<5x3xbf16>, tensor<5x3xbf16>) {
  // CHECK:      %[[W:.*]] = train.read @w.bf16 : tensor<4x3xbf16>
  // CHECK:      %[[READ:.*]] = train.read @f : tensor<4x3xf32>
  // CHECK:      %[[F:.*]] = nn.cast %[[READ]] to bf16
  // CHECK:      nn.matmul %{{.*}}, %[[W]]
  // CHECK:      nn.matmul %{{.*}}, %[[F]]
  %0 = train.read @w : tensor<4x3xf32>
  %1 = nn.cast %0 to bf16 : tensor<4x3xf32>
  %2 = train.read @f : tensor<4x3xf32>
  %3 = nn.cast %2 to bf16 : tensor<4x3xf32>
  %4 = nn.matmul %x, %1 : tensor<5x4xbf16>, tensor<4x3xbf16>
  %5 = nn.matmul %x, %3 : tensor<5x4xbf16>, tensor<4x3xbf16>
  train.return ["a", "b"] %4, %5 : tensor<5x3xbf16>, tensor<5x3xbf16>
}
// CHECK-LABEL: train.func @evaluate
// CHECK:         train.read @w.bf16
// CHECK-NOT:     nn.cast
train.func @evaluate(%x: tensor<5x4xbf16>) -> tensor<5x3xbf16> {
  %0 = train.read @w : tensor<4x3xf32>
  %1 = nn.cast %0 to bf16 : tensor<4x3xf32>
  %2 = nn.matmul %x, %1 : tensor<5x4xbf16>, tensor<4x3xbf16>
  train.return ["a"] %2 : tensor<5x3xbf16>
}
