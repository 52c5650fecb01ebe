// Matrix products, convolutions, pooling, lookups and attention in generated code against the interpreter: sizes around the register tile (6 or 12 rows, two
// vectors of columns) and its edges, vectors, one row, one column, and a depth of one.
// RUN: descent-run --compiled --tolerance=2e-5 %s
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=2e-5 %s

func.func @matmul_one(%a: tensor<1x1xf32>, %b: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = nn.matmul %a, %b : tensor<1x1xf32>, tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
func.func @matmul_row(%a: tensor<1x67xf32>, %b: tensor<67x35xf32>) -> tensor<1x35xf32> {
  %y = nn.matmul %a, %b : tensor<1x67xf32>, tensor<67x35xf32>
  return %y : tensor<1x35xf32>
}
func.func @matmul_column(%a: tensor<35x67xf32>, %b: tensor<67x1xf32>) -> tensor<35x1xf32> {
  %y = nn.matmul %a, %b : tensor<35x67xf32>, tensor<67x1xf32>
  return %y : tensor<35x1xf32>
}
func.func @matmul_edge(%a: tensor<13x17xf32>, %b: tensor<17x33xf32>) -> tensor<13x33xf32> {
  %y = nn.matmul %a, %b : tensor<13x17xf32>, tensor<17x33xf32>
  return %y : tensor<13x33xf32>
}
func.func @matmul_deep(%a: tensor<7x519xf32>, %b: tensor<519x19xf32>) -> tensor<7x19xf32> {
  %y = nn.matmul %a, %b : tensor<7x519xf32>, tensor<519x19xf32>
  return %y : tensor<7x19xf32>
}
func.func @matmul_several_tiles(%a: tensor<67x35xf32>, %b: tensor<35x131xf32>) -> tensor<67x131xf32> {
  %y = nn.matmul %a, %b : tensor<67x35xf32>, tensor<35x131xf32>
  return %y : tensor<67x131xf32>
}
func.func @matmul_nt(%a: tensor<13x17xf32>, %b: tensor<33x17xf32>) -> tensor<13x33xf32> {
  %y = nn.matmul %a, %b {transpose_b} : tensor<13x17xf32>, tensor<33x17xf32>
  return %y : tensor<13x33xf32>
}
func.func @matmul_tn(%a: tensor<17x13xf32>, %b: tensor<17x33xf32>) -> tensor<13x33xf32> {
  %y = nn.matmul %a, %b {transpose_a} : tensor<17x13xf32>, tensor<17x33xf32>
  return %y : tensor<13x33xf32>
}
func.func @matmul_tt(%a: tensor<17x13xf32>, %b: tensor<33x17xf32>) -> tensor<13x33xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b} : tensor<17x13xf32>, tensor<33x17xf32>
  return %y : tensor<13x33xf32>
}
func.func @matmul_batched(%a: tensor<3x7x5xf32>, %b: tensor<3x5x19xf32>) -> tensor<3x7x19xf32> {
  %y = nn.matmul %a, %b : tensor<3x7x5xf32>, tensor<3x5x19xf32>
  return %y : tensor<3x7x19xf32>
}
func.func @linear_shared(%a: tensor<3x7x17xf32>, %b: tensor<17x19xf32>, %c: tensor<19xf32>, %r: tensor<3x7x19xf32>) -> tensor<3x7x19xf32> {
  %0 = nn.matmul %a, %b : tensor<3x7x17xf32>, tensor<17x19xf32>
  %1 = nn.add %0, %c : tensor<3x7x19xf32>, tensor<19xf32>
  %2 = nn.gelu %1 tanh : tensor<3x7x19xf32>
  %3 = nn.add %2, %r : tensor<3x7x19xf32>, tensor<3x7x19xf32>
  return %3 : tensor<3x7x19xf32>
}
func.func @conv2d_odd(%x: tensor<3x9x7x5xf32>, %w: tensor<3x3x5x7xf32>) -> tensor<3x9x7x7xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<3x9x7x5xf32>, tensor<3x3x5x7xf32>
  return %y : tensor<3x9x7x7xf32>
}
func.func @conv2d_strided(%x: tensor<1x11x8x3xf32>, %w: tensor<3x2x3x17xf32>) -> tensor<1x4x3x17xf32> {
  %y = nn.conv2d %x, %w strides [2, 3] padding [0, 1, 1, 0] dilations [2, 1] : tensor<1x11x8x3xf32>, tensor<3x2x3x17xf32>
  return %y : tensor<1x4x3x17xf32>
}
func.func @max_pool2d(%x: tensor<3x7x9x5xf32>) -> tensor<3x4x5x5xf32> {
  %y = nn.max_pool2d %x kernel [3, 2] strides [2, 2] padding [1, 1, 0, 1] : tensor<3x7x9x5xf32>
  return %y : tensor<3x4x5x5xf32>
}
func.func @embedding(%i: tensor<3x7xi32> {check.range = [-5.0, 5.0]}, %w: tensor<5x13xf32>) -> tensor<3x7x13xf32> {
  %y = nn.embedding %i, %w : tensor<3x7xi32>, tensor<5x13xf32>
  return %y : tensor<3x7x13xf32>
}
func.func @attention_one_token(%q: tensor<3x1x8xf32>, %k: tensor<3x1x8xf32>, %v: tensor<3x1x8xf32>) -> tensor<3x1x8xf32> {
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<3x1x8xf32>, tensor<3x1x8xf32>, tensor<3x1x8xf32>
  return %y : tensor<3x1x8xf32>
}
func.func @attention_odd(%q: tensor<2x37x14xf32>, %k: tensor<2x37x14xf32>, %v: tensor<2x37x14xf32>) -> tensor<2x37x14xf32> {
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<2x37x14xf32>, tensor<2x37x14xf32>, tensor<2x37x14xf32>
  return %y : tensor<2x37x14xf32>
}
func.func @attention_full(%q: tensor<1x19x12xf32>, %k: tensor<1x19x12xf32>, %v: tensor<1x19x12xf32>) -> tensor<1x19x12xf32> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x19x12xf32>, tensor<1x19x12xf32>, tensor<1x19x12xf32>
  return %y : tensor<1x19x12xf32>
}
func.func @attention_long(%q: tensor<1x131x16xf32>, %k: tensor<1x131x16xf32>, %v: tensor<1x131x16xf32>) -> tensor<1x131x16xf32> {
  %y = nn.attention %q, %k, %v heads 1 causal : tensor<1x131x16xf32>, tensor<1x131x16xf32>, tensor<1x131x16xf32>
  return %y : tensor<1x131x16xf32>
}
