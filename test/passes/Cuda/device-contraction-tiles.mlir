// Every shape of tile, forced by descent.tile, at sizes that fill tiles and such that do not, with two to four stages and cuts of k: the plan would take the
// smallest for what the emulator can do in reasonable time. See device-contraction.mlir.
// RUN: split-file %s %t
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=1e-6 %t/f32.mlir
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=8e-3 %t/bf16.mlir
// RUN: descent-run --compiled --rounded --target=cuda-emulated --tolerance=1e-6 %t/tf32.mlir

//--- f32.mlir
func.func @tile_128x128_nn(%a: tensor<128x48xf32>, %b: tensor<48x128xf32>) -> tensor<128x128xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 128, 128, 16, 2, 1>} : tensor<128x48xf32>, tensor<48x128xf32>
  return %y : tensor<128x128xf32>
}
func.func @tile_128x128_nt(%a: tensor<131x37xf32>, %b: tensor<133x37xf32>) -> tensor<131x133xf32> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 128, 128, 32, 2, 1>} : tensor<131x37xf32>, tensor<133x37xf32>
  return %y : tensor<131x133xf32>
}
func.func @tile_128x128_tn(%a: tensor<48x128xf32>, %b: tensor<48x128xf32>) -> tensor<128x128xf32> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 128, 128, 32, 3, 1>} : tensor<48x128xf32>, tensor<48x128xf32>
  return %y : tensor<128x128xf32>
}
func.func @tile_128x128_tt(%a: tensor<37x131xf32>, %b: tensor<133x37xf32>) -> tensor<131x133xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 128, 128, 16, 3, 1>} : tensor<37x131xf32>, tensor<133x37xf32>
  return %y : tensor<131x133xf32>
}
func.func @tile_64x64_nn(%a: tensor<64x48xf32>, %b: tensor<48x64xf32>) -> tensor<64x64xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 64, 64, 32, 2, 2>} : tensor<64x48xf32>, tensor<48x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @tile_64x64_nt(%a: tensor<67x37xf32>, %b: tensor<69x37xf32>) -> tensor<67x69xf32> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 64, 64, 32, 2, 2>} : tensor<67x37xf32>, tensor<69x37xf32>
  return %y : tensor<67x69xf32>
}
func.func @tile_64x64_tn(%a: tensor<48x64xf32>, %b: tensor<48x64xf32>) -> tensor<64x64xf32> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 64, 64, 16, 4, 3>} : tensor<48x64xf32>, tensor<48x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @tile_64x64_tt(%a: tensor<37x67xf32>, %b: tensor<69x37xf32>) -> tensor<67x69xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 64, 64, 32, 4, 3>} : tensor<37x67xf32>, tensor<69x37xf32>
  return %y : tensor<67x69xf32>
}
func.func @tile_128x32_nn(%a: tensor<128x48xf32>, %b: tensor<48x32xf32>) -> tensor<128x32xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 128, 32, 32, 2, 1>} : tensor<128x48xf32>, tensor<48x32xf32>
  return %y : tensor<128x32xf32>
}
func.func @tile_128x32_nt(%a: tensor<131x37xf32>, %b: tensor<37x37xf32>) -> tensor<131x37xf32> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 128, 32, 16, 2, 1>} : tensor<131x37xf32>, tensor<37x37xf32>
  return %y : tensor<131x37xf32>
}
func.func @tile_128x32_tn(%a: tensor<48x128xf32>, %b: tensor<48x32xf32>) -> tensor<128x32xf32> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 128, 32, 32, 3, 1>} : tensor<48x128xf32>, tensor<48x32xf32>
  return %y : tensor<128x32xf32>
}
func.func @tile_128x32_tt(%a: tensor<37x131xf32>, %b: tensor<37x37xf32>) -> tensor<131x37xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 128, 32, 32, 3, 1>} : tensor<37x131xf32>, tensor<37x37xf32>
  return %y : tensor<131x37xf32>
}
func.func @tile_32x128_nn(%a: tensor<32x48xf32>, %b: tensor<48x128xf32>) -> tensor<32x128xf32> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 32, 128, 16, 2, 2>} : tensor<32x48xf32>, tensor<48x128xf32>
  return %y : tensor<32x128xf32>
}
func.func @tile_32x128_nt(%a: tensor<35x37xf32>, %b: tensor<133x37xf32>) -> tensor<35x133xf32> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 32, 128, 32, 2, 2>} : tensor<35x37xf32>, tensor<133x37xf32>
  return %y : tensor<35x133xf32>
}
func.func @tile_32x128_tn(%a: tensor<48x32xf32>, %b: tensor<48x128xf32>) -> tensor<32x128xf32> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 32, 128, 32, 4, 3>} : tensor<48x32xf32>, tensor<48x128xf32>
  return %y : tensor<32x128xf32>
}
func.func @tile_32x128_tt(%a: tensor<37x35xf32>, %b: tensor<133x37xf32>) -> tensor<35x133xf32> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 32, 128, 16, 4, 3>} : tensor<37x35xf32>, tensor<133x37xf32>
  return %y : tensor<35x133xf32>
}
func.func @convolution(%x: tensor<1x13x11x4xf32>, %w: tensor<3x3x4x33xf32>) -> tensor<1x13x11x33xf32> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] {descent.tile = array<i64: 128, 32, 16, 3, 2>} : tensor<1x13x11x4xf32>, tensor<3x3x4x33xf32>
  return %y : tensor<1x13x11x33xf32>
}

//--- bf16.mlir
func.func @tile_128x128_nn(%a: tensor<128x80xbf16>, %b: tensor<80x128xbf16>) -> tensor<128x128xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 128, 128, 32, 2, 1>} : tensor<128x80xbf16>, tensor<80x128xbf16>
  return %y : tensor<128x128xbf16>
}
func.func @tile_128x128_nt(%a: tensor<131x70xbf16>, %b: tensor<134x70xbf16>) -> tensor<131x134xbf16> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 128, 128, 64, 2, 1>} : tensor<131x70xbf16>, tensor<134x70xbf16>
  return %y : tensor<131x134xbf16>
}
func.func @tile_128x128_tn(%a: tensor<80x128xbf16>, %b: tensor<80x128xbf16>) -> tensor<128x128xbf16> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 128, 128, 16, 3, 1>} : tensor<80x128xbf16>, tensor<80x128xbf16>
  return %y : tensor<128x128xbf16>
}
func.func @tile_128x128_tt(%a: tensor<70x131xbf16>, %b: tensor<134x70xbf16>) -> tensor<131x134xbf16> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 128, 128, 32, 3, 1>} : tensor<70x131xbf16>, tensor<134x70xbf16>
  return %y : tensor<131x134xbf16>
}
func.func @tile_64x64_nn(%a: tensor<64x80xbf16>, %b: tensor<80x64xbf16>) -> tensor<64x64xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 64, 64, 64, 2, 2>} : tensor<64x80xbf16>, tensor<80x64xbf16>
  return %y : tensor<64x64xbf16>
}
func.func @tile_64x64_nt(%a: tensor<67x70xbf16>, %b: tensor<70x70xbf16>) -> tensor<67x70xbf16> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 64, 64, 16, 2, 2>} : tensor<67x70xbf16>, tensor<70x70xbf16>
  return %y : tensor<67x70xbf16>
}
func.func @tile_64x64_tn(%a: tensor<80x64xbf16>, %b: tensor<80x64xbf16>) -> tensor<64x64xbf16> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 64, 64, 32, 4, 2>} : tensor<80x64xbf16>, tensor<80x64xbf16>
  return %y : tensor<64x64xbf16>
}
func.func @tile_64x64_tt(%a: tensor<70x67xbf16>, %b: tensor<70x70xbf16>) -> tensor<67x70xbf16> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 64, 64, 64, 4, 2>} : tensor<70x67xbf16>, tensor<70x70xbf16>
  return %y : tensor<67x70xbf16>
}
func.func @tile_128x32_nn(%a: tensor<128x80xbf16>, %b: tensor<80x32xbf16>) -> tensor<128x32xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 128, 32, 16, 2, 1>} : tensor<128x80xbf16>, tensor<80x32xbf16>
  return %y : tensor<128x32xbf16>
}
func.func @tile_128x32_nt(%a: tensor<131x70xbf16>, %b: tensor<38x70xbf16>) -> tensor<131x38xbf16> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 128, 32, 32, 2, 1>} : tensor<131x70xbf16>, tensor<38x70xbf16>
  return %y : tensor<131x38xbf16>
}
func.func @tile_128x32_tn(%a: tensor<80x128xbf16>, %b: tensor<80x32xbf16>) -> tensor<128x32xbf16> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 128, 32, 64, 3, 1>} : tensor<80x128xbf16>, tensor<80x32xbf16>
  return %y : tensor<128x32xbf16>
}
func.func @tile_128x32_tt(%a: tensor<70x131xbf16>, %b: tensor<38x70xbf16>) -> tensor<131x38xbf16> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 128, 32, 16, 3, 1>} : tensor<70x131xbf16>, tensor<38x70xbf16>
  return %y : tensor<131x38xbf16>
}
func.func @tile_32x128_nn(%a: tensor<32x80xbf16>, %b: tensor<80x128xbf16>) -> tensor<32x128xbf16> {
  %y = nn.matmul %a, %b {descent.tile = array<i64: 32, 128, 32, 2, 2>} : tensor<32x80xbf16>, tensor<80x128xbf16>
  return %y : tensor<32x128xbf16>
}
func.func @tile_32x128_nt(%a: tensor<35x70xbf16>, %b: tensor<134x70xbf16>) -> tensor<35x134xbf16> {
  %y = nn.matmul %a, %b {transpose_b, descent.tile = array<i64: 32, 128, 64, 2, 2>} : tensor<35x70xbf16>, tensor<134x70xbf16>
  return %y : tensor<35x134xbf16>
}
func.func @tile_32x128_tn(%a: tensor<80x32xbf16>, %b: tensor<80x128xbf16>) -> tensor<32x128xbf16> {
  %y = nn.matmul %a, %b {transpose_a, descent.tile = array<i64: 32, 128, 16, 4, 2>} : tensor<80x32xbf16>, tensor<80x128xbf16>
  return %y : tensor<32x128xbf16>
}
func.func @tile_32x128_tt(%a: tensor<70x35xbf16>, %b: tensor<134x70xbf16>) -> tensor<35x134xbf16> {
  %y = nn.matmul %a, %b {transpose_a, transpose_b, descent.tile = array<i64: 32, 128, 32, 4, 2>} : tensor<70x35xbf16>, tensor<134x70xbf16>
  return %y : tensor<35x134xbf16>
}
func.func @convolution(%x: tensor<1x13x11x8xbf16>, %w: tensor<3x3x8x40xbf16>) -> tensor<1x13x11x40xbf16> {
  %y = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] {descent.tile = array<i64: 128, 32, 32, 3, 1>} : tensor<1x13x11x8xbf16>, tensor<3x3x8x40xbf16>
  return %y : tensor<1x13x11x40xbf16>
}

// Both operands rounded: tensor cores multiply f32. A third is no multiple of a power of two.
//--- tf32.mlir
func.func @tile_128x128_nn(%a: tensor<128x40xf32>, %b: tensor<40x128xf32>) -> tensor<128x128xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<128x40xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<128x40xf32>
  %2 = nn.round_tf32 %b : tensor<40x128xf32>
  %y = nn.matmul %1, %2 {descent.tile = array<i64: 128, 128, 8, 2, 1>} : tensor<128x40xf32>, tensor<40x128xf32>
  return %y : tensor<128x128xf32>
}
func.func @tile_128x128_tt(%a: tensor<37x131xf32>, %b: tensor<133x37xf32>) -> tensor<131x133xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<37x131xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<37x131xf32>
  %2 = nn.round_tf32 %b : tensor<133x37xf32>
  %y = nn.matmul %1, %2 {transpose_a, transpose_b, descent.tile = array<i64: 128, 128, 16, 3, 2>} : tensor<37x131xf32>, tensor<133x37xf32>
  return %y : tensor<131x133xf32>
}
func.func @tile_64x64_nn(%a: tensor<64x40xf32>, %b: tensor<40x64xf32>) -> tensor<64x64xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<64x40xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<64x40xf32>
  %2 = nn.round_tf32 %b : tensor<40x64xf32>
  %y = nn.matmul %1, %2 {descent.tile = array<i64: 64, 64, 32, 2, 1>} : tensor<64x40xf32>, tensor<40x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @tile_64x64_nt(%a: tensor<67x37xf32>, %b: tensor<69x37xf32>) -> tensor<67x69xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<67x37xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<67x37xf32>
  %2 = nn.round_tf32 %b : tensor<69x37xf32>
  %y = nn.matmul %1, %2 {transpose_b, descent.tile = array<i64: 64, 64, 8, 3, 2>} : tensor<67x37xf32>, tensor<69x37xf32>
  return %y : tensor<67x69xf32>
}
func.func @tile_64x64_tn(%a: tensor<40x64xf32>, %b: tensor<40x64xf32>) -> tensor<64x64xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<40x64xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<40x64xf32>
  %2 = nn.round_tf32 %b : tensor<40x64xf32>
  %y = nn.matmul %1, %2 {transpose_a, descent.tile = array<i64: 64, 64, 16, 2, 1>} : tensor<40x64xf32>, tensor<40x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @tile_64x64_tt(%a: tensor<37x67xf32>, %b: tensor<69x37xf32>) -> tensor<67x69xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<37x67xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<37x67xf32>
  %2 = nn.round_tf32 %b : tensor<69x37xf32>
  %y = nn.matmul %1, %2 {transpose_a, transpose_b, descent.tile = array<i64: 64, 64, 32, 3, 2>} : tensor<37x67xf32>, tensor<69x37xf32>
  return %y : tensor<67x69xf32>
}
func.func @tile_128x32_nn(%a: tensor<128x40xf32>, %b: tensor<40x32xf32>) -> tensor<128x32xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<128x40xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<128x40xf32>
  %2 = nn.round_tf32 %b : tensor<40x32xf32>
  %y = nn.matmul %1, %2 {descent.tile = array<i64: 128, 32, 8, 2, 1>} : tensor<128x40xf32>, tensor<40x32xf32>
  return %y : tensor<128x32xf32>
}
func.func @tile_128x32_tt(%a: tensor<37x131xf32>, %b: tensor<37x37xf32>) -> tensor<131x37xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<37x131xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<37x131xf32>
  %2 = nn.round_tf32 %b : tensor<37x37xf32>
  %y = nn.matmul %1, %2 {transpose_a, transpose_b, descent.tile = array<i64: 128, 32, 16, 3, 2>} : tensor<37x131xf32>, tensor<37x37xf32>
  return %y : tensor<131x37xf32>
}
func.func @tile_32x128_nn(%a: tensor<32x40xf32>, %b: tensor<40x128xf32>) -> tensor<32x128xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<32x40xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<32x40xf32>
  %2 = nn.round_tf32 %b : tensor<40x128xf32>
  %y = nn.matmul %1, %2 {descent.tile = array<i64: 32, 128, 32, 2, 1>} : tensor<32x40xf32>, tensor<40x128xf32>
  return %y : tensor<32x128xf32>
}
func.func @tile_32x128_tt(%a: tensor<37x35xf32>, %b: tensor<133x37xf32>) -> tensor<35x133xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<37x35xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<37x35xf32>
  %2 = nn.round_tf32 %b : tensor<133x37xf32>
  %y = nn.matmul %1, %2 {transpose_a, transpose_b, descent.tile = array<i64: 32, 128, 8, 3, 2>} : tensor<37x35xf32>, tensor<133x37xf32>
  return %y : tensor<35x133xf32>
}
func.func @tile_32x32_nn(%a: tensor<32x40xf32>, %b: tensor<40x32xf32>) -> tensor<32x32xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<32x40xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<32x40xf32>
  %2 = nn.round_tf32 %b : tensor<40x32xf32>
  %y = nn.matmul %1, %2 {descent.tile = array<i64: 32, 32, 16, 2, 1>} : tensor<32x40xf32>, tensor<40x32xf32>
  return %y : tensor<32x32xf32>
}
func.func @tile_32x32_nt(%a: tensor<35x37xf32>, %b: tensor<37x37xf32>) -> tensor<35x37xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<35x37xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<35x37xf32>
  %2 = nn.round_tf32 %b : tensor<37x37xf32>
  %y = nn.matmul %1, %2 {transpose_b, descent.tile = array<i64: 32, 32, 32, 3, 2>} : tensor<35x37xf32>, tensor<37x37xf32>
  return %y : tensor<35x37xf32>
}
func.func @tile_32x32_tn(%a: tensor<40x32xf32>, %b: tensor<40x32xf32>) -> tensor<32x32xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<40x32xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<40x32xf32>
  %2 = nn.round_tf32 %b : tensor<40x32xf32>
  %y = nn.matmul %1, %2 {transpose_a, descent.tile = array<i64: 32, 32, 8, 2, 1>} : tensor<40x32xf32>, tensor<40x32xf32>
  return %y : tensor<32x32xf32>
}
func.func @tile_32x32_tt(%a: tensor<37x35xf32>, %b: tensor<37x37xf32>) -> tensor<35x37xf32> {
  %third = nn.constant dense<0.333333333> : tensor<f32>
  %0 = nn.mul %a, %third : tensor<37x35xf32>, tensor<f32>
  %1 = nn.round_tf32 %0 : tensor<37x35xf32>
  %2 = nn.round_tf32 %b : tensor<37x37xf32>
  %y = nn.matmul %1, %2 {transpose_a, transpose_b, descent.tile = array<i64: 32, 32, 16, 3, 2>} : tensor<37x35xf32>, tensor<37x37xf32>
  return %y : tensor<35x37xf32>
}
func.func @convolution(%x: tensor<1x7x7x4xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<1x7x7x8xf32> {
  %0 = nn.round_tf32 %x : tensor<1x7x7x4xf32>
  %1 = nn.round_tf32 %w : tensor<3x3x4x8xf32>
  %y = nn.conv2d %0, %1 strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<1x7x7x4xf32>, tensor<3x3x4x8xf32>
  return %y : tensor<1x7x7x8xf32>
}
