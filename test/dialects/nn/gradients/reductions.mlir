// Reductions over the last, the first, a middle, several and all axes, kept or not. Decomposition leaves only first or last groups.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --linalg %s
// RUN: descent-run --compiled %s

func.func @sum_last(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %y = nn.reduce_sum %x [1] : tensor<3x5xf32>
  return %y : tensor<3xf32>
}
func.func @sum_first_kept(%x: tensor<3x5xf32>) -> tensor<1x5xf32> {
  %y = nn.reduce_sum %x [0] keep : tensor<3x5xf32>
  return %y : tensor<1x5xf32>
}
func.func @sum_middle(%x: tensor<2x3x5xf32>) -> tensor<2x5xf32> {
  %y = nn.reduce_sum %x [1] : tensor<2x3x5xf32>
  return %y : tensor<2x5xf32>
}
func.func @sum_middle_kept(%x: tensor<2x3x4x5xf32>) -> tensor<2x1x4x1xf32> {
  %y = nn.reduce_sum %x [1, 3] keep : tensor<2x3x4x5xf32>
  return %y : tensor<2x1x4x1xf32>
}
func.func @sum_all(%x: tensor<2x3x5xf32>) -> tensor<f32> {
  %y = nn.reduce_sum %x [0, 1, 2] : tensor<2x3x5xf32>
  return %y : tensor<f32>
}
func.func @mean_outer(%x: tensor<2x3x5xf32>) -> tensor<3xf32> {
  %y = nn.reduce_mean %x [0, 2] : tensor<2x3x5xf32>
  return %y : tensor<3xf32>
}
func.func @mean_last_kept(%x: tensor<3x7xf32>) -> tensor<3x1xf32> {
  %y = nn.reduce_mean %x [1] keep : tensor<3x7xf32>
  return %y : tensor<3x1xf32>
}
func.func @max_last(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %y = nn.reduce_max %x [1] : tensor<3x5xf32>
  return %y : tensor<3xf32>
}
func.func @max_middle_and_last(%x: tensor<2x3x4x2xf32>) -> tensor<2x4xf32> {
  %y = nn.reduce_max %x [1, 3] : tensor<2x3x4x2xf32>
  return %y : tensor<2x4xf32>
}
func.func @sum_of_one_row(%x: tensor<1x5xf32>) -> tensor<5xf32> {
  %y = nn.reduce_sum %x [0] : tensor<1x5xf32>
  return %y : tensor<5xf32>
}
