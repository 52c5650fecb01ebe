// Softmax, norms, dropout and losses: gradients as built and as decomposed against differences, and compiled against the interpreter.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --linalg %s
// RUN: descent-run --compiled %s

func.func @softmax(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @softmax_middle(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}
func.func @log_softmax(%x: tensor<1x7xf32>) -> tensor<1x7xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<1x7xf32>
  return %y : tensor<1x7xf32>
}
func.func @log_softmax_first(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.log_softmax %x axis 0 : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @layer_norm(%x: tensor<2x3x5xf32>, %gain: tensor<5xf32>, %bias: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %y = nn.layer_norm %x, %gain, %bias : tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>
  return %y : tensor<2x3x5xf32>
}
// The mask is the same in forward, gradient, decomposition and compiled code: it is a function of rng, id and element.
func.func @dropout(%x: tensor<3x5xf32>, %rng: tensor<4xi32> {check.value = dense<[1, 2, 3, -4]> : tensor<4xi32>}) -> tensor<3x5xf32> {
  %y = nn.dropout %x rng %rng {rate = 0.4, id = 7} : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @dropout_in_evaluation(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.dropout %x {rate = 0.4} : tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @cross_entropy(%x: tensor<2x3x5xf32>, %t: tensor<2x3xi32> {check.range = [0.0, 5.0]}) -> tensor<f32> {
  %s, %w = nn.cross_entropy %x, %t : tensor<2x3x5xf32>, tensor<2x3xi32>
  return %s : tensor<f32>
}
// Everything at once: an ignored row, class weights, smoothing, a row of weight 0.
func.func @cross_entropy_weighted(%x: tensor<4x3xf32>,
    %t: tensor<4xi32> {check.value = dense<[2, -100, 0, 1]> : tensor<4xi32>}) -> (tensor<f32>, tensor<f32>) {
  %cw = nn.constant dense<[0.2, 0.3, 0.7]> : tensor<3xf32>
  %rw = nn.constant dense<[1.0, 1.0, 0.0, 0.5]> : tensor<4xf32>
  %s, %w = nn.cross_entropy %x, %t class_weights %cw : tensor<3xf32> row_weights %rw : tensor<4xf32>
    {label_smoothing = 0.1} : tensor<4x3xf32>, tensor<4xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
func.func @cross_entropy_smoothed(%x: tensor<4x3xf32>, %t: tensor<4xi64> {check.range = [0.0, 3.0]}) -> tensor<f32> {
  %s, %w = nn.cross_entropy %x, %t {label_smoothing = 0.25} : tensor<4x3xf32>, tensor<4xi64>
  return %s : tensor<f32>
}
func.func @mse(%x: tensor<3x5xf32>, %t: tensor<3x5xf32>) -> (tensor<f32>, tensor<f32>) {
  %s, %w = nn.mse %x, %t : tensor<3x5xf32>, tensor<3x5xf32>
  return %s, %w : tensor<f32>, tensor<f32>
}
func.func @mse_weighted(%x: tensor<3x2x5xf32>, %t: tensor<3x2x5xf32>) -> (tensor<f32>, tensor<f32>) {
  %rw = nn.constant dense<[1.0, 0.0, 0.5]> : tensor<3xf32>
  %s, %w = nn.mse %x, %t row_weights %rw : tensor<3xf32> : tensor<3x2x5xf32>, tensor<3x2x5xf32>
  return %s, %w : tensor<f32>, tensor<f32>
}
