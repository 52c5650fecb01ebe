// Matrix products in every storage order, one B for every batch, convolution with stride, padding and dilation, pooling, lookups, attention.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --compiled %s

func.func @matmul(%a: tensor<3x5xf32>, %b: tensor<5x2xf32>) -> tensor<3x2xf32> {
  %y = nn.matmul %a, %b : tensor<3x5xf32>, tensor<5x2xf32>
  return %y : tensor<3x2xf32>
}
func.func @matmul_nt(%a: tensor<3x5xf32>, %b: tensor<2x5xf32>) -> tensor<3x2xf32> {
  %y = nn.matmul %a, %b {transpose_b} : tensor<3x5xf32>, tensor<2x5xf32>
  return %y : tensor<3x2xf32>
}
func.func @matmul_tn(%a: tensor<5x3xf32>, %b: tensor<5x2xf32>) -> tensor<3x2xf32> {
  %y = nn.matmul %a, %b {transpose_a} : tensor<5x3xf32>, tensor<5x2xf32>
  return %y : tensor<3x2xf32>
}
func.func @matmul_tt(%a: tensor<5x3xf32>, %b: tensor<2x5xf32>) -> tensor<3x2xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : tensor<5x3xf32>, tensor<2x5xf32>
  return %y : tensor<3x2xf32>
}
func.func @matmul_shared(%a: tensor<2x3x5xf32>, %b: tensor<4x5xf32>) -> tensor<2x3x4xf32> {
  %y = nn.matmul %a, %b {transpose_b} : tensor<2x3x5xf32>, tensor<4x5xf32>
  return %y : tensor<2x3x4xf32>
}
func.func @matmul_shared_one(%a: tensor<1x1x5xf32>, %b: tensor<5x4xf32>) -> tensor<1x1x4xf32> {
  %y = nn.matmul %a, %b : tensor<1x1x5xf32>, tensor<5x4xf32>
  return %y : tensor<1x1x4xf32>
}
func.func @matmul_batched(%a: tensor<2x5x3xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x4xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : tensor<2x5x3xf32>, tensor<2x4x5xf32>
  return %y : tensor<2x3x4xf32>
}
func.func @conv2d(%x: tensor<2x5x7x3xf32>, %w: tensor<3x2x3x2xf32>) -> tensor<2x3x3x2xf32> {
  %y = nn.conv2d %x, %w strides [2, 2] padding [1, 1, 0, 1] dilations [1, 2] : tensor<2x5x7x3xf32>, tensor<3x2x3x2xf32>
  return %y : tensor<2x3x3x2xf32>
}
func.func @max_pool2d(%x: tensor<1x5x5x2xf32>) -> tensor<1x3x3x2xf32> {
  %y = nn.max_pool2d %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<1x5x5x2xf32>
  return %y : tensor<1x3x3x2xf32>
}
func.func @embedding(%i: tensor<2x3xi32> {check.range = [-4.0, 4.0]}, %table: tensor<4x3xf32>) -> tensor<2x3x3xf32> {
  %y = nn.embedding %i, %table : tensor<2x3xi32>, tensor<4x3xf32>
  return %y : tensor<2x3x3xf32>
}
func.func @attention(%q: tensor<2x5x6xf32>, %k: tensor<2x5x6xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %o = nn.attention %q, %k, %v heads 2 causal : tensor<2x5x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>
  return %o : tensor<2x5x6xf32>
}
func.func @attention_full(%q: tensor<1x3x4xf32>, %k: tensor<1x3x4xf32>, %v: tensor<1x3x4xf32>) -> tensor<1x3x4xf32> {
  %o = nn.attention %q, %k, %v heads 1 : tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>
  return %o : tensor<1x3x4xf32>
}
