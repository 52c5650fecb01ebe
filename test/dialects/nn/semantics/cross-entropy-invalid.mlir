// A target outside the classes that is not ignore_index is an error that names the row.
// RUN: not descent-run %s 2>&1 | FileCheck %s

// CHECK: 'nn.cross_entropy' op target 2 of row 1 is not a class: classes are 0 to 1, and ignore_index is -100
func.func @outside(%x: tensor<2x2xf32>) -> tensor<f32> {
  %t = nn.constant dense<[0, 2]> : tensor<2xi32>
  %s, %w = nn.cross_entropy %x, %t : tensor<2x2xf32>, tensor<2xi32>
  return %s : tensor<f32>
}
