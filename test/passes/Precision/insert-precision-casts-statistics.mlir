// Statistics of values that no narrow op made stay f32 under a narrow compute type: nothing rounds {4096, 4096.5, 4096, 4096.5}, whose variance is 0.0625, and
// of bf16 values sums, means and norms are taken in f32.
// RUN: descent-opt --insert-precision-casts %s | FileCheck %s
// RUN: sed s/bf16/f16/ %s | descent-opt --insert-precision-casts | FileCheck %s

module attributes {train.compute = bf16} {
  // CHECK-LABEL: nn.model @m
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"}) {
    %w = nn.parameter "w" normal(0.0, 0.5) : tensor<4x4xf32>
    %gain = nn.parameter "gain" ones : tensor<4xf32>
    %bias = nn.parameter "bias" zeros : tensor<4xf32>
    // CHECK-NOT: nn.cast
    // CHECK: nn.reduce_mean {{.*}} : tensor<5x4xf32>
    %mean = nn.reduce_mean %x [1] keep : tensor<5x4xf32>
    // CHECK: nn.sub {{.*}} : tensor<5x4xf32>, tensor<5x1xf32>
    %centred = nn.sub %x, %mean : tensor<5x4xf32>, tensor<5x1xf32>
    // CHECK: nn.mul {{.*}} : tensor<5x4xf32>, tensor<5x4xf32>
    %squares = nn.mul %centred, %centred : tensor<5x4xf32>, tensor<5x4xf32>
    // CHECK: nn.reduce_mean {{.*}} : tensor<5x4xf32>
    %variance = nn.reduce_mean %squares [1] keep : tensor<5x4xf32>
    %scaled = nn.mul %centred, %variance : tensor<5x4xf32>, tensor<5x1xf32>
    // CHECK: %[[PRODUCT:.*]] = nn.matmul {{.*}} : tensor<5x4x[[NARROW:b?f16]]>, tensor<4x4x[[NARROW]]>
    %0 = nn.matmul %scaled, %w : tensor<5x4xf32>, tensor<4x4xf32>
    // CHECK: %[[WIDE:.*]] = nn.cast %[[PRODUCT]] to f32
    // CHECK: nn.layer_norm %[[WIDE]], {{.*}} : tensor<5x4xf32>, tensor<4xf32>, tensor<4xf32>
    %1 = nn.layer_norm %0, %gain, %bias {epsilon = 1.0e-5} : tensor<5x4xf32>, tensor<4xf32>, tensor<4xf32>
    %sum, %weight = nn.mse %1, %t : tensor<5x4xf32>, tensor<5x4xf32>
    nn.loss %sum, %weight, %1 : tensor<5x4xf32>
  }
}
