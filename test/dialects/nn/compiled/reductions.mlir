// Reductions in generated code against the interpreter: rows, columns, middle axes, everything; lengths that no vector and no block divides, and one of
// a single element. Sums of more than 16384 elements are cut into blocks.
// RUN: descent-run --compiled --tolerance=2e-5 %s
// RUN: descent-run --compiled --tolerance=2e-5 --target=cuda-emulated %s

func.func @sum_last(%x: tensor<7x131xf32>) -> tensor<7xf32> {
  %y = nn.reduce_sum %x [1] : tensor<7x131xf32>
  return %y : tensor<7xf32>
}
func.func @mean_last(%x: tensor<7x131xf32>) -> tensor<7xf32> {
  %y = nn.reduce_mean %x [1] : tensor<7x131xf32>
  return %y : tensor<7xf32>
}
func.func @max_last(%x: tensor<7x131xf32>) -> tensor<7xf32> {
  %y = nn.reduce_max %x [1] : tensor<7x131xf32>
  return %y : tensor<7xf32>
}
func.func @sum_last_of_one(%x: tensor<7x1xf32>) -> tensor<7xf32> {
  %y = nn.reduce_sum %x [1] : tensor<7x1xf32>
  return %y : tensor<7xf32>
}
func.func @mean_last_of_one(%x: tensor<7x1xf32>) -> tensor<7xf32> {
  %y = nn.reduce_mean %x [1] : tensor<7x1xf32>
  return %y : tensor<7xf32>
}
func.func @max_last_of_one(%x: tensor<7x1xf32>) -> tensor<7xf32> {
  %y = nn.reduce_max %x [1] : tensor<7x1xf32>
  return %y : tensor<7xf32>
}
func.func @sum_first(%x: tensor<131x7xf32>) -> tensor<7xf32> {
  %y = nn.reduce_sum %x [0] : tensor<131x7xf32>
  return %y : tensor<7xf32>
}
func.func @mean_first(%x: tensor<131x7xf32>) -> tensor<7xf32> {
  %y = nn.reduce_mean %x [0] : tensor<131x7xf32>
  return %y : tensor<7xf32>
}
func.func @max_first(%x: tensor<131x7xf32>) -> tensor<7xf32> {
  %y = nn.reduce_max %x [0] : tensor<131x7xf32>
  return %y : tensor<7xf32>
}
func.func @sum_first_wide(%x: tensor<5x1031xf32>) -> tensor<1031xf32> {
  %y = nn.reduce_sum %x [0] : tensor<5x1031xf32>
  return %y : tensor<1031xf32>
}
func.func @mean_first_wide(%x: tensor<5x1031xf32>) -> tensor<1031xf32> {
  %y = nn.reduce_mean %x [0] : tensor<5x1031xf32>
  return %y : tensor<1031xf32>
}
func.func @max_first_wide(%x: tensor<5x1031xf32>) -> tensor<1031xf32> {
  %y = nn.reduce_max %x [0] : tensor<5x1031xf32>
  return %y : tensor<1031xf32>
}
func.func @sum_middle(%x: tensor<3x17x5xf32>) -> tensor<3x5xf32> {
  %y = nn.reduce_sum %x [1] : tensor<3x17x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @mean_middle(%x: tensor<3x17x5xf32>) -> tensor<3x5xf32> {
  %y = nn.reduce_mean %x [1] : tensor<3x17x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @max_middle(%x: tensor<3x17x5xf32>) -> tensor<3x5xf32> {
  %y = nn.reduce_max %x [1] : tensor<3x17x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @sum_outer(%x: tensor<3x17x5xf32>) -> tensor<17xf32> {
  %y = nn.reduce_sum %x [0, 2] : tensor<3x17x5xf32>
  return %y : tensor<17xf32>
}
func.func @mean_outer(%x: tensor<3x17x5xf32>) -> tensor<17xf32> {
  %y = nn.reduce_mean %x [0, 2] : tensor<3x17x5xf32>
  return %y : tensor<17xf32>
}
func.func @sum_all(%x: tensor<3x17x5xf32>) -> tensor<f32> {
  %y = nn.reduce_sum %x [0, 1, 2] : tensor<3x17x5xf32>
  return %y : tensor<f32>
}
func.func @mean_all(%x: tensor<3x17x5xf32>) -> tensor<f32> {
  %y = nn.reduce_mean %x [0, 1, 2] : tensor<3x17x5xf32>
  return %y : tensor<f32>
}
func.func @max_all(%x: tensor<3x17x5xf32>) -> tensor<f32> {
  %y = nn.reduce_max %x [0, 1, 2] : tensor<3x17x5xf32>
  return %y : tensor<f32>
}
func.func @sum_long(%x: tensor<17x1031xf32>) -> tensor<f32> {
  %y = nn.reduce_sum %x [0, 1] : tensor<17x1031xf32>
  return %y : tensor<f32>
}
func.func @mean_long(%x: tensor<17x1031xf32>) -> tensor<f32> {
  %y = nn.reduce_mean %x [0, 1] : tensor<17x1031xf32>
  return %y : tensor<f32>
}
