// Gradients of elementwise ops against central differences in double, and the compiled form against the interpreter. Ranges keep clear of kinks
// (which semantics/subgradients.mlir pins) and of the edges of the domains of log, sqrt and rsqrt.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --linalg %s
// RUN: descent-run --compiled %s

func.func @neg(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.neg %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @abs(%x: tensor<7xf32>) -> tensor<7xf32> {
  %y = nn.abs %x : tensor<7xf32>
  return %y : tensor<7xf32>
}
func.func @exp(%x: tensor<1x7xf32>) -> tensor<1x7xf32> {
  %y = nn.exp %x : tensor<1x7xf32>
  return %y : tensor<1x7xf32>
}
func.func @log(%x: tensor<3x5xf32> {check.range = [0.5, 4.0]}) -> tensor<3x5xf32> {
  %y = nn.log %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @sqrt(%x: tensor<3x5xf32> {check.range = [0.5, 4.0]}) -> tensor<3x5xf32> {
  %y = nn.sqrt %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @rsqrt(%x: tensor<3x5xf32> {check.range = [0.5, 4.0]}) -> tensor<3x5xf32> {
  %y = nn.rsqrt %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @sin(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.sin %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @cos(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.cos %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @tanh(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.tanh %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @erf(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.erf %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @sigmoid(%x: tensor<3x5xf32> {check.range = [-6.0, 6.0]}) -> tensor<3x5xf32> {
  %y = nn.sigmoid %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @relu(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.relu %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @silu(%x: tensor<3x5xf32> {check.range = [-6.0, 6.0]}) -> tensor<3x5xf32> {
  %y = nn.silu %x : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @gelu_erf(%x: tensor<3x5xf32> {check.range = [-4.0, 4.0]}) -> tensor<3x5xf32> {
  %y = nn.gelu %x erf : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @gelu_tanh(%x: tensor<3x5xf32> {check.range = [-4.0, 4.0]}) -> tensor<3x5xf32> {
  %y = nn.gelu %x tanh : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
// A rank-0 operand and a value used twice.
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %y = nn.mul %x, %x : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
