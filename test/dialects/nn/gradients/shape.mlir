// Shape ops move elements; their gradients move them back: a slice is undone by a pad, a concat by slices, a split by a concat.
// RUN: descent-run --finite-difference %s
// RUN: descent-run --linalg %s
// RUN: descent-run --compiled %s

func.func @reshape(%x: tensor<2x3x5xf32>) -> tensor<5x6xf32> {
  %y = nn.reshape %x [5, 6] : tensor<2x3x5xf32>
  return %y : tensor<5x6xf32>
}
func.func @reshape_to_scalar(%x: tensor<1x1xf32>) -> tensor<f32> {
  %y = nn.reshape %x [] : tensor<1x1xf32>
  return %y : tensor<f32>
}
func.func @transpose(%x: tensor<2x3x5xf32>) -> tensor<5x2x3xf32> {
  %y = nn.transpose %x [2, 0, 1] : tensor<2x3x5xf32>
  return %y : tensor<5x2x3xf32>
}
func.func @broadcast(%x: tensor<3x1xf32>) -> tensor<2x3x5xf32> {
  %y = nn.broadcast %x [2, 3, 5] : tensor<3x1xf32>
  return %y : tensor<2x3x5xf32>
}
// The last of the five columns is behind the last stride: it gets zero.
func.func @slice(%x: tensor<4x5xf32>) -> tensor<2x2xf32> {
  %y = nn.slice %x from [1, 0] to [3, 4] by [1, 2] : tensor<4x5xf32>
  return %y : tensor<2x2xf32>
}
func.func @slice_to_end(%x: tensor<4x5xf32>) -> tensor<4x3xf32> {
  %y = nn.slice %x from [0, 0] to [-1, -1] by [1, 2] : tensor<4x5xf32>
  return %y : tensor<4x3xf32>
}
func.func @pad(%x: tensor<2x3xf32>) -> tensor<4x8xf32> {
  %y = nn.pad %x low [1, 0] high [1, 3] interior [0, 1] : tensor<2x3xf32>
  return %y : tensor<4x8xf32>
}
func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x1xf32>, %c: tensor<2x2xf32>) -> tensor<2x6xf32> {
  %y = nn.concat %a, %b, %c axis 1 : tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x2xf32>
  return %y : tensor<2x6xf32>
}
// One of the parts is not used: its share of the gradient is zero.
func.func @split(%x: tensor<2x6xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %a, %b, %c = nn.split %x axis 1 sections 3 : tensor<2x6xf32>
  return %a, %c : tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @split_leading(%x: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %a, %b = nn.split %x axis 0 sections 2 : tensor<4x3xf32>
  %y = nn.mul %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
