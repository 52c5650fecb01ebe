// A classifier of two layers in bf16, to read as documentation: products run in bf16, each sum meets its bias in f32 and is rounded once, the activation
// follows its input, the norm and the loss are f32, and parameters stay f32 behind the casts.
// RUN: descent-opt --insert-precision-casts %s | FileCheck %s

module attributes {train.compute = bf16} {
  // CHECK-LABEL: nn.model @m
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5xi32> {nn.role = "target"}) {
    %w0 = nn.parameter "fc0.weight" normal(0.0, 0.5) : tensor<4x6xf32>
    %b0 = nn.parameter "fc0.bias" zeros : tensor<6xf32>
    // CHECK:      %[[X:.*]] = nn.cast %arg0 to bf16 : tensor<5x4xf32>
    // CHECK:      %[[W0:.*]] = nn.cast %{{.*}} to bf16 : tensor<4x6xf32>
    // CHECK-NEXT: %[[P0:.*]] = nn.matmul %[[X]], %[[W0]] {result_type = f32} : tensor<5x4xbf16>, tensor<4x6xbf16>
    // CHECK-NEXT: %[[S0:.*]] = nn.add %[[P0]], %{{.*}} : tensor<5x6xf32>, tensor<6xf32>
    // CHECK-NEXT: %[[H0:.*]] = nn.cast %[[S0]] to bf16
    %0 = nn.matmul %x, %w0 : tensor<5x4xf32>, tensor<4x6xf32>
    %1 = nn.add %0, %b0 : tensor<5x6xf32>, tensor<6xf32>
    // CHECK-NEXT: %[[A:.*]] = nn.relu %[[H0]] : tensor<5x6xbf16>
    %2 = nn.relu %1 : tensor<5x6xf32>
    %gain = nn.parameter "norm.gain" ones : tensor<6xf32>
    %bias = nn.parameter "norm.bias" zeros : tensor<6xf32>
    // CHECK:      %[[WIDE:.*]] = nn.cast %[[A]] to f32 : tensor<5x6xbf16>
    // CHECK-NEXT: %[[N:.*]] = nn.layer_norm %[[WIDE]], %{{.*}} : tensor<5x6xf32>
    %3 = nn.layer_norm %2, %gain, %bias : tensor<5x6xf32>, tensor<6xf32>, tensor<6xf32>
    // A residual: the wider of the two.
    // CHECK:      %[[R:.*]] = nn.add %[[N]], %[[WIDE]] : tensor<5x6xf32>
    %4 = nn.add %3, %2 : tensor<5x6xf32>, tensor<5x6xf32>
    %w1 = nn.parameter "fc1.weight" normal(0.0, 0.5) : tensor<6x3xf32>
    // Without a bias the product's result is bf16.
    // CHECK:      %[[RB:.*]] = nn.cast %[[R]] to bf16
    // CHECK:      %[[L:.*]] = nn.matmul %[[RB]], %{{.*}} : tensor<5x6xbf16>, tensor<6x3xbf16>
    %5 = nn.matmul %4, %w1 : tensor<5x6xf32>, tensor<6x3xf32>
    // CHECK-NEXT: %[[LF:.*]] = nn.cast %[[L]] to f32
    // CHECK-NEXT: %[[SUM:.*]], %[[WEIGHT:.*]] = nn.cross_entropy %[[LF]]
    %sum, %weight = nn.cross_entropy %5, %t : tensor<5x3xf32>, tensor<5xi32>
    // CHECK-NEXT: nn.loss %[[SUM]], %[[WEIGHT]], %[[LF]] : tensor<5x3xf32>
    nn.loss %sum, %weight, %5 : tensor<5x3xf32>
  }
}
