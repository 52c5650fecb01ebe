// Products of narrow types as the emulated library computes them and as generated code does in its stead, with their gradients, against the
// interpreter. What the library rounds differs from what the ops round by less than a unit in the last place of bf16; where terms cancel, that shows.
// RUN: descent-run --compiled --tolerance=0.06 --target=cuda-emulated %s
// RUN: env DESCENT_EMULATOR_CUBLASLT=none descent-run --compiled --tolerance=0.06 --target=cuda-emulated %s

func.func @narrow(%x: tensor<8x16xbf16>, %w: tensor<16x24xbf16>, %b: tensor<24xbf16>) -> tensor<8x24xbf16> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<8x16xbf16>, tensor<16x24xbf16>
  %1 = nn.cast %b to f32 : tensor<24xbf16>
  %2 = nn.add %0, %1 : tensor<8x24xf32>, tensor<24xf32>
  %3 = nn.cast %2 to bf16 : tensor<8x24xf32>
  return %3 : tensor<8x24xbf16>
}
func.func @half(%x: tensor<8x16xf16>, %w: tensor<24x16xf16>) -> tensor<8x24xf16> {
  %0 = nn.matmul %x, %w {transpose_b} : tensor<8x16xf16>, tensor<24x16xf16>
  return %0 : tensor<8x24xf16>
}
// An f32 bias and a pre-activation that are rounded otherwise than the ops say, by less than the result is.
func.func @narrow_mlp(%x: tensor<8x16xbf16>, %w: tensor<16x24xbf16>, %b: tensor<24xf32>, %v: tensor<24x8xbf16>) -> tensor<8x8xbf16> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<8x16xbf16>, tensor<16x24xbf16>
  %1 = nn.add %0, %b : tensor<8x24xf32>, tensor<24xf32>
  %2 = nn.cast %1 to bf16 : tensor<8x24xf32>
  %3 = nn.gelu %2 tanh : tensor<8x24xbf16>
  %4 = nn.matmul %3, %v : tensor<8x24xbf16>, tensor<24x8xbf16>
  return %4 : tensor<8x8xbf16>
}
