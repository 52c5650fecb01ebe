// Binary ops and where, with every way NumPy broadcasts: missing axes, axes of size 1 (on either side), rank 0. The gradient of a broadcast operand
// is the sum over the axes it was broadcast along, and has exactly its shape.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --linalg %s
// RUN: descent-run --compiled %s

func.func @add(%a: tensor<2x3x5xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %y = nn.add %a, %b : tensor<2x3x5xf32>, tensor<5xf32>
  return %y : tensor<2x3x5xf32>
}
func.func @sub(%a: tensor<3x1xf32>, %b: tensor<2x1x5xf32>) -> tensor<2x3x5xf32> {
  %y = nn.sub %a, %b : tensor<3x1xf32>, tensor<2x1x5xf32>
  return %y : tensor<2x3x5xf32>
}
func.func @mul(%a: tensor<2x1x5xf32>, %b: tensor<1x3x1xf32>) -> tensor<2x3x5xf32> {
  %y = nn.mul %a, %b : tensor<2x1x5xf32>, tensor<1x3x1xf32>
  return %y : tensor<2x3x5xf32>
}
func.func @mul_scalar(%a: tensor<3x5xf32>, %b: tensor<f32>) -> tensor<3x5xf32> {
  %y = nn.mul %a, %b : tensor<3x5xf32>, tensor<f32>
  return %y : tensor<3x5xf32>
}
func.func @batch_of_one(%a: tensor<1x5xf32>, %b: tensor<1x1xf32>) -> tensor<1x5xf32> {
  %y = nn.mul %a, %b : tensor<1x5xf32>, tensor<1x1xf32>
  return %y : tensor<1x5xf32>
}
func.func @div(%a: tensor<3x5xf32>, %b: tensor<3x1xf32> {check.range = [0.5, 2.0]}) -> tensor<3x5xf32> {
  %y = nn.div %a, %b : tensor<3x5xf32>, tensor<3x1xf32>
  return %y : tensor<3x5xf32>
}
func.func @maximum(%a: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %y = nn.maximum %a, %b : tensor<3x5xf32>, tensor<5xf32>
  return %y : tensor<3x5xf32>
}
func.func @minimum(%a: tensor<5xf32>, %b: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = nn.minimum %a, %b : tensor<5xf32>, tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @pow(%a: tensor<3x5xf32> {check.range = [0.5, 2.0]}, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %y = nn.pow %a, %b : tensor<3x5xf32>, tensor<5xf32>
  return %y : tensor<3x5xf32>
}
func.func @where(%c: tensor<3x1xi1>, %a: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %y = nn.where %c, %a, %b : tensor<3x1xi1>, tensor<3x5xf32>, tensor<5xf32>
  return %y : tensor<3x5xf32>
}
