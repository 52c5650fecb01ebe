// Matrix products in device code, run by the emulator with all its checks, against the interpreter in double: every order of the operands in memory, sizes
// below, at and above a tile and its chunks of 16 bytes, batches, what epilogues read and write, sums over k that are cut in parts. descent-run runs each
// program twice, the second time with blocks and warps in another order and results over operands, and compares bits. Its inputs are multiples of 1/64, so
// that products and short sums are exact, and an element read from the wrong place is never a small error. An empty descent.tile keeps products from the library.
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1e-6 %s

func.func @one(%a: tensor<1x1xf32>, %b: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<1x1xf32>, tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
func.func @odd(%a: tensor<5x3xf32>, %b: tensor<3x7xf32>) -> tensor<5x7xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<5x3xf32>, tensor<3x7xf32>
  return %y : tensor<5x7xf32>
}
func.func @edges(%a: tensor<65x33xf32>, %b: tensor<33x17xf32>) -> tensor<65x17xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<65x33xf32>, tensor<33x17xf32>
  return %y : tensor<65x17xf32>
}
func.func @edges_nt(%a: tensor<65x33xf32>, %b: tensor<17x33xf32>) -> tensor<65x17xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<65x33xf32>, tensor<17x33xf32>
  return %y : tensor<65x17xf32>
}
func.func @edges_tt(%a: tensor<33x65xf32>, %b: tensor<17x33xf32>) -> tensor<65x17xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_a, transpose_b} : tensor<33x65xf32>, tensor<17x33xf32>
  return %y : tensor<65x17xf32>
}
func.func @edges_tn(%a: tensor<33x65xf32>, %b: tensor<33x17xf32>) -> tensor<65x17xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_a} : tensor<33x65xf32>, tensor<33x17xf32>
  return %y : tensor<65x17xf32>
}
func.func @aligned(%a: tensor<64x96xf32>, %b: tensor<96x32xf32>) -> tensor<64x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<64x96xf32>, tensor<96x32xf32>
  return %y : tensor<64x32xf32>
}
func.func @aligned_tt(%a: tensor<96x64xf32>, %b: tensor<32x96xf32>) -> tensor<64x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_a, transpose_b} : tensor<96x64xf32>, tensor<32x96xf32>
  return %y : tensor<64x32xf32>
}
func.func @aligned_nt(%a: tensor<64x96xf32>, %b: tensor<32x96xf32>) -> tensor<64x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<64x96xf32>, tensor<32x96xf32>
  return %y : tensor<64x32xf32>
}
func.func @aligned_tn(%a: tensor<96x64xf32>, %b: tensor<96x32xf32>) -> tensor<64x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_a} : tensor<96x64xf32>, tensor<96x32xf32>
  return %y : tensor<64x32xf32>
}
// Pieces of 8 bytes.
func.func @even(%a: tensor<10x34xf32>, %b: tensor<34x6xf32>) -> tensor<10x6xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<10x34xf32>, tensor<34x6xf32>
  return %y : tensor<10x6xf32>
}
func.func @row(%a: tensor<1x67xf32>, %b: tensor<67x35xf32>) -> tensor<1x35xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<1x67xf32>, tensor<67x35xf32>
  return %y : tensor<1x35xf32>
}
func.func @column(%a: tensor<35x67xf32>, %b: tensor<67x1xf32>) -> tensor<35x1xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<35x67xf32>, tensor<67x1xf32>
  return %y : tensor<35x1xf32>
}
// Depths of one, two and four chunks, whose lines are turned less or not at all.
func.func @depth1(%a: tensor<40x4xf32>, %b: tensor<36x4xf32>) -> tensor<40x36xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<40x4xf32>, tensor<36x4xf32>
  return %y : tensor<40x36xf32>
}
func.func @depth2(%a: tensor<40x8xf32>, %b: tensor<36x8xf32>) -> tensor<40x36xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<40x8xf32>, tensor<36x8xf32>
  return %y : tensor<40x36xf32>
}
func.func @depth4(%a: tensor<40x13xf32>, %b: tensor<36x13xf32>) -> tensor<40x36xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<40x13xf32>, tensor<36x13xf32>
  return %y : tensor<40x36xf32>
}
func.func @batched(%a: tensor<3x7x5xf32>, %b: tensor<3x5x19xf32>) -> tensor<3x7x19xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<3x7x5xf32>, tensor<3x5x19xf32>
  return %y : tensor<3x7x19xf32>
}
func.func @batched_nt(%a: tensor<2x36x8xf32>, %b: tensor<2x40x8xf32>) -> tensor<2x36x40xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<2x36x8xf32>, tensor<2x40x8xf32>
  return %y : tensor<2x36x40xf32>
}
// Two parts of k, then three whose last is shorter.
func.func @cut(%a: tensor<7x519xf32>, %b: tensor<519x19xf32>) -> tensor<7x19xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<7x519xf32>, tensor<519x19xf32>
  return %y : tensor<7x19xf32>
}
func.func @cut_epilogue(%a: tensor<12x800xf32>, %b: tensor<8x800xf32>, %c: tensor<8xf32>, %r: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<12x800xf32>, tensor<8x800xf32>
  %1 = nn.add %0, %c : tensor<12x8xf32>, tensor<8xf32>
  %2 = nn.relu %1 : tensor<12x8xf32>
  %3 = nn.add %2, %r : tensor<12x8xf32>, tensor<12x8xf32>
  return %3 : tensor<12x8xf32>
}
func.func @cut_batched(%a: tensor<2x5x520xf32>, %b: tensor<2x520x6xf32>) -> tensor<2x5x6xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<2x5x520xf32>, tensor<2x520x6xf32>
  return %y : tensor<2x5x6xf32>
}
// Ten tiles down, in a band of eight and one of two, and two across.
func.func @bands(%a: tensor<300x8xf32>, %b: tensor<8x40xf32>) -> tensor<300x40xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<300x8xf32>, tensor<8x40xf32>
  return %y : tensor<300x40xf32>
}
