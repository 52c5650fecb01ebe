// Roundings stay: they are what the recipe asked for. So do narrow products that something in f32 reads, such as logits.
// RUN: descent-opt --fold-casts --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @rounds
// CHECK-NEXT:    nn.cast %arg0 to bf16
// CHECK-NEXT:    nn.cast %{{.*}} to f32
func.func @rounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.cast %x to bf16 : tensor<4xf32>
  %1 = nn.cast %0 to f32 : tensor<4xbf16>
  return %1 : tensor<4xf32>
}

// -----

// f16 does not hold all of bf16.
// CHECK-LABEL: func.func @neither_holds_the_other
// CHECK-NEXT:    nn.cast %arg0 to f16
// CHECK-NEXT:    nn.cast %{{.*}} to bf16
func.func @neither_holds_the_other(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = nn.cast %x to f16 : tensor<4xbf16>
  %1 = nn.cast %0 to bf16 : tensor<4xf16>
  return %1 : tensor<4xbf16>
}

// -----

// CHECK-LABEL: func.func @logits
// CHECK-NEXT:    %[[P:.*]] = nn.matmul %arg0, %arg1 : tensor<8x4xbf16>, tensor<4x3xbf16>
// CHECK-NEXT:    nn.cast %[[P]] to f32
func.func @logits(%x: tensor<8x4xbf16>, %w: tensor<4x3xbf16>) -> tensor<8x3xf32> {
  %0 = nn.matmul %x, %w : tensor<8x4xbf16>, tensor<4x3xbf16>
  %1 = nn.cast %0 to f32 : tensor<8x3xbf16>
  return %1 : tensor<8x3xf32>
}

// -----

// Read in its narrow type as well.
train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
// CHECK-LABEL: train.func @read_twice
// CHECK-NEXT:    %[[P:.*]] = nn.matmul %arg0, %arg1 {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
// CHECK-NEXT:    nn.cast %[[P]] to f32
train.func @read_twice(%x: tensor<8x4xbf16>, %dy: tensor<8x3xbf16>) -> tensor<4x3xbf16> {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xbf16>, tensor<8x3xbf16>
  %1 = nn.cast %0 to f32 : tensor<4x3xbf16>
  train.gradient @w, %1 : tensor<4x3xf32>
  train.return ["a"] %0 : tensor<4x3xbf16>
}
