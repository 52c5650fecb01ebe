// A product whose type an override gave is not quantized, and neither are the two products of its gradient; the other is.
// RUN: descent-opt --insert-precision-casts --differentiate --insert-optimizer --quantize-products %s | FileCheck %s
// RUN: sed 's/compute = bf16/compute = f32/; s/"fp8"/"tf32"/; s/type = bf16/type = f32/' %s | descent-opt --insert-precision-casts --differentiate --insert-optimizer --quantize-products | FileCheck %s --check-prefix=TF32

module attributes {
  train.compute = bf16, train.overrides = [#train.override<op = "matmul", match = "head", type = bf16>],
  train.quantize = #train.quantize<format = "fp8", scaling = "current", history = 1, margin = 0>,
  train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>
} {
  // CHECK-LABEL: train.func @step
  // CHECK-NOT:     train.unquantized
  // CHECK:         nn.matmul {{.*}} : tensor<5x4xf8E4M3FN>, tensor<4x6xf8E4M3FN>
  // CHECK:         nn.matmul {{.*}} : tensor<5x6xbf16>, tensor<6x3xbf16>
  // CHECK:         nn.matmul {{.*}} {transpose_b} : tensor<5x3xbf16>, tensor<6x3xbf16>
  // CHECK:         nn.matmul {{.*}} {transpose_a} : tensor<5x6xbf16>, tensor<5x3xbf16>
  // CHECK:         nn.matmul {{.*}} {result_type = f32, transpose_a} : tensor<5x4xf8E4M3FN>, tensor<5x6xf8E5M2>
  // CHECK-LABEL: train.func @evaluate
  // CHECK:         nn.matmul {{.*}} : tensor<5x6xbf16>, tensor<6x3xbf16>

  // TF32-LABEL: train.func @step
  // TF32:         nn.round_tf32 %{{.*}} : tensor<5x4xf32>
  // TF32:         nn.round_tf32 %{{.*}} : tensor<4x6xf32>
  // TF32:         nn.round_tf32 %{{.*}} : tensor<5x6xf32>
  // TF32-NOT:     nn.round_tf32
  // TF32-LABEL: train.func @evaluate
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x3xf32> {nn.role = "target"}) {
    %w = nn.parameter "body" normal(0.0, 0.5) : tensor<4x6xf32>
    %h = nn.matmul %x, %w : tensor<5x4xf32>, tensor<4x6xf32>
    %v = nn.parameter "head" normal(0.0, 0.5) : tensor<6x3xf32>
    %y = nn.matmul %h, %v : tensor<5x6xf32>, tensor<6x3xf32>
    %sum, %weight = nn.mse %y, %t : tensor<5x3xf32>, tensor<5x3xf32>
    nn.loss %sum, %weight, %y : tensor<5x3xf32>
  }
}
