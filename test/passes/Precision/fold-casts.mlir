// Casts of exact casts are one or none; a product that is only widened yields its f32 sum, also through a reshape.
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

// The gradient of a weight.
// CHECK-LABEL: func.func @weight_gradient
// CHECK-NEXT:    %[[Y:.*]] = nn.matmul %arg0, %arg1 {result_type = f32, transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
// CHECK-NEXT:    return %[[Y]] : tensor<4x3xf32>
func.func @weight_gradient(%x: tensor<8x4xbf16>, %dy: tensor<8x3xbf16>) -> tensor<4x3xf32> {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
  %1 = nn.cast %0 to f32 : tensor<4x3xbf16>
  return %1 : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: func.func @through_a_reshape
// CHECK-NEXT:    %[[P:.*]] = nn.matmul %arg0, %arg1 {result_type = f32}
// CHECK-NEXT:    nn.reshape %[[P]] {{.*}} : tensor<8x3xf32>
func.func @through_a_reshape(%x: tensor<8x4xbf16>, %w: tensor<4x3xbf16>) -> tensor<2x4x3xf32> {
  %0 = nn.matmul %x, %w : tensor<8x4xbf16>, tensor<4x3xbf16>
  %1 = nn.reshape %0 [2, 4, 3] : tensor<8x3xbf16>
  %2 = nn.cast %1 to f32 : tensor<2x4x3xbf16>
  return %2 : tensor<2x4x3xf32>
}
