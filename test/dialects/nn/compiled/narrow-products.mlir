// Products of narrow types, and their gradients, in generated code against the interpreter. The sum is f32; `result_type` keeps it or it is rounded once, and
// epilogues round after each op. The tolerance is that of two roundings to bf16: gradients are narrow even where the result is not.
// RUN: descent-run --compiled --tolerance=8e-3 %s

func.func @bf16(%x: tensor<37x53xbf16>, %w: tensor<53x67xbf16>) -> tensor<37x67xf32> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<37x53xbf16>, tensor<53x67xbf16>
  return %0 : tensor<37x67xf32>
}
func.func @f16_weight_gradient(%x: tensor<53x37xf16>, %dy: tensor<53x67xf16>) -> tensor<37x67xf32> {
  %0 = nn.matmul %x, %dy {transpose_a, result_type = f32} : tensor<53x37xf16>, tensor<53x67xf16>
  return %0 : tensor<37x67xf32>
}
func.func @bf16_bias_in_f32(%x: tensor<2x19x53xbf16>, %w: tensor<67x53xbf16>, %b: tensor<67xf32>) -> tensor<2x19x67xf32> {
  %0 = nn.matmul %x, %w {transpose_b, result_type = f32} : tensor<2x19x53xbf16>, tensor<67x53xbf16>
  %1 = nn.add %0, %b : tensor<2x19x67xf32>, tensor<67xf32>
  return %1 : tensor<2x19x67xf32>
}
func.func @bf16_batches(%q: tensor<3x17x9xbf16>, %k: tensor<3x33x9xbf16>) -> tensor<3x17x33xf32> {
  %0 = nn.matmul %q, %k {transpose_b, result_type = f32} : tensor<3x17x9xbf16>, tensor<3x33x9xbf16>
  return %0 : tensor<3x17x33xf32>
}
func.func @convolution(%x: tensor<2x7x9x3xbf16>, %w: tensor<3x3x3x5xbf16>) -> tensor<2x7x9x5xf32> {
  %0 = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] {result_type = f32} : tensor<2x7x9x3xbf16>, tensor<3x3x3x5xbf16>
  return %0 : tensor<2x7x9x5xf32>
}
func.func @bf16_bias_relu(%x: tensor<37x53xbf16>, %w: tensor<53x67xbf16>, %b: tensor<67xbf16>) -> tensor<37x67xbf16> {
  %0 = nn.matmul %x, %w : tensor<37x53xbf16>, tensor<53x67xbf16>
  %1 = nn.add %0, %b : tensor<37x67xbf16>, tensor<67xbf16>
  %2 = nn.relu %1 : tensor<37x67xbf16>
  return %2 : tensor<37x67xbf16>
}
func.func @f32_bias_then_cast(%x: tensor<37x53xbf16>, %w: tensor<53x67xbf16>, %b: tensor<67xf32>) -> tensor<37x67xbf16> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<37x53xbf16>, tensor<53x67xbf16>
  %1 = nn.add %0, %b : tensor<37x67xf32>, tensor<67xf32>
  %2 = nn.cast %1 to bf16 : tensor<37x67xf32>
  return %2 : tensor<37x67xbf16>
}
func.func @f16_gelu(%x: tensor<37x53xf16>, %w: tensor<53x64xf16>) -> tensor<37x64xf16> {
  %0 = nn.matmul %x, %w : tensor<37x53xf16>, tensor<53x64xf16>
  %1 = nn.gelu %0 tanh : tensor<37x64xf16>
  return %1 : tensor<37x64xf16>
}
func.func @convolution_bias(%x: tensor<2x7x9x3xbf16>, %w: tensor<3x3x3x5xbf16>, %b: tensor<5xbf16>) -> tensor<2x7x9x5xbf16> {
  %0 = nn.conv2d %x, %w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<2x7x9x3xbf16>, tensor<3x3x3x5xbf16>
  %1 = nn.add %0, %b : tensor<2x7x9x5xbf16>, tensor<5xbf16>
  return %1 : tensor<2x7x9x5xbf16>
}
