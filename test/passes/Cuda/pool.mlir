// Max pooling and its gradient in device code, run by the emulator with all its checks: windows that touch, overlap, hang over and leave gaps; channels that 16 bytes
// divide and do not. Few distinct values, so that windows have ties.
// RUN: descent-run --compiled --rounded --target=cuda-emulated %s

func.func @touching_4f32(%i: tensor<2x8x8x4xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x8x8x4xf32> {check.range = [0.5, 0.5]}) -> tensor<2x4x4x4xf32> {
  %f = nn.cast %i to f32 : tensor<2x8x8x4xi32>
  %z = nn.add %f, %x : tensor<2x8x8x4xf32>, tensor<2x8x8x4xf32>
  %y = nn.max_pool2d %z kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x8x8x4xf32>
  return %y : tensor<2x4x4x4xf32>
}
func.func @touching_3f32(%i: tensor<2x8x8x3xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x8x8x3xf32> {check.range = [0.5, 0.5]}) -> tensor<2x4x4x3xf32> {
  %f = nn.cast %i to f32 : tensor<2x8x8x3xi32>
  %z = nn.add %f, %x : tensor<2x8x8x3xf32>, tensor<2x8x8x3xf32>
  %y = nn.max_pool2d %z kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x8x8x3xf32>
  return %y : tensor<2x4x4x3xf32>
}
func.func @touching_8bf16(%i: tensor<2x8x8x8xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x8x8x8xbf16> {check.range = [0.5, 0.5]}) -> tensor<2x4x4x8xbf16> {
  %f = nn.cast %i to bf16 : tensor<2x8x8x8xi32>
  %z = nn.add %f, %x : tensor<2x8x8x8xbf16>, tensor<2x8x8x8xbf16>
  %y = nn.max_pool2d %z kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x8x8x8xbf16>
  return %y : tensor<2x4x4x8xbf16>
}
func.func @touching_5bf16(%i: tensor<2x8x8x5xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x8x8x5xbf16> {check.range = [0.5, 0.5]}) -> tensor<2x4x4x5xbf16> {
  %f = nn.cast %i to bf16 : tensor<2x8x8x5xi32>
  %z = nn.add %f, %x : tensor<2x8x8x5xbf16>, tensor<2x8x8x5xbf16>
  %y = nn.max_pool2d %z kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x8x8x5xbf16>
  return %y : tensor<2x4x4x5xbf16>
}
func.func @overlapping_4f32(%i: tensor<2x7x9x4xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x7x9x4xf32> {check.range = [0.5, 0.5]}) -> tensor<2x4x5x4xf32> {
  %f = nn.cast %i to f32 : tensor<2x7x9x4xi32>
  %z = nn.add %f, %x : tensor<2x7x9x4xf32>, tensor<2x7x9x4xf32>
  %y = nn.max_pool2d %z kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x4xf32>
  return %y : tensor<2x4x5x4xf32>
}
func.func @overlapping_3f32(%i: tensor<2x7x9x3xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x7x9x3xf32> {check.range = [0.5, 0.5]}) -> tensor<2x4x5x3xf32> {
  %f = nn.cast %i to f32 : tensor<2x7x9x3xi32>
  %z = nn.add %f, %x : tensor<2x7x9x3xf32>, tensor<2x7x9x3xf32>
  %y = nn.max_pool2d %z kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x3xf32>
  return %y : tensor<2x4x5x3xf32>
}
func.func @overlapping_8bf16(%i: tensor<2x7x9x8xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x7x9x8xbf16> {check.range = [0.5, 0.5]}) -> tensor<2x4x5x8xbf16> {
  %f = nn.cast %i to bf16 : tensor<2x7x9x8xi32>
  %z = nn.add %f, %x : tensor<2x7x9x8xbf16>, tensor<2x7x9x8xbf16>
  %y = nn.max_pool2d %z kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x8xbf16>
  return %y : tensor<2x4x5x8xbf16>
}
func.func @overlapping_5bf16(%i: tensor<2x7x9x5xi32> {check.range = [-2.0, 3.0]}, %x: tensor<2x7x9x5xbf16> {check.range = [0.5, 0.5]}) -> tensor<2x4x5x5xbf16> {
  %f = nn.cast %i to bf16 : tensor<2x7x9x5xi32>
  %z = nn.add %f, %x : tensor<2x7x9x5xbf16>, tensor<2x7x9x5xbf16>
  %y = nn.max_pool2d %z kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x5xbf16>
  return %y : tensor<2x4x5x5xbf16>
}
func.func @every_4f32(%i: tensor<1x5x5x4xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x5x5x4xf32> {check.range = [0.5, 0.5]}) -> tensor<1x5x5x4xf32> {
  %f = nn.cast %i to f32 : tensor<1x5x5x4xi32>
  %z = nn.add %f, %x : tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>
  %y = nn.max_pool2d %z kernel [3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<1x5x5x4xf32>
  return %y : tensor<1x5x5x4xf32>
}
func.func @every_3f32(%i: tensor<1x5x5x3xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x5x5x3xf32> {check.range = [0.5, 0.5]}) -> tensor<1x5x5x3xf32> {
  %f = nn.cast %i to f32 : tensor<1x5x5x3xi32>
  %z = nn.add %f, %x : tensor<1x5x5x3xf32>, tensor<1x5x5x3xf32>
  %y = nn.max_pool2d %z kernel [3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<1x5x5x3xf32>
  return %y : tensor<1x5x5x3xf32>
}
func.func @every_8bf16(%i: tensor<1x5x5x8xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x5x5x8xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x5x5x8xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x5x5x8xi32>
  %z = nn.add %f, %x : tensor<1x5x5x8xbf16>, tensor<1x5x5x8xbf16>
  %y = nn.max_pool2d %z kernel [3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<1x5x5x8xbf16>
  return %y : tensor<1x5x5x8xbf16>
}
func.func @every_5bf16(%i: tensor<1x5x5x5xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x5x5x5xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x5x5x5xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x5x5x5xi32>
  %z = nn.add %f, %x : tensor<1x5x5x5xbf16>, tensor<1x5x5x5xbf16>
  %y = nn.max_pool2d %z kernel [3, 3] strides [1, 1] padding [1, 1, 1, 1] : tensor<1x5x5x5xbf16>
  return %y : tensor<1x5x5x5xbf16>
}
func.func @gaps_4f32(%i: tensor<1x8x7x4xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x8x7x4xf32> {check.range = [0.5, 0.5]}) -> tensor<1x3x4x4xf32> {
  %f = nn.cast %i to f32 : tensor<1x8x7x4xi32>
  %z = nn.add %f, %x : tensor<1x8x7x4xf32>, tensor<1x8x7x4xf32>
  %y = nn.max_pool2d %z kernel [2, 1] strides [3, 2] padding [0, 0, 0, 0] : tensor<1x8x7x4xf32>
  return %y : tensor<1x3x4x4xf32>
}
func.func @gaps_3f32(%i: tensor<1x8x7x3xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x8x7x3xf32> {check.range = [0.5, 0.5]}) -> tensor<1x3x4x3xf32> {
  %f = nn.cast %i to f32 : tensor<1x8x7x3xi32>
  %z = nn.add %f, %x : tensor<1x8x7x3xf32>, tensor<1x8x7x3xf32>
  %y = nn.max_pool2d %z kernel [2, 1] strides [3, 2] padding [0, 0, 0, 0] : tensor<1x8x7x3xf32>
  return %y : tensor<1x3x4x3xf32>
}
func.func @gaps_8bf16(%i: tensor<1x8x7x8xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x8x7x8xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x3x4x8xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x8x7x8xi32>
  %z = nn.add %f, %x : tensor<1x8x7x8xbf16>, tensor<1x8x7x8xbf16>
  %y = nn.max_pool2d %z kernel [2, 1] strides [3, 2] padding [0, 0, 0, 0] : tensor<1x8x7x8xbf16>
  return %y : tensor<1x3x4x8xbf16>
}
func.func @gaps_5bf16(%i: tensor<1x8x7x5xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x8x7x5xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x3x4x5xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x8x7x5xi32>
  %z = nn.add %f, %x : tensor<1x8x7x5xbf16>, tensor<1x8x7x5xbf16>
  %y = nn.max_pool2d %z kernel [2, 1] strides [3, 2] padding [0, 0, 0, 0] : tensor<1x8x7x5xbf16>
  return %y : tensor<1x3x4x5xbf16>
}
func.func @uneven_4f32(%i: tensor<1x6x5x4xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x6x5x4xf32> {check.range = [0.5, 0.5]}) -> tensor<1x6x3x4xf32> {
  %f = nn.cast %i to f32 : tensor<1x6x5x4xi32>
  %z = nn.add %f, %x : tensor<1x6x5x4xf32>, tensor<1x6x5x4xf32>
  %y = nn.max_pool2d %z kernel [2, 3] strides [1, 2] padding [1, 0, 0, 2] : tensor<1x6x5x4xf32>
  return %y : tensor<1x6x3x4xf32>
}
func.func @uneven_3f32(%i: tensor<1x6x5x3xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x6x5x3xf32> {check.range = [0.5, 0.5]}) -> tensor<1x6x3x3xf32> {
  %f = nn.cast %i to f32 : tensor<1x6x5x3xi32>
  %z = nn.add %f, %x : tensor<1x6x5x3xf32>, tensor<1x6x5x3xf32>
  %y = nn.max_pool2d %z kernel [2, 3] strides [1, 2] padding [1, 0, 0, 2] : tensor<1x6x5x3xf32>
  return %y : tensor<1x6x3x3xf32>
}
func.func @uneven_8bf16(%i: tensor<1x6x5x8xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x6x5x8xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x6x3x8xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x6x5x8xi32>
  %z = nn.add %f, %x : tensor<1x6x5x8xbf16>, tensor<1x6x5x8xbf16>
  %y = nn.max_pool2d %z kernel [2, 3] strides [1, 2] padding [1, 0, 0, 2] : tensor<1x6x5x8xbf16>
  return %y : tensor<1x6x3x8xbf16>
}
func.func @uneven_5bf16(%i: tensor<1x6x5x5xi32> {check.range = [-2.0, 3.0]}, %x: tensor<1x6x5x5xbf16> {check.range = [0.5, 0.5]}) -> tensor<1x6x3x5xbf16> {
  %f = nn.cast %i to bf16 : tensor<1x6x5x5xi32>
  %z = nn.add %f, %x : tensor<1x6x5x5xbf16>, tensor<1x6x5x5xbf16>
  %y = nn.max_pool2d %z kernel [2, 3] strides [1, 2] padding [1, 0, 0, 2] : tensor<1x6x5x5xbf16>
  return %y : tensor<1x6x3x5xbf16>
}
