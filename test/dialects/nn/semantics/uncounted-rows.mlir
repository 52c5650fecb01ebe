// A batch with rows that do not count equals the batch without them, sum, weight and gradient alike, for every combination of class weights and smoothing; whether
// the row is ignored by its target or padding by its row weight. The logits of such rows may be anything. One place divides: micro-batches add their sums and weights.
// RUN: descent-run --gradients %s | FileCheck %s
// RUN: descent-run --compiled %s

func.func @absent_plain(%x: tensor<2x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [1.0, 2.0, -0.5]]> : tensor<2x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 0]> : tensor<2xi32>
  %s, %w = nn.cross_entropy %x, %t : tensor<2x3xf32>, tensor<2xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @absent_plain result 0 = [[SUM:.*]]
// CHECK: @absent_plain result 1 = [[WEIGHT:.*]]
// CHECK: @absent_plain gradient of argument 0 = {{[[]}}[[G0:[-0-9.e]+]], [[G1:[-0-9.e]+]], [[G2:[-0-9.e]+]], [[G3:[-0-9.e]+]], [[G4:[-0-9.e]+]], [[G5:[-0-9.e]+]]]
func.func @ignored_plain(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, -100, 0]> : tensor<3xi32>
  %s, %w = nn.cross_entropy %x, %t : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @ignored_plain result 0 = [[SUM]]
// CHECK: @ignored_plain result 1 = [[WEIGHT]]
// CHECK: @ignored_plain gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]
func.func @padding_plain(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 1, 0]> : tensor<3xi32>
  %rw = nn.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t row_weights %rw : tensor<3xf32> : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @padding_plain result 0 = [[SUM]]
// CHECK: @padding_plain result 1 = [[WEIGHT]]
// CHECK: @padding_plain gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]

func.func @absent_plain_smoothed(%x: tensor<2x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [1.0, 2.0, -0.5]]> : tensor<2x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 0]> : tensor<2xi32>
  %s, %w = nn.cross_entropy %x, %t {label_smoothing = 0.1} : tensor<2x3xf32>, tensor<2xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @absent_plain_smoothed result 0 = [[SUM:.*]]
// CHECK: @absent_plain_smoothed result 1 = [[WEIGHT:.*]]
// CHECK: @absent_plain_smoothed gradient of argument 0 = {{[[]}}[[G0:[-0-9.e]+]], [[G1:[-0-9.e]+]], [[G2:[-0-9.e]+]], [[G3:[-0-9.e]+]], [[G4:[-0-9.e]+]], [[G5:[-0-9.e]+]]]
func.func @ignored_plain_smoothed(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, -100, 0]> : tensor<3xi32>
  %s, %w = nn.cross_entropy %x, %t {label_smoothing = 0.1} : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @ignored_plain_smoothed result 0 = [[SUM]]
// CHECK: @ignored_plain_smoothed result 1 = [[WEIGHT]]
// CHECK: @ignored_plain_smoothed gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]
func.func @padding_plain_smoothed(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 1, 0]> : tensor<3xi32>
  %rw = nn.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t row_weights %rw : tensor<3xf32> {label_smoothing = 0.1} : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @padding_plain_smoothed result 0 = [[SUM]]
// CHECK: @padding_plain_smoothed result 1 = [[WEIGHT]]
// CHECK: @padding_plain_smoothed gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]

func.func @absent_weights(%x: tensor<2x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [1.0, 2.0, -0.5]]> : tensor<2x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 0]> : tensor<2xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> : tensor<2x3xf32>, tensor<2xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @absent_weights result 0 = [[SUM:.*]]
// CHECK: @absent_weights result 1 = [[WEIGHT:.*]]
// CHECK: @absent_weights gradient of argument 0 = {{[[]}}[[G0:[-0-9.e]+]], [[G1:[-0-9.e]+]], [[G2:[-0-9.e]+]], [[G3:[-0-9.e]+]], [[G4:[-0-9.e]+]], [[G5:[-0-9.e]+]]]
func.func @ignored_weights(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, -100, 0]> : tensor<3xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @ignored_weights result 0 = [[SUM]]
// CHECK: @ignored_weights result 1 = [[WEIGHT]]
// CHECK: @ignored_weights gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]
func.func @padding_weights(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 1, 0]> : tensor<3xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %rw = nn.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> row_weights %rw : tensor<3xf32> : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @padding_weights result 0 = [[SUM]]
// CHECK: @padding_weights result 1 = [[WEIGHT]]
// CHECK: @padding_weights gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]

func.func @absent_weights_smoothed(%x: tensor<2x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [1.0, 2.0, -0.5]]> : tensor<2x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 0]> : tensor<2xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> {label_smoothing = 0.1} : tensor<2x3xf32>, tensor<2xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @absent_weights_smoothed result 0 = [[SUM:.*]]
// CHECK: @absent_weights_smoothed result 1 = [[WEIGHT:.*]]
// CHECK: @absent_weights_smoothed gradient of argument 0 = {{[[]}}[[G0:[-0-9.e]+]], [[G1:[-0-9.e]+]], [[G2:[-0-9.e]+]], [[G3:[-0-9.e]+]], [[G4:[-0-9.e]+]], [[G5:[-0-9.e]+]]]
func.func @ignored_weights_smoothed(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, -100, 0]> : tensor<3xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> {label_smoothing = 0.1} : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @ignored_weights_smoothed result 0 = [[SUM]]
// CHECK: @ignored_weights_smoothed result 1 = [[WEIGHT]]
// CHECK: @ignored_weights_smoothed gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]
func.func @padding_weights_smoothed(%x: tensor<3x3xf32> {check.value = dense<[[0.3, -1.2, 2.0], [7.0, 0x7FC00000, -3.0], [1.0, 2.0, -0.5]]> : tensor<3x3xf32>}) -> (tensor<f32>, tensor<f32>) {
  %t = nn.constant dense<[2, 1, 0]> : tensor<3xi32>
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %rw = nn.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> row_weights %rw : tensor<3xf32> {label_smoothing = 0.1} : tensor<3x3xf32>, tensor<3xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// CHECK: @padding_weights_smoothed result 0 = [[SUM]]
// CHECK: @padding_weights_smoothed result 1 = [[WEIGHT]]
// CHECK: @padding_weights_smoothed gradient of argument 0 = {{[[]}}[[G0]], [[G1]], [[G2]], 0, 0, 0, [[G3]], [[G4]], [[G5]]]

// Micro-batch A holds 1 target of loss 4, B 3 targets of loss 1: 7 / 4, where a mean of means gives 2.5.
func.func @micro_batches(%a: tensor<1x1xf32> {check.value = dense<2.0> : tensor<1x1xf32>}, %b: tensor<3x1xf32> {check.value = dense<1.0> : tensor<3x1xf32>}) -> tensor<f32> {
  %ta = nn.constant dense<0.0> : tensor<1x1xf32>
  %tb = nn.constant dense<0.0> : tensor<3x1xf32>
  %sa, %wa = nn.mse %a, %ta : tensor<1x1xf32>, tensor<1x1xf32>
  %sb, %wb = nn.mse %b, %tb : tensor<3x1xf32>, tensor<3x1xf32>
  %s = nn.add %sa, %sb : tensor<f32>, tensor<f32>
  %w = nn.add %wa, %wb : tensor<f32>, tensor<f32>
  %y = nn.div %s, %w : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}
// CHECK: @micro_batches result 0 = [1.75]
// CHECK: @micro_batches gradient of argument 0 = [1]
// CHECK: @micro_batches gradient of argument 1 = [0.5, 0.5, 0.5]
