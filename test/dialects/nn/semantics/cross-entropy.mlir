// Ignored targets give zero loss, zero weight and zero gradient; (sum, weight) stay apart until one place divides.
// RUN: descent-run --gradients %s | FileCheck %s
// RUN: descent-run --linalg %s

// Class weights and smoothing with an ignored row: 0.7621352 / 0.3 = 2.5404506.
func.func @ignored(%x: tensor<2x2xf32> {check.value = dense<[[1.0, 2.0], [3.0, 0.4]]> : tensor<2x2xf32>}) -> tensor<f32> {
  %t = nn.constant dense<[-100, 1]> : tensor<2xi32>
  %cw = nn.constant dense<[0.2, 0.3]> : tensor<2xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<2xf32> {label_smoothing = 0.1} : tensor<2x2xf32>, tensor<2xi32>
  %y = nn.div %s, %w : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @ignored result 0 = [2.54045{{0[5-6][0-9]*}}]
// CHECK: @ignored gradient of argument 0 = [0, 0, {{[0-9.-]+}}, {{[0-9.-]+}}]

// The same batch without the row.
func.func @without_row(%x: tensor<1x2xf32> {check.value = dense<[[3.0, 0.4]]> : tensor<1x2xf32>}) -> tensor<f32> {
  %t = nn.constant dense<[1]> : tensor<1xi32>
  %cw = nn.constant dense<[0.2, 0.3]> : tensor<2xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<2xf32> {label_smoothing = 0.1} : tensor<1x2xf32>, tensor<1xi32>
  %y = nn.div %s, %w : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @without_row result 0 = [2.54045{{0[5-6][0-9]*}}]

// A batch with no counted target has sum 0, weight 0 and no gradient, whatever its logits hold.
func.func @none_counted(%x: tensor<1x2xf32> {check.value = dense<[[0x7FC00000, 0x7F800000]]> : tensor<1x2xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[-100]> : tensor<1xi32>
  %s, %w = nn.cross_entropy %x, %t : tensor<1x2xf32>, tensor<1xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @none_counted result 0 = [0]
// CHECK: @none_counted result 1 = [0]
// CHECK: @none_counted gradient of argument 0 = [0, 0]

// Another ignore_index; a padding row (row weight 0) counts for nothing even if its logits are NaN.
func.func @padding(%x: tensor<2x2xf32> {check.value = dense<[[0.0, 0.0], [0x7FC00000, 0.0]]> : tensor<2x2xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[1, 0]> : tensor<2xi32>
  %rw = nn.constant dense<[1.0, 0.0]> : tensor<2xf32>
  %s, %w = nn.cross_entropy %x, %t row_weights %rw : tensor<2xf32> {ignore_index = 5 : i64} : tensor<2x2xf32>, tensor<2xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @padding result 0 = [0.6931471806]
// CHECK: @padding result 1 = [1]
// CHECK: @padding gradient of argument 0 = [0.5, -0.5, 0, 0]

// A class masked by -infinity: its loss is never multiplied by zero.
func.func @masked_class(%x: tensor<1x3xf32> {check.value = dense<[[0.0, 0xFF800000, 0.0]]> : tensor<1x3xf32>}) -> tensor<f32> {
  %t = nn.constant dense<[2]> : tensor<1xi32>
  %cw = nn.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> {label_smoothing = 0.3} : tensor<1x3xf32>, tensor<1xi32>
  return %s : tensor<f32>
}
// CHECK: @masked_class result 0 = [0.6238324625]
// CHECK: @masked_class gradient of argument 0 = [0.3{{(5|49999)[0-9]*}}, 0, -0.3{{(5|49999)[0-9]*}}]
