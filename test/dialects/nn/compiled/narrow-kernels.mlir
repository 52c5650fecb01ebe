// Each kind of kernel but products on bf16 and f16, alone and beside f32, at odd sizes, with its gradient. Scores, sums and statistics are f32 inside, so
// what is left is a rounding of what is stored on the way and of the result: a few times half a unit in the last of 8 or 11 bits.
// RUN: split-file %s %t
// RUN: descent-run --compiled --tolerance=1.6e-2 %t/bf16.mlir
// RUN: descent-run --compiled --tolerance=1.6e-2 --cpu=haswell %t/bf16.mlir
// RUN: descent-run --compiled --tolerance=2e-3 %t/f16.mlir
// RUN: descent-run --compiled --tolerance=2e-3 --cpu=haswell %t/f16.mlir
// RUN: descent-run --compiled --tolerance=1.6e-2 --target=cuda-emulated %t/bf16.mlir
// RUN: descent-run --compiled --tolerance=2e-3 --target=cuda-emulated %t/f16.mlir

//--- bf16.mlir
func.func @attention(%x: tensor<2x19x30xbf16>) -> tensor<2x19x10xbf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<2x19x30xbf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<2x19x10xbf16>, tensor<2x19x10xbf16>, tensor<2x19x10xbf16>
  return %y : tensor<2x19x10xbf16>
}
func.func @attention_apart(%q: tensor<1x37x21xbf16>, %k: tensor<1x37x21xbf16>, %v: tensor<1x37x21xbf16>) -> tensor<1x37x21xbf16> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x37x21xbf16>, tensor<1x37x21xbf16>, tensor<1x37x21xbf16>
  return %y : tensor<1x37x21xbf16>
}
func.func @norm(%x: tensor<5x67xbf16>, %g: tensor<67xf32>, %b: tensor<67xbf16>) -> tensor<5x67xbf16> {
  %0 = nn.cast %x to f32 : tensor<5x67xbf16>
  %1 = nn.cast %b to f32 : tensor<67xbf16>
  %2 = nn.layer_norm %0, %g, %1 : tensor<5x67xf32>, tensor<67xf32>, tensor<67xf32>
  %3 = nn.cast %2 to bf16 : tensor<5x67xf32>
  return %3 : tensor<5x67xbf16>
}
func.func @two_readers(%x: tensor<7x33xbf16>, %w: tensor<33x33xf32>) -> (tensor<7x33xbf16>, tensor<33xf32>) {
  %0 = nn.cast %x to f32 : tensor<7x33xbf16>
  %1 = nn.tanh %0 : tensor<7x33xf32>
  %2 = nn.matmul %1, %w : tensor<7x33xf32>, tensor<33x33xf32>
  %3 = nn.add %2, %0 : tensor<7x33xf32>, tensor<7x33xf32>
  %4 = nn.cast %3 to bf16 : tensor<7x33xf32>
  %5 = nn.reduce_mean %0 [0] : tensor<7x33xf32>
  return %4, %5 : tensor<7x33xbf16>, tensor<33xf32>
}
func.func @losses(%x: tensor<9x65xbf16>, %t: tensor<9xi32> {check.range = [0.0, 65.0]}) -> tensor<f32> {
  %0 = nn.cast %x to f32 : tensor<9x65xbf16>
  %sum, %weight = nn.cross_entropy %0, %t : tensor<9x65xf32>, tensor<9xi32>
  %y = nn.div %sum, %weight : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
func.func @embedding(%i: tensor<3x5xi32> {check.range = [0.0, 11.0]}, %t: tensor<11x19xbf16>) -> tensor<3x5x19xf32> {
  %0 = nn.embedding %i, %t : tensor<3x5xi32>, tensor<11x19xbf16>
  %1 = nn.cast %0 to f32 : tensor<3x5x19xbf16>
  return %1 : tensor<3x5x19xf32>
}
func.func @pool(%x: tensor<2x7x9x5xbf16>) -> tensor<2x4x5x5xbf16> {
  %y = nn.max_pool2d %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x5xbf16>
  return %y : tensor<2x4x5x5xbf16>
}
func.func @moves(%x: tensor<3x5x7xbf16>) -> (tensor<7x3x5xbf16>, tensor<3x9x9xf32>) {
  %0 = nn.transpose %x [2, 0, 1] : tensor<3x5x7xbf16>
  %1 = nn.cast %x to f32 : tensor<3x5x7xbf16>
  %2 = nn.pad %1 low [0, 2, 1] high [0, 2, 1] interior [0, 0, 0] : tensor<3x5x7xf32>
  return %0, %2 : tensor<7x3x5xbf16>, tensor<3x9x9xf32>
}
func.func @elementwise(%x: tensor<5x19xbf16>, %y: tensor<19xbf16>) -> tensor<5x19xbf16> {
  %0 = nn.add %x, %y : tensor<5x19xbf16>, tensor<19xbf16>
  %1 = nn.gelu %0 tanh : tensor<5x19xbf16>
  return %1 : tensor<5x19xbf16>
}

//--- f16.mlir
func.func @attention(%x: tensor<2x19x30xf16>) -> tensor<2x19x10xf16> {
  %q, %k, %v = nn.split %x axis 2 sections 3 : tensor<2x19x30xf16>
  %y = nn.attention %q, %k, %v heads 2 causal : tensor<2x19x10xf16>, tensor<2x19x10xf16>, tensor<2x19x10xf16>
  return %y : tensor<2x19x10xf16>
}
func.func @attention_apart(%q: tensor<1x37x21xf16>, %k: tensor<1x37x21xf16>, %v: tensor<1x37x21xf16>) -> tensor<1x37x21xf16> {
  %y = nn.attention %q, %k, %v heads 3 : tensor<1x37x21xf16>, tensor<1x37x21xf16>, tensor<1x37x21xf16>
  return %y : tensor<1x37x21xf16>
}
func.func @norm(%x: tensor<5x67xf16>, %g: tensor<67xf32>, %b: tensor<67xf16>) -> tensor<5x67xf16> {
  %0 = nn.cast %x to f32 : tensor<5x67xf16>
  %1 = nn.cast %b to f32 : tensor<67xf16>
  %2 = nn.layer_norm %0, %g, %1 : tensor<5x67xf32>, tensor<67xf32>, tensor<67xf32>
  %3 = nn.cast %2 to f16 : tensor<5x67xf32>
  return %3 : tensor<5x67xf16>
}
func.func @two_readers(%x: tensor<7x33xf16>, %w: tensor<33x33xf32>) -> (tensor<7x33xf16>, tensor<33xf32>) {
  %0 = nn.cast %x to f32 : tensor<7x33xf16>
  %1 = nn.tanh %0 : tensor<7x33xf32>
  %2 = nn.matmul %1, %w : tensor<7x33xf32>, tensor<33x33xf32>
  %3 = nn.add %2, %0 : tensor<7x33xf32>, tensor<7x33xf32>
  %4 = nn.cast %3 to f16 : tensor<7x33xf32>
  %5 = nn.reduce_mean %0 [0] : tensor<7x33xf32>
  return %4, %5 : tensor<7x33xf16>, tensor<33xf32>
}
func.func @losses(%x: tensor<9x65xf16>, %t: tensor<9xi32> {check.range = [0.0, 65.0]}) -> tensor<f32> {
  %0 = nn.cast %x to f32 : tensor<9x65xf16>
  %sum, %weight = nn.cross_entropy %0, %t : tensor<9x65xf32>, tensor<9xi32>
  %y = nn.div %sum, %weight : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
func.func @embedding(%i: tensor<3x5xi32> {check.range = [0.0, 11.0]}, %t: tensor<11x19xf16>) -> tensor<3x5x19xf32> {
  %0 = nn.embedding %i, %t : tensor<3x5xi32>, tensor<11x19xf16>
  %1 = nn.cast %0 to f32 : tensor<3x5x19xf16>
  return %1 : tensor<3x5x19xf32>
}
func.func @pool(%x: tensor<2x7x9x5xf16>) -> tensor<2x4x5x5xf16> {
  %y = nn.max_pool2d %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x7x9x5xf16>
  return %y : tensor<2x4x5x5xf16>
}
func.func @moves(%x: tensor<3x5x7xf16>) -> (tensor<7x3x5xf16>, tensor<3x9x9xf32>) {
  %0 = nn.transpose %x [2, 0, 1] : tensor<3x5x7xf16>
  %1 = nn.cast %x to f32 : tensor<3x5x7xf16>
  %2 = nn.pad %1 low [0, 2, 1] high [0, 2, 1] interior [0, 0, 0] : tensor<3x5x7xf32>
  return %0, %2 : tensor<7x3x5xf16>, tensor<3x9x9xf32>
}
func.func @elementwise(%x: tensor<5x19xf16>, %y: tensor<19xf16>) -> tensor<5x19xf16> {
  %0 = nn.add %x, %y : tensor<5x19xf16>, tensor<19xf16>
  %1 = nn.gelu %0 tanh : tensor<5x19xf16>
  return %1 : tensor<5x19xf16>
}
