// Elementwise ops and their gradients in generated code against the interpreter, at sizes that no vector divides: one element, one less and one more than a
// vector of 16, several tasks with a rest. Ranges keep clear of the edges of the domains.
// RUN: descent-run --compiled %s
// RUN: descent-run --compiled --target=cuda-emulated %s

func.func @neg(%x: tensor<1xf32>) -> tensor<1xf32> {
  %y = nn.neg %x : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @abs(%x: tensor<15xf32>) -> tensor<15xf32> {
  %y = nn.abs %x : tensor<15xf32>
  return %y : tensor<15xf32>
}
func.func @exp(%x: tensor<17xf32>) -> tensor<17xf32> {
  %y = nn.exp %x : tensor<17xf32>
  return %y : tensor<17xf32>
}
func.func @log(%x: tensor<1x67xf32> {check.range = [0.1, 9.0]}) -> tensor<1x67xf32> {
  %y = nn.log %x : tensor<1x67xf32>
  return %y : tensor<1x67xf32>
}
func.func @sqrt(%x: tensor<3x129xf32> {check.range = [0.1, 9.0]}) -> tensor<3x129xf32> {
  %y = nn.sqrt %x : tensor<3x129xf32>
  return %y : tensor<3x129xf32>
}
func.func @rsqrt(%x: tensor<5x7x13xf32> {check.range = [0.1, 9.0]}) -> tensor<5x7x13xf32> {
  %y = nn.rsqrt %x : tensor<5x7x13xf32>
  return %y : tensor<5x7x13xf32>
}
func.func @sin(%x: tensor<1xf32> {check.range = [-6.0, 6.0]}) -> tensor<1xf32> {
  %y = nn.sin %x : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @cos(%x: tensor<15xf32> {check.range = [-6.0, 6.0]}) -> tensor<15xf32> {
  %y = nn.cos %x : tensor<15xf32>
  return %y : tensor<15xf32>
}
func.func @tanh(%x: tensor<17xf32> {check.range = [-9.0, 9.0]}) -> tensor<17xf32> {
  %y = nn.tanh %x : tensor<17xf32>
  return %y : tensor<17xf32>
}
func.func @erf(%x: tensor<1x67xf32> {check.range = [-4.0, 4.0]}) -> tensor<1x67xf32> {
  %y = nn.erf %x : tensor<1x67xf32>
  return %y : tensor<1x67xf32>
}
func.func @sigmoid(%x: tensor<3x129xf32> {check.range = [-20.0, 20.0]}) -> tensor<3x129xf32> {
  %y = nn.sigmoid %x : tensor<3x129xf32>
  return %y : tensor<3x129xf32>
}
func.func @relu(%x: tensor<5x7x13xf32>) -> tensor<5x7x13xf32> {
  %y = nn.relu %x : tensor<5x7x13xf32>
  return %y : tensor<5x7x13xf32>
}
func.func @silu(%x: tensor<1xf32> {check.range = [-20.0, 20.0]}) -> tensor<1xf32> {
  %y = nn.silu %x : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @gelu_erf(%x: tensor<3x67xf32> {check.range = [-6.0, 6.0]}) -> tensor<3x67xf32> {
  %y = nn.gelu %x erf : tensor<3x67xf32>
  return %y : tensor<3x67xf32>
}
func.func @gelu_tanh(%x: tensor<3x67xf32> {check.range = [-6.0, 6.0]}) -> tensor<3x67xf32> {
  %y = nn.gelu %x tanh : tensor<3x67xf32>
  return %y : tensor<3x67xf32>
}
// A chain with a bias along each axis, long enough for several tasks and a rest in each.
func.func @chain(%x: tensor<41x1031xf32>, %b: tensor<1031xf32>, %c: tensor<41x1xf32>, %s: tensor<f32>) -> tensor<41x1031xf32> {
  %0 = nn.add %x, %b : tensor<41x1031xf32>, tensor<1031xf32>
  %1 = nn.mul %0, %c : tensor<41x1031xf32>, tensor<41x1xf32>
  %2 = nn.silu %1 : tensor<41x1031xf32>
  %3 = nn.sub %2, %s : tensor<41x1031xf32>, tensor<f32>
  %4 = nn.maximum %3, %x : tensor<41x1031xf32>, tensor<41x1031xf32>
  return %4 : tensor<41x1031xf32>
}
// Division and power take both operands apart.
func.func @div_pow(%a: tensor<7x19xf32> {check.range = [0.5, 2.0]}, %b: tensor<19xf32> {check.range = [0.5, 2.0]}) -> tensor<7x19xf32> {
  %0 = nn.div %a, %b : tensor<7x19xf32>, tensor<19xf32>
  %1 = nn.pow %a, %b : tensor<7x19xf32>, tensor<19xf32>
  %2 = nn.minimum %0, %1 : tensor<7x19xf32>, tensor<7x19xf32>
  return %2 : tensor<7x19xf32>
}
