// Epilogues of products in device code: everything elementwise that fusion puts behind a product, inputs of every shape that it may read, several results,
// values of i1, results over inputs. See device-contraction.mlir.
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1e-5 %s

func.func @bias_gelu_residual(%a: tensor<3x7x17xf32>, %b: tensor<17x20xf32>, %c: tensor<20xf32>, %r: tensor<3x7x20xf32>) -> tensor<3x7x20xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<3x7x17xf32>, tensor<17x20xf32>
  %1 = nn.add %0, %c : tensor<3x7x20xf32>, tensor<20xf32>
  %2 = nn.gelu %1 tanh : tensor<3x7x20xf32>
  %3 = nn.add %2, %r : tensor<3x7x20xf32>, tensor<3x7x20xf32>
  return %3 : tensor<3x7x20xf32>
}
func.func @bias_odd(%a: tensor<9x10xf32>, %b: tensor<10x7xf32>, %c: tensor<7xf32>) -> tensor<9x7xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<9x10xf32>, tensor<10x7xf32>
  %1 = nn.add %0, %c : tensor<9x7xf32>, tensor<7xf32>
  %2 = nn.relu %1 : tensor<9x7xf32>
  return %2 : tensor<9x7xf32>
}
// One element a row, rows that repeat over an outer and over an inner axis, a scalar.
func.func @broadcasts(%a: tensor<2x6x8xf32>, %b: tensor<2x8x12xf32>, %c: tensor<2x6x1xf32>, %d: tensor<6x12xf32>, %e: tensor<2x1x12xf32>, %f: tensor<f32>)
    -> tensor<2x6x12xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<2x6x8xf32>, tensor<2x8x12xf32>
  %1 = nn.mul %0, %c : tensor<2x6x12xf32>, tensor<2x6x1xf32>
  %2 = nn.add %1, %d : tensor<2x6x12xf32>, tensor<6x12xf32>
  %3 = nn.sub %2, %e : tensor<2x6x12xf32>, tensor<2x1x12xf32>
  %4 = nn.mul %3, %f : tensor<2x6x12xf32>, tensor<f32>
  return %4 : tensor<2x6x12xf32>
}
// The activation and what it is applied to.
func.func @two_results(%a: tensor<6x8xf32>, %b: tensor<8x12xf32>, %c: tensor<12xf32>) -> (tensor<6x12xf32>, tensor<6x12xf32>) {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<6x8xf32>, tensor<8x12xf32>
  %1 = nn.add %0, %c : tensor<6x12xf32>, tensor<12xf32>
  %2 = nn.sigmoid %1 : tensor<6x12xf32>
  return %1, %2 : tensor<6x12xf32>, tensor<6x12xf32>
}
func.func @masks(%a: tensor<6x8xf32>, %b: tensor<8x11xf32>, %m: tensor<6x11xi1>, %r: tensor<6x11xf32>) -> tensor<6x11xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<6x8xf32>, tensor<8x11xf32>
  %1 = nn.where %m, %0, %r : tensor<6x11xi1>, tensor<6x11xf32>, tensor<6x11xf32>
  return %1 : tensor<6x11xf32>
}
func.func @compares(%a: tensor<6x8xf32>, %b: tensor<8x12xf32>, %r: tensor<6x12xf32>) -> tensor<6x12xi1> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<6x8xf32>, tensor<8x12xf32>
  %1 = nn.compare lt %0, %r : tensor<6x12xf32>, tensor<6x12xf32>
  return %1 : tensor<6x12xi1>
}
// A sum that is added to: the result lies over the other addend where that dies.
func.func @accumulates(%a: tensor<6x8xf32>, %b: tensor<8x12xf32>, %c: tensor<8x12xf32>) -> tensor<6x12xf32> {
  %0 = nn.matmul %a, %b {descent.tile = array<i64>} : tensor<6x8xf32>, tensor<8x12xf32>
  %1 = nn.matmul %a, %c {descent.tile = array<i64>} : tensor<6x8xf32>, tensor<8x12xf32>
  %2 = nn.add %0, %1 : tensor<6x12xf32>, tensor<6x12xf32>
  return %2 : tensor<6x12xf32>
}
func.func @tf32(%a: tensor<6x40xf32>, %b: tensor<40x12xf32>) -> tensor<6x12xf32> {
  %0 = nn.round_tf32 %a : tensor<6x40xf32>
  %1 = nn.round_tf32 %b : tensor<40x12xf32>
  %2 = nn.matmul %0, %1 {descent.tile = array<i64>} : tensor<6x40xf32>, tensor<40x12xf32>
  return %2 : tensor<6x12xf32>
}
