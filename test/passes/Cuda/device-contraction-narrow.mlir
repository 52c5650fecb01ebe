// Products of narrow operands in device code, on the emulated tensor cores: bf16, f16, and f8 that becomes f16 on the way to shared memory; orders, sizes and
// pieces of 16, 8, 4 and 2 bytes. Sums are f32, so the only error is the rounding of the result. See device-contraction.mlir.
// RUN: split-file %s %t
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=8e-3 %t/bf16.mlir
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=1e-3 %t/f16.mlir
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=1e-5 %t/f8.mlir

//--- bf16.mlir
func.func @one(%a: tensor<1x1xbf16>, %b: tensor<1x1xbf16>) -> tensor<1x1xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<1x1xbf16>, tensor<1x1xbf16>
  return %y : tensor<1x1xbf16>
}
func.func @odd(%a: tensor<5x3xbf16>, %b: tensor<3x7xbf16>) -> tensor<5x7xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<5x3xbf16>, tensor<3x7xbf16>
  return %y : tensor<5x7xbf16>
}
func.func @edges(%a: tensor<65x33xbf16>, %b: tensor<33x17xbf16>) -> tensor<65x17xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<65x33xbf16>, tensor<33x17xbf16>
  return %y : tensor<65x17xbf16>
}
func.func @aligned(%a: tensor<64x72xbf16>, %b: tensor<72x32xbf16>) -> tensor<64x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, result_type = f32} : tensor<64x72xbf16>, tensor<72x32xbf16>
  return %y : tensor<64x32xf32>
}
func.func @aligned_nt(%a: tensor<64x72xbf16>, %b: tensor<32x72xbf16>) -> tensor<64x32xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<64x72xbf16>, tensor<32x72xbf16>
  return %y : tensor<64x32xbf16>
}
// Pieces of 8 and 4 bytes.
func.func @pieces(%a: tensor<12x20xbf16>, %b: tensor<20x6xbf16>) -> tensor<12x6xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<12x20xbf16>, tensor<20x6xbf16>
  return %y : tensor<12x6xbf16>
}
func.func @pieces_tt(%a: tensor<20x12xbf16>, %b: tensor<6x20xbf16>) -> tensor<12x6xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_a, transpose_b} : tensor<20x12xbf16>, tensor<6x20xbf16>
  return %y : tensor<12x6xbf16>
}
func.func @depths(%a: tensor<33x16xbf16>, %b: tensor<16x40xbf16>, %c: tensor<40x32xbf16>) -> tensor<33x32xbf16> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<33x16xbf16>, tensor<16x40xbf16>
  %1 = nn.matmul %0, %c {descent.tile = array<i64>} : tensor<33x40xbf16>, tensor<40x32xbf16>
  return %1 : tensor<33x32xbf16>
}
func.func @batched(%a: tensor<3x7x5xbf16>, %b: tensor<3x5x19xbf16>) -> tensor<3x7x19xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<3x7x5xbf16>, tensor<3x5x19xbf16>
  return %y : tensor<3x7x19xbf16>
}
func.func @cut(%a: tensor<8x520xbf16>, %b: tensor<520x16xbf16>, %c: tensor<16xf32>) -> tensor<8x16xbf16> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>, result_type = f32} : tensor<8x520xbf16>, tensor<520x16xbf16>
  %1 = nn.add %0, %c : tensor<8x16xf32>, tensor<16xf32>
  %2 = nn.cast %1 to bf16 : tensor<8x16xf32>
  return %2 : tensor<8x16xbf16>
}
// The product is rounded before the bias is added, and each op after it.
func.func @epilogue(%a: tensor<6x24xbf16>, %b: tensor<24x16xbf16>, %c: tensor<16xbf16>, %r: tensor<6x16xbf16>) -> tensor<6x16xbf16> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<6x24xbf16>, tensor<24x16xbf16>
  %1 = nn.add %0, %c : tensor<6x16xbf16>, tensor<16xbf16>
  %2 = nn.relu %1 : tensor<6x16xbf16>
  %3 = nn.add %2, %r : tensor<6x16xbf16>, tensor<6x16xbf16>
  return %3 : tensor<6x16xbf16>
}
func.func @convolution(%x: tensor<1x7x7x16xbf16>, %w: tensor<3x3x16x8xbf16>) -> tensor<1x7x7x8xbf16> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x7x7x16xbf16>, tensor<3x3x16x8xbf16>
  return %y : tensor<1x7x7x8xbf16>
}
func.func @convolution_odd(%x: tensor<2x7x5x3xbf16>, %w: tensor<3x3x3x5xbf16>) -> tensor<2x4x3x5xbf16> {
  %y = nn.conv2d %x, %w strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] : tensor<2x7x5x3xbf16>, tensor<3x3x3x5xbf16>
  return %y : tensor<2x4x3x5xbf16>
}

//--- f16.mlir
func.func @edges(%a: tensor<33x40xf16>, %b: tensor<40x17xf16>) -> tensor<33x17xf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<33x40xf16>, tensor<40x17xf16>
  return %y : tensor<33x17xf16>
}
func.func @aligned_nt(%a: tensor<32x64xf16>, %b: tensor<32x64xf16>) -> tensor<32x32xf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64>, transpose_b} : tensor<32x64xf16>, tensor<32x64xf16>
  return %y : tensor<32x32xf16>
}
func.func @convolution(%x: tensor<1x6x6x8xf16>, %w: tensor<3x3x8x8xf16>) -> tensor<1x6x6x8xf16> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x6x6x8xf16>, tensor<3x3x8x8xf16>
  return %y : tensor<1x6x6x8xf16>
}

//--- f8.mlir
// Integers have no gradients, and products of f8 none in f8. Multiples of 1/128 reach the subnormal numbers of both types.
func.func @e4m3(%a: tensor<33x40xi32> {check.range = [-40.0, 40.0]}, %b: tensor<40x16xi32> {check.range = [-40.0, 40.0]}) -> tensor<33x16xf32> {
  %s = nn.constant dense<0.0078125> : tensor<f32>
  %0 = nn.cast %a to f32 : tensor<33x40xi32>
  %1 = nn.mul %0, %s : tensor<33x40xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E4M3FN : tensor<33x40xf32>
  %3 = nn.cast %b to f32 : tensor<40x16xi32>
  %4 = nn.cast %3 to f8E4M3FN : tensor<40x16xf32>
  %y = nn.matmul %2, %4 {descent.tile = array<i64>, result_type = f32} : tensor<33x40xf8E4M3FN>, tensor<40x16xf8E4M3FN>
  return %y : tensor<33x16xf32>
}
func.func @mixed_nt(%a: tensor<17x32xi32> {check.range = [-40.0, 40.0]}, %b: tensor<24x32xi32> {check.range = [-40.0, 40.0]}) -> tensor<17x24xf32> {
  %s = nn.constant dense<0.0078125> : tensor<f32>
  %0 = nn.cast %a to f32 : tensor<17x32xi32>
  %1 = nn.mul %0, %s : tensor<17x32xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E5M2 : tensor<17x32xf32>
  %3 = nn.cast %b to f32 : tensor<24x32xi32>
  %4 = nn.cast %3 to f8E4M3FN : tensor<24x32xf32>
  %y = nn.matmul %2, %4 {descent.tile = array<i64>, transpose_b, result_type = f32} : tensor<17x32xf8E5M2>, tensor<24x32xf8E4M3FN>
  return %y : tensor<17x24xf32>
}
func.func @odd(%a: tensor<5x3xi32> {check.range = [-40.0, 40.0]}, %b: tensor<3x7xi32> {check.range = [-40.0, 40.0]}) -> tensor<5x7xf32> {
  %s = nn.constant dense<0.0078125> : tensor<f32>
  %0 = nn.cast %a to f32 : tensor<5x3xi32>
  %1 = nn.mul %0, %s : tensor<5x3xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E4M3FN : tensor<5x3xf32>
  %3 = nn.cast %b to f32 : tensor<3x7xi32>
  %4 = nn.cast %3 to f8E5M2 : tensor<3x7xf32>
  %y = nn.matmul %2, %4 {descent.tile = array<i64>, result_type = f32} : tensor<5x3xf8E4M3FN>, tensor<3x7xf8E5M2>
  return %y : tensor<5x7xf32>
}
func.func @cut(%a: tensor<4x528xi32> {check.range = [-40.0, 40.0]}, %b: tensor<528x8xi32> {check.range = [-40.0, 40.0]}) -> tensor<4x8xf32> {
  %s = nn.constant dense<0.0078125> : tensor<f32>
  %0 = nn.cast %a to f32 : tensor<4x528xi32>
  %1 = nn.mul %0, %s : tensor<4x528xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E4M3FN : tensor<4x528xf32>
  %3 = nn.cast %b to f32 : tensor<528x8xi32>
  %4 = nn.cast %3 to f8E5M2 : tensor<528x8xf32>
  %y = nn.matmul %2, %4 {descent.tile = array<i64>, result_type = f32} : tensor<4x528xf8E4M3FN>, tensor<528x8xf8E5M2>
  return %y : tensor<4x8xf32>
}
