// Embedding and its gradient in device code, run by the emulator with all its checks: negative indices, all indices equal, one position, positions that several blocks
// sort, tables whose rows take one, two and three passes to sort, sums that several segments hold, narrow tables.
// RUN: split-file %s %t
// RUN: descent-run --compiled --tolerance=2e-5 --target=cuda-emulated %t/wide.mlir
// RUN: descent-run --compiled --rounded --tolerance=8e-3 --target=cuda-emulated %t/narrow.mlir

//--- wide.mlir

func.func @small(%i: tensor<3x7xi32> {check.range = [-11.0, 11.0]}, %t: tensor<11x17xf32>) -> tensor<3x7x17xf32> {
  %y = nn.embedding %i, %t : tensor<3x7xi32>, tensor<11x17xf32>
  return %y : tensor<3x7x17xf32>
}
func.func @wide_indices(%i: tensor<21xi64> {check.range = [-11.0, 11.0]}, %t: tensor<11x64xf32>) -> tensor<21x64xf32> {
  %y = nn.embedding %i, %t : tensor<21xi64>, tensor<11x64xf32>
  return %y : tensor<21x64xf32>
}
func.func @one(%i: tensor<1xi32> {check.range = [-1.0, 1.0]}, %t: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %y = nn.embedding %i, %t : tensor<1xi32>, tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
func.func @one_column(%i: tensor<40xi32> {check.range = [-5.0, 5.0]}, %t: tensor<5x1xf32>) -> tensor<40x1xf32> {
  %y = nn.embedding %i, %t : tensor<40xi32>, tensor<5x1xf32>
  return %y : tensor<40x1xf32>
}
func.func @equal(%i: tensor<700xi32> {check.range = [-1.0, 1.0]}, %t: tensor<1x8xf32>) -> tensor<700x8xf32> {
  %y = nn.embedding %i, %t : tensor<700xi32>, tensor<1x8xf32>
  return %y : tensor<700x8xf32>
}
func.func @equal_many(%i: tensor<5000xi32> {check.range = [-1.0, 1.0]}, %t: tensor<1x3xf32>) -> tensor<5000x3xf32> {
  %y = nn.embedding %i, %t : tensor<5000xi32>, tensor<1x3xf32>
  return %y : tensor<5000x3xf32>
}
func.func @two_rows(%i: tensor<2500xi32> {check.range = [-2.0, 2.0]}, %t: tensor<2x5xf32>) -> tensor<2500x5xf32> {
  %y = nn.embedding %i, %t : tensor<2500xi32>, tensor<2x5xf32>
  return %y : tensor<2500x5xf32>
}
func.func @one_pass(%i: tensor<2100xi32> {check.range = [-300.0, 300.0]}, %t: tensor<300x4xf32>) -> tensor<2100x4xf32> {
  %y = nn.embedding %i, %t : tensor<2100xi32>, tensor<300x4xf32>
  return %y : tensor<2100x4xf32>
}
func.func @two_passes(%i: tensor<3000xi32> {check.range = [-600.0, 600.0]}, %t: tensor<600x12xf32>) -> tensor<3000x12xf32> {
  %y = nn.embedding %i, %t : tensor<3000xi32>, tensor<600x12xf32>
  return %y : tensor<3000x12xf32>
}
func.func @three_passes(%i: tensor<50xi32> {check.range = [-300000.0, 300000.0]}, %t: tensor<300000x1xf32>) -> tensor<50x1xf32> {
  %y = nn.embedding %i, %t : tensor<50xi32>, tensor<300000x1xf32>
  return %y : tensor<50x1xf32>
}
func.func @unused_rows(%i: tensor<130xi32> {check.range = [700.0, 1000.0]}, %t: tensor<1000x4xf32>) -> tensor<130x4xf32> {
  %y = nn.embedding %i, %t : tensor<130xi32>, tensor<1000x4xf32>
  return %y : tensor<130x4xf32>
}

//--- narrow.mlir

func.func @bf16(%i: tensor<30x7xi32> {check.range = [0.0, 40.0]}, %t: tensor<40x24xbf16>) -> tensor<30x7x24xbf16> {
  %y = nn.embedding %i, %t : tensor<30x7xi32>, tensor<40x24xbf16>
  return %y : tensor<30x7x24xbf16>
}
func.func @f16(%i: tensor<90xi64> {check.range = [0.0, 7.0]}, %t: tensor<7x9xf16>) -> tensor<90x9xf16> {
  %y = nn.embedding %i, %t : tensor<90xi64>, tensor<7x9xf16>
  return %y : tensor<90x9xf16>
}
