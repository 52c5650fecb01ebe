// Row ops in generated code against the interpreter: rows of one element, of one less and one more than a vector, of a prime number of elements, one
// row and many, and axes that are not the last.
// RUN: descent-run --compiled %s
// RUN: descent-run --compiled --target=cuda-emulated %s

func.func @softmax_one_element(%x: tensor<5x1xf32> {check.range = [-9.0, 9.0]}) -> tensor<5x1xf32> {
  %y = nn.softmax %x axis 1 : tensor<5x1xf32>
  return %y : tensor<5x1xf32>
}
func.func @log_softmax_one_element(%x: tensor<5x1xf32> {check.range = [-9.0, 9.0]}) -> tensor<5x1xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<5x1xf32>
  return %y : tensor<5x1xf32>
}
func.func @softmax_short(%x: tensor<3x15xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x15xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x15xf32>
  return %y : tensor<3x15xf32>
}
func.func @log_softmax_short(%x: tensor<3x15xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x15xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<3x15xf32>
  return %y : tensor<3x15xf32>
}
func.func @softmax_long(%x: tensor<7x131xf32> {check.range = [-9.0, 9.0]}) -> tensor<7x131xf32> {
  %y = nn.softmax %x axis 1 : tensor<7x131xf32>
  return %y : tensor<7x131xf32>
}
func.func @log_softmax_long(%x: tensor<7x131xf32> {check.range = [-9.0, 9.0]}) -> tensor<7x131xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<7x131xf32>
  return %y : tensor<7x131xf32>
}
func.func @softmax_one_row(%x: tensor<1x1009xf32> {check.range = [-9.0, 9.0]}) -> tensor<1x1009xf32> {
  %y = nn.softmax %x axis 1 : tensor<1x1009xf32>
  return %y : tensor<1x1009xf32>
}
func.func @log_softmax_one_row(%x: tensor<1x1009xf32> {check.range = [-9.0, 9.0]}) -> tensor<1x1009xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<1x1009xf32>
  return %y : tensor<1x1009xf32>
}
func.func @softmax_first_axis(%x: tensor<67x5xf32> {check.range = [-9.0, 9.0]}) -> tensor<67x5xf32> {
  %y = nn.softmax %x axis 0 : tensor<67x5xf32>
  return %y : tensor<67x5xf32>
}
func.func @log_softmax_first_axis(%x: tensor<67x5xf32> {check.range = [-9.0, 9.0]}) -> tensor<67x5xf32> {
  %y = nn.log_softmax %x axis 0 : tensor<67x5xf32>
  return %y : tensor<67x5xf32>
}
func.func @softmax_middle_axis(%x: tensor<3x17x5xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x17x5xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x17x5xf32>
  return %y : tensor<3x17x5xf32>
}
func.func @log_softmax_middle_axis(%x: tensor<3x17x5xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x17x5xf32> {
  %y = nn.log_softmax %x axis 1 : tensor<3x17x5xf32>
  return %y : tensor<3x17x5xf32>
}
func.func @layer_norm_odd(%x: tensor<3x5x67xf32>, %g: tensor<67xf32>, %b: tensor<67xf32>) -> tensor<3x5x67xf32> {
  %y = nn.layer_norm %x, %g, %b : tensor<3x5x67xf32>, tensor<67xf32>, tensor<67xf32>
  return %y : tensor<3x5x67xf32>
}
func.func @layer_norm_one_row(%x: tensor<1x129xf32>, %g: tensor<129xf32>, %b: tensor<129xf32>) -> tensor<1x129xf32> {
  %y = nn.layer_norm %x, %g, %b : tensor<1x129xf32>, tensor<129xf32>, tensor<129xf32>
  return %y : tensor<1x129xf32>
}
func.func @layer_norm_many_rows(%x: tensor<133x17xf32>, %g: tensor<17xf32>, %b: tensor<17xf32>) -> tensor<133x17xf32> {
  %y = nn.layer_norm %x, %g, %b : tensor<133x17xf32>, tensor<17xf32>, tensor<17xf32>
  return %y : tensor<133x17xf32>
}
func.func @dropout(%x: tensor<13x67xf32>, %rng: tensor<4xi32> {check.value = dense<[7, 0, 3, 1]> : tensor<4xi32>}) -> tensor<13x67xf32> {
  %y = nn.dropout %x rng %rng {rate = 0.3, id = 5} : tensor<13x67xf32>
  return %y : tensor<13x67xf32>
}
func.func @cross_entropy(%x: tensor<3x7x67xf32>, %t: tensor<3x7xi32> {check.range = [0.0, 67.0]}) -> (tensor<f32>, tensor<f32>) {
  %s, %w = nn.cross_entropy %x, %t : tensor<3x7x67xf32>, tensor<3x7xi32>
  return %s, %w : tensor<f32>, tensor<f32>
}
// Ignored rows (-1), smoothing, class weights, rows of weight 0 and between: all at once.
func.func @cross_entropy_everything(%x: tensor<19x5xf32>, %t: tensor<19xi64> {check.range = [-1.0, 5.0]}) -> (tensor<f32>, tensor<f32>) {
  %c = nn.constant dense<[0.2, 0.3, 0.7, 1.5, 0.0]> : tensor<5xf32>
  %w = nn.constant dense<[1.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.25, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.75, 1.0, 1.0, 1.0, 0.0, 1.0]> : tensor<19xf32>
  %s, %n = nn.cross_entropy %x, %t class_weights %c : tensor<5xf32> row_weights %w : tensor<19xf32>
    {ignore_index = -1, label_smoothing = 0.1} : tensor<19x5xf32>, tensor<19xi64>
  return %s, %n : tensor<f32>, tensor<f32>
}
func.func @mse(%x: tensor<5x67xf32>, %y: tensor<5x67xf32>) -> (tensor<f32>, tensor<f32>) {
  %w = nn.constant dense<[1.0, 0.0, 0.5, 1.0, 0.25]> : tensor<5xf32>
  %s, %n = nn.mse %x, %y row_weights %w : tensor<5xf32> : tensor<5x67xf32>, tensor<5x67xf32>
  return %s, %n : tensor<f32>, tensor<f32>
}
