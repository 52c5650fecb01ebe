// Roundings stay: they are what the recipe asked for. A product that is also read in its narrow type keeps it.
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

// CHECK-LABEL: func.func @read_twice
// CHECK-NEXT:    %[[P:.*]] = nn.matmul %arg0, %arg1 : tensor<8x4xbf16>, tensor<4x3xbf16>
// CHECK-NEXT:    nn.cast %[[P]] to f32
func.func @read_twice(%x: tensor<8x4xbf16>, %w: tensor<4x3xbf16>) -> (tensor<8x3xf32>, tensor<8x3xbf16>) {
  %0 = nn.matmul %x, %w : tensor<8x4xbf16>, tensor<4x3xbf16>
  %1 = nn.cast %0 to f32 : tensor<8x3xbf16>
  return %1, %0 : tensor<8x3xf32>, tensor<8x3xbf16>
}
