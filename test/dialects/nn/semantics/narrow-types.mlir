// Narrow floats are widened, computed in f32 and rounded once: sums of bf16 do not stop growing, and elementwise results are those of f32 rounded.
// RUN: descent-run --linalg-forward --tolerance=0.01 %s

// 1 + 512 times 2^-9 is 2; a bf16 accumulator stays at 1.
func.func @sum() -> tensor<1xbf16> {
  %one = nn.constant dense<1.0> : tensor<1x1xbf16>
  %small = nn.constant dense<0.001953125> : tensor<1x512xbf16>
  %x = nn.concat %one, %small axis 1 : tensor<1x1xbf16>, tensor<1x512xbf16>
  %y = nn.reduce_sum %x [1] : tensor<1x513xbf16>
  return %y : tensor<1xbf16>
}
func.func @elementwise(%x: tensor<3x5xbf16>) -> tensor<3x5xbf16> {
  %a = nn.gelu %x tanh : tensor<3x5xbf16>
  %b = nn.silu %a : tensor<3x5xbf16>
  %y = nn.add %a, %b : tensor<3x5xbf16>, tensor<3x5xbf16>
  return %y : tensor<3x5xbf16>
}
func.func @half(%x: tensor<3x5xf16>) -> tensor<3x5xf16> {
  %y = nn.softmax %x axis 1 : tensor<3x5xf16>
  return %y : tensor<3x5xf16>
}
