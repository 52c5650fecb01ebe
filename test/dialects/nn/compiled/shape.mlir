// Shape ops in generated code against the interpreter: transposes around the 8 x 8 block that registers transpose, slices with strides, pads between
// elements, concats of unequal parts, literals of several values and of every type.
// RUN: descent-run --compiled %s
// RUN: descent-run --compiled --target=cuda-emulated %s

func.func @transpose(%x: tensor<13x19xf32>) -> tensor<19x13xf32> {
  %y = nn.transpose %x [1, 0] : tensor<13x19xf32>
  return %y : tensor<19x13xf32>
}
func.func @transpose_heads(%x: tensor<3x7x2x5xf32>) -> tensor<3x2x7x5xf32> {
  %y = nn.transpose %x [0, 2, 1, 3] : tensor<3x7x2x5xf32>
  return %y : tensor<3x2x7x5xf32>
}
func.func @transpose_all(%x: tensor<3x5x11xf32>) -> tensor<11x5x3xf32> {
  %y = nn.transpose %x [2, 1, 0] : tensor<3x5x11xf32>
  return %y : tensor<11x5x3xf32>
}
func.func @slice(%x: tensor<17x35xf32>) -> tensor<5x17xf32> {
  %y = nn.slice %x from [1, 2] to [16, 35] by [3, 2] : tensor<17x35xf32>
  return %y : tensor<5x17xf32>
}
func.func @pad(%x: tensor<5x7xf32>) -> tensor<14x18xf32> {
  %y = nn.pad %x low [1, 2] high [0, 3] interior [2, 1] : tensor<5x7xf32>
  return %y : tensor<14x18xf32>
}
func.func @concat(%a: tensor<5x3xf32>, %b: tensor<5x17xf32>, %c: tensor<5x1xf32>) -> tensor<5x21xf32> {
  %y = nn.concat %a, %b, %c axis 1 : tensor<5x3xf32>, tensor<5x17xf32>, tensor<5x1xf32>
  return %y : tensor<5x21xf32>
}
func.func @split(%x: tensor<5x33xf32>) -> (tensor<5x11xf32>, tensor<5x11xf32>) {
  %a, %b, %c = nn.split %x axis 1 sections 3 : tensor<5x33xf32>
  return %c, %a : tensor<5x11xf32>, tensor<5x11xf32>
}
func.func @broadcast(%x: tensor<5x1x7xf32>) -> tensor<3x5x9x7xf32> {
  %y = nn.broadcast %x [3, 5, 9, 7] : tensor<5x1x7xf32>
  return %y : tensor<3x5x9x7xf32>
}
// A literal of several values lies in the object; one inside a copy is read through its strides.
func.func @literals(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<3xi32>, tensor<3xi64>, tensor<3xi1>, tensor<3xf16>, tensor<3xbf16>) {
  %c = nn.constant dense<[[1.5, -2.0, 0.25], [4.0, 5.0, -6.5]]> : tensor<2x3xf32>
  %i = nn.constant dense<[3, -1, 2147483647]> : tensor<3xi32>
  %l = nn.constant dense<[3, -1, 9007199254740991]> : tensor<3xi64>
  %b = nn.constant dense<[true, false, true]> : tensor<3xi1>
  %h = nn.constant dense<[0.5, -3.0, 65504.0]> : tensor<3xf16>
  %n = nn.constant dense<[0.5, -3.0, 1.0e30]> : tensor<3xbf16>
  %t = nn.transpose %c [1, 0] : tensor<2x3xf32>
  %y = nn.mul %x, %c : tensor<2x3xf32>, tensor<2x3xf32>
  return %y, %t, %i, %l, %b, %h, %n : tensor<2x3xf32>, tensor<3x2xf32>, tensor<3xi32>, tensor<3xi64>, tensor<3xi1>, tensor<3xf16>, tensor<3xbf16>
}
