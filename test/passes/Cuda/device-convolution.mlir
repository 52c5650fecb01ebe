// The three products of a convolution in device code: kernels of one to five taps, strides, padding, dilation, channels that fill chunks of 16 bytes and such
// that do not, odd images. The gradients of each function are the other two products. See device-contraction.mlir.
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1e-6 %s

func.func @odd(%x: tensor<3x9x7x5xf32>, %w: tensor<3x3x5x7xf32>) -> tensor<3x9x7x7xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<3x9x7x5xf32>, tensor<3x3x5x7xf32>
  return %y : tensor<3x9x7x7xf32>
}
func.func @one_channel(%x: tensor<1x6x5x1xf32>, %w: tensor<3x3x1x8xf32>) -> tensor<1x6x5x8xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x6x5x1xf32>, tensor<3x3x1x8xf32>
  return %y : tensor<1x6x5x8xf32>
}
func.func @three_channels(%x: tensor<2x8x8x3xf32>, %w: tensor<5x5x3x16xf32>) -> tensor<2x4x4x16xf32> {
  %y = nn.conv2d %x, %w strides [2, 2] padding [2, 1, 2, 1] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<5x5x3x16xf32>
  return %y : tensor<2x4x4x16xf32>
}
func.func @aligned(%x: tensor<1x7x7x16xf32>, %w: tensor<3x3x16x8xf32>) -> tensor<1x7x7x8xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x7x7x16xf32>, tensor<3x3x16x8xf32>
  return %y : tensor<1x7x7x8xf32>
}
func.func @aligned_strided(%x: tensor<3x9x9x8xf32>, %w: tensor<3x3x8x4xf32>) -> tensor<3x5x5x4xf32> {
  %y = nn.conv2d %x, %w strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] : tensor<3x9x9x8xf32>, tensor<3x3x8x4xf32>
  return %y : tensor<3x5x5x4xf32>
}
func.func @valid(%x: tensor<1x8x6x8xf32>, %w: tensor<3x3x8x8xf32>) -> tensor<1x6x4x8xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<1x8x6x8xf32>, tensor<3x3x8x8xf32>
  return %y : tensor<1x6x4x8xf32>
}
func.func @pointwise(%x: tensor<2x5x4x8xf32>, %w: tensor<1x1x8x12xf32>) -> tensor<2x5x4x12xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x5x4x8xf32>, tensor<1x1x8x12xf32>
  return %y : tensor<2x5x4x12xf32>
}
func.func @pointwise_strided(%x: tensor<2x5x4x8xf32>, %w: tensor<1x1x8x6xf32>) -> tensor<2x3x2x6xf32> {
  %y = nn.conv2d %x, %w strides [2, 2] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x5x4x8xf32>, tensor<1x1x8x6xf32>
  return %y : tensor<2x3x2x6xf32>
}
func.func @uneven(%x: tensor<1x11x8x3xf32>, %w: tensor<3x2x3x17xf32>) -> tensor<1x4x3x17xf32> {
  %y = nn.conv2d %x, %w strides [2, 3] padding [0, 1, 1, 0] dilations [2, 1] : tensor<1x11x8x3xf32>, tensor<3x2x3x17xf32>
  return %y : tensor<1x4x3x17xf32>
}
func.func @epilogue(%x: tensor<2x6x6x4xf32>, %w: tensor<3x3x4x8xf32>, %b: tensor<8xf32>, %r: tensor<2x6x6x8xf32>) -> tensor<2x6x6x8xf32> {
  %0 = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<2x6x6x4xf32>, tensor<3x3x4x8xf32>
  %1 = nn.add %0, %b : tensor<2x6x6x8xf32>, tensor<8xf32>
  %2 = nn.add %1, %r : tensor<2x6x6x8xf32>, tensor<2x6x6x8xf32>
  %3 = nn.relu %2 : tensor<2x6x6x8xf32>
  return %3 : tensor<2x6x6x8xf32>
}
// The weight gradient's sum over 576 pixels is cut.
func.func @many_pixels(%x: tensor<1x24x24x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x24x24x4xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x24x24x3xf32>, tensor<3x3x3x4xf32>
  return %y : tensor<1x24x24x4xf32>
}
