// An index outside the table is an error that names the op, the position and the value.
// RUN: not descent-run %s 2>&1 | FileCheck %s

// CHECK: 'nn.embedding' op index 3 at position 1 is outside the table: its rows are 0 to 2 (or -3 to -1 from the end)
func.func @outside(%x: tensor<3x1xf32>) -> tensor<2x1xf32> {
  %i = nn.constant dense<[0, 3]> : tensor<2xi32>
  %y = nn.embedding %i, %x : tensor<2xi32>, tensor<3x1xf32>
  return %y : tensor<2x1xf32>
}
