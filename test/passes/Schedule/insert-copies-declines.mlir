// Nothing is copied where each gradient has its own producer, and views do not count as producers.
// RUN: descent-opt --insert-copies %s | FileCheck %s --implicit-check-not=copy

module {
  train.parameter @u : tensor<2x2xf32> {init = #nn.constant<1.0>}
  train.slab @g "gradients" [@u] at [0] : tensor<1x1024xf32>
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  // CHECK-LABEL: train.func @step
  train.func @step(%x: tensor<4xf32>) -> tensor<1x1024xf32> {
    %a = exec.launch @next(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = nn.reshape %a [2, 2] : tensor<4xf32>
    // CHECK: train.pack @g
    %p = train.pack @g(%b) : (tensor<2x2xf32>) -> tensor<1x1024xf32>
    train.return ["p"] %p : tensor<1x1024xf32>
  }
}
