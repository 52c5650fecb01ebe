// Values that are not f32: integers wrap, comparisons and booleans select, narrow floats are rounded once where a cast says so. The tolerance of a function on
// bf16 is its rounding, half a unit in the last of 8 bits.
// RUN: split-file %s %t
// RUN: descent-run --compiled %t/exact.mlir
// RUN: descent-run --compiled --target=cuda-emulated %t/exact.mlir
// RUN: descent-run --compiled --tolerance=4e-3 %t/narrow.mlir
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=4e-3 %t/narrow.mlir

//--- exact.mlir
func.func @integers(%a: tensor<5x19xi32> {check.range = [-70000.0, 70000.0]}, %b: tensor<19xi32> {check.range = [-70000.0, 70000.0]}) -> tensor<5x19xi32> {
  %0 = nn.add %a, %b : tensor<5x19xi32>, tensor<19xi32>
  %1 = nn.mul %0, %a : tensor<5x19xi32>, tensor<5x19xi32>
  %2 = nn.sub %1, %b : tensor<5x19xi32>, tensor<19xi32>
  %3 = nn.maximum %2, %a : tensor<5x19xi32>, tensor<5x19xi32>
  return %3 : tensor<5x19xi32>
}
func.func @comparisons(%x: tensor<5x19xf32>, %y: tensor<19xf32>) -> (tensor<5x19xi1>, tensor<5x19xf32>) {
  %0 = nn.compare lt %x, %y : tensor<5x19xf32>, tensor<19xf32>
  %1 = nn.where %0, %x, %y : tensor<5x19xi1>, tensor<5x19xf32>, tensor<19xf32>
  %2 = nn.cast %0 to f32 : tensor<5x19xi1>
  %3 = nn.mul %1, %2 : tensor<5x19xf32>, tensor<5x19xf32>
  return %0, %3 : tensor<5x19xi1>, tensor<5x19xf32>
}
func.func @casts(%i: tensor<19xi32> {check.range = [-1000.0, 1000.0]}) -> (tensor<19xi64>, tensor<19xf32>, tensor<19xi32>) {
  %0 = nn.cast %i to i64 : tensor<19xi32>
  %1 = nn.cast %0 to f32 : tensor<19xi64>
  %2 = nn.cast %1 to i32 : tensor<19xf32>
  return %0, %1, %2 : tensor<19xi64>, tensor<19xf32>, tensor<19xi32>
}
func.func @positions(%x: tensor<3x19xf32>) -> tensor<3x19xf32> {
  %0 = nn.iota [3, 19] axis 1 i32
  %1 = nn.cast %0 to f32 : tensor<3x19xi32>
  %2 = nn.mul %x, %1 : tensor<3x19xf32>, tensor<3x19xf32>
  return %2 : tensor<3x19xf32>
}

//--- narrow.mlir
func.func @narrow_bf16(%x: tensor<5x19xbf16>, %y: tensor<5x19xbf16>) -> tensor<5x19xbf16> {
  %0 = nn.cast %x to f32 : tensor<5x19xbf16>
  %1 = nn.cast %y to f32 : tensor<5x19xbf16>
  %2 = nn.mul %0, %1 : tensor<5x19xf32>, tensor<5x19xf32>
  %3 = nn.cast %2 to bf16 : tensor<5x19xf32>
  return %3 : tensor<5x19xbf16>
}
func.func @narrow_f16(%x: tensor<5x19xf16>, %y: tensor<5x19xf16>) -> tensor<5x19xf16> {
  %0 = nn.cast %x to f32 : tensor<5x19xf16>
  %1 = nn.cast %y to f32 : tensor<5x19xf16>
  %2 = nn.mul %0, %1 : tensor<5x19xf32>, tensor<5x19xf32>
  %3 = nn.cast %2 to f16 : tensor<5x19xf32>
  return %3 : tensor<5x19xf16>
}
