// Casts of exact casts are one or none; a product that becomes the gradient of a parameter yields its f32 sum, also through a reshape.
// RUN: descent-opt --fold-casts --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @there_and_back
// CHECK-NEXT:    return %arg0
func.func @there_and_back(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = nn.cast %x to f32 : tensor<4xbf16>
  %1 = nn.cast %0 to bf16 : tensor<4xf32>
  return %1 : tensor<4xbf16>
}

// -----

// CHECK-LABEL: func.func @by_way_of_f32
// CHECK-NEXT:    %[[Y:.*]] = nn.cast %arg0 to f16 : tensor<4xbf16>
// CHECK-NEXT:    return %[[Y]]
func.func @by_way_of_f32(%x: tensor<4xbf16>) -> tensor<4xf16> {
  %0 = nn.cast %x to f32 : tensor<4xbf16>
  %1 = nn.cast %0 to f16 : tensor<4xf32>
  return %1 : tensor<4xf16>
}

// -----

// The gradient of a weight, and of one that is used twice, once through a reshape.
train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
train.parameter @v : tensor<4x3xf32> {init = #nn.constant<1.0>}
// CHECK-LABEL: train.func @weight_gradients
// CHECK-NEXT:    %[[W:.*]] = nn.matmul %arg0, %arg1 {result_type = f32, transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
// CHECK-NEXT:    train.gradient @w, %[[W]] : tensor<4x3xf32>
// CHECK-NEXT:    %[[A:.*]] = nn.matmul %arg0, %arg1 {result_type = f32, transpose_a}
// CHECK-NEXT:    %[[B:.*]] = nn.matmul %arg2, %arg3 {result_type = f32, transpose_a}
// CHECK-NEXT:    %[[R:.*]] = nn.reshape %[[B]] [4, 3] : tensor<2x6xf32>
// CHECK-NEXT:    %[[SUM:.*]] = nn.add %[[A]], %[[R]]
// CHECK-NEXT:    train.gradient @v, %[[SUM]]
train.func @weight_gradients(%x: tensor<8x4xbf16>, %dy: tensor<8x3xbf16>, %p: tensor<8x2xbf16>, %q: tensor<8x6xbf16>) {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
  %1 = nn.cast %0 to f32 : tensor<4x3xbf16>
  train.gradient @w, %1 : tensor<4x3xf32>
  %2 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
  %3 = nn.cast %2 to f32 : tensor<4x3xbf16>
  %4 = nn.matmul %p, %q {transpose_a} : tensor<8x2xbf16>, tensor<8x6xbf16>
  %5 = nn.reshape %4 [4, 3] : tensor<2x6xbf16>
  %6 = nn.cast %5 to f32 : tensor<4x3xbf16>
  %7 = nn.add %3, %6 : tensor<4x3xf32>, tensor<4x3xf32>
  train.gradient @v, %7 : tensor<4x3xf32>
  train.return []
}
