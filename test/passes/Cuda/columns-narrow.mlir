// The same for narrow values: sums in f32, rounded once to the type of the result; eight columns of 2 bytes a thread.
// RUN: descent-run --compiled --rounded --tolerance=8e-3 --target=cuda-emulated %s

func.func @sum_bf16_1x8(%x: tensor<1x8xbf16> {check.range = [0.0, 1.0]}) -> tensor<8xbf16> {
  %y = nn.reduce_sum %x [0] : tensor<1x8xbf16>
  return %y : tensor<8xbf16>
}
func.func @sum_bf16_2x31(%x: tensor<2x31xbf16> {check.range = [0.0, 1.0]}) -> tensor<31xbf16> {
  %y = nn.reduce_sum %x [0] : tensor<2x31xbf16>
  return %y : tensor<31xbf16>
}
func.func @sum_bf16_400x64(%x: tensor<400x64xbf16> {check.range = [0.0, 1.0]}) -> tensor<64xbf16> {
  %y = nn.reduce_sum %x [0] : tensor<400x64xbf16>
  return %y : tensor<64xbf16>
}
func.func @sum_bf16_400x127(%x: tensor<400x127xbf16> {check.range = [0.0, 1.0]}) -> tensor<127xbf16> {
  %y = nn.reduce_sum %x [0] : tensor<400x127xbf16>
  return %y : tensor<127xbf16>
}
func.func @sum_bf16_600x4(%x: tensor<600x4xbf16> {check.range = [0.0, 1.0]}) -> tensor<4xbf16> {
  %y = nn.reduce_sum %x [0] : tensor<600x4xbf16>
  return %y : tensor<4xbf16>
}
func.func @sum_f16_1x8(%x: tensor<1x8xf16> {check.range = [0.0, 1.0]}) -> tensor<8xf16> {
  %y = nn.reduce_sum %x [0] : tensor<1x8xf16>
  return %y : tensor<8xf16>
}
func.func @sum_f16_2x31(%x: tensor<2x31xf16> {check.range = [0.0, 1.0]}) -> tensor<31xf16> {
  %y = nn.reduce_sum %x [0] : tensor<2x31xf16>
  return %y : tensor<31xf16>
}
func.func @sum_f16_400x64(%x: tensor<400x64xf16> {check.range = [0.0, 1.0]}) -> tensor<64xf16> {
  %y = nn.reduce_sum %x [0] : tensor<400x64xf16>
  return %y : tensor<64xf16>
}
func.func @sum_f16_400x127(%x: tensor<400x127xf16> {check.range = [0.0, 1.0]}) -> tensor<127xf16> {
  %y = nn.reduce_sum %x [0] : tensor<400x127xf16>
  return %y : tensor<127xf16>
}
func.func @sum_f16_600x4(%x: tensor<600x4xf16> {check.range = [0.0, 1.0]}) -> tensor<4xf16> {
  %y = nn.reduce_sum %x [0] : tensor<600x4xf16>
  return %y : tensor<4xf16>
}
func.func @mixed(%x: tensor<300x24xbf16>, %w: tensor<300x24xf32>) -> tensor<24xf32> {
  %f = nn.cast %x to f32 : tensor<300x24xbf16>
  %p = nn.mul %f, %w : tensor<300x24xf32>, tensor<300x24xf32>
  %y = nn.reduce_sum %p [0] : tensor<300x24xf32>
  return %y : tensor<24xf32>
}
