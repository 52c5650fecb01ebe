// fp8 with scales of past steps: forward operands in E4M3, the gradient in E5M2, x and its transpose's reader rounded once, and one row of history for each of the
// three tensors, shifted by the commit.
// RUN: descent-opt --differentiate --fold-casts --insert-optimizer --quantize-products %s | FileCheck %s
// RUN: sed 's/"delayed"/"current"/' %s | descent-opt --differentiate --fold-casts --insert-optimizer --quantize-products | FileCheck %s --check-prefix=CURRENT

module attributes {
  train.quantize = #train.quantize<format = "fp8", scaling = "delayed", history = 16, margin = 0>,
  train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>
} {
  // CHECK: train.state @amax_history : tensor<3x16xf32>
  // CURRENT-NOT: amax_history
  // CHECK-LABEL: train.func @step
  // CHECK:         %[[HISTORY:.*]] = train.read @amax_history
  // CHECK:         %[[PAST:.*]] = nn.reduce_max %[[HISTORY]] [1]
  // CHECK:         %[[X:.*]] = nn.cast %{{.*}} to f8E4M3FN : tensor<5x4xf32>
  // CHECK:         %[[W:.*]] = nn.cast %{{.*}} to f8E4M3FN : tensor<4x3xf32>
  // CHECK:         %[[P:.*]] = nn.matmul %[[X]], %[[W]] {result_type = f32} : tensor<5x4xf8E4M3FN>, tensor<4x3xf8E4M3FN>
  // CHECK:         %[[U:.*]] = nn.mul %[[P]], %{{.*}} : tensor<5x3xf32>, tensor<f32>
  // CHECK:         nn.cast %[[U]] to bf16
  // CHECK:         %[[DY:.*]] = nn.cast %{{.*}} to f8E5M2 : tensor<5x3xf32>
  // CHECK:         nn.matmul %[[X]], %[[DY]] {result_type = f32, transpose_a} : tensor<5x4xf8E4M3FN>, tensor<5x3xf8E5M2>
  // CHECK:         %[[OLD:.*]] = nn.slice %[[HISTORY]] from [0, 0] to [3, 15] by [1, 1]
  // CHECK:         %[[NEXT:.*]] = nn.concat %{{.*}}, %[[OLD]] axis 1
  // CHECK:         train.commit
  // CHECK:           train.write @amax_history, %[[NEXT]]
  // CHECK-LABEL: train.func @evaluate
  // CHECK:         train.read @amax_history
  // CHECK:         nn.matmul {{.*}} : tensor<5x4xf8E4M3FN>, tensor<4x3xf8E4M3FN>

  // CURRENT-LABEL: train.func @step
  // CURRENT:         nn.reduce_max %{{.*}} [0, 1] : tensor<5x4xf32>
  nn.model @m(%x: tensor<5x4xbf16> {nn.role = "data"}, %t: tensor<5x3xf32> {nn.role = "target"}) {
    %w = nn.parameter "w" normal(0.0, 0.5) : tensor<4x3xf32>
    %wb = nn.cast %w to bf16 : tensor<4x3xf32>
    %y = nn.matmul %x, %wb : tensor<5x4xbf16>, tensor<4x3xbf16>
    %yf = nn.cast %y to f32 : tensor<5x3xbf16>
    %sum, %weight = nn.mse %yf, %t : tensor<5x3xf32>, tensor<5x3xf32>
    nn.loss %sum, %weight, %yf : tensor<5x3xf32>
  }
}
