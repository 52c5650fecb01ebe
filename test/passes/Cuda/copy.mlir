// Moves of elements in device code: transposes by tiles, whole and ragged, batched and of every width of elements; runs that 16 bytes divide, that they divide but
// for a rest, and that they do not.
// RUN: descent-run --compiled --tolerance=1e-30 --target=cuda-emulated %s

func.func @transpose_f32_3x5(%x: tensor<3x5xf32>) -> tensor<5x3xf32> {
  %y = nn.transpose %x [1, 0] : tensor<3x5xf32>
  return %y : tensor<5x3xf32>
}
func.func @transpose_f32_64x32(%x: tensor<64x32xf32>) -> tensor<32x64xf32> {
  %y = nn.transpose %x [1, 0] : tensor<64x32xf32>
  return %y : tensor<32x64xf32>
}
func.func @transpose_f32_33x70(%x: tensor<33x70xf32>) -> tensor<70x33xf32> {
  %y = nn.transpose %x [1, 0] : tensor<33x70xf32>
  return %y : tensor<70x33xf32>
}
func.func @transpose_f32_128x40(%x: tensor<128x40xf32>) -> tensor<40x128xf32> {
  %y = nn.transpose %x [1, 0] : tensor<128x40xf32>
  return %y : tensor<40x128xf32>
}
func.func @transpose_bf16_3x5(%x: tensor<3x5xbf16>) -> tensor<5x3xbf16> {
  %y = nn.transpose %x [1, 0] : tensor<3x5xbf16>
  return %y : tensor<5x3xbf16>
}
func.func @transpose_bf16_64x32(%x: tensor<64x32xbf16>) -> tensor<32x64xbf16> {
  %y = nn.transpose %x [1, 0] : tensor<64x32xbf16>
  return %y : tensor<32x64xbf16>
}
func.func @transpose_bf16_33x70(%x: tensor<33x70xbf16>) -> tensor<70x33xbf16> {
  %y = nn.transpose %x [1, 0] : tensor<33x70xbf16>
  return %y : tensor<70x33xbf16>
}
func.func @transpose_bf16_128x40(%x: tensor<128x40xbf16>) -> tensor<40x128xbf16> {
  %y = nn.transpose %x [1, 0] : tensor<128x40xbf16>
  return %y : tensor<40x128xbf16>
}
func.func @transpose_i32_3x5(%x: tensor<3x5xi32>) -> tensor<5x3xi32> {
  %y = nn.transpose %x [1, 0] : tensor<3x5xi32>
  return %y : tensor<5x3xi32>
}
func.func @transpose_i32_64x32(%x: tensor<64x32xi32>) -> tensor<32x64xi32> {
  %y = nn.transpose %x [1, 0] : tensor<64x32xi32>
  return %y : tensor<32x64xi32>
}
func.func @transpose_i32_33x70(%x: tensor<33x70xi32>) -> tensor<70x33xi32> {
  %y = nn.transpose %x [1, 0] : tensor<33x70xi32>
  return %y : tensor<70x33xi32>
}
func.func @transpose_i32_128x40(%x: tensor<128x40xi32>) -> tensor<40x128xi32> {
  %y = nn.transpose %x [1, 0] : tensor<128x40xi32>
  return %y : tensor<40x128xi32>
}
func.func @transpose_i64_3x5(%x: tensor<3x5xi64>) -> tensor<5x3xi64> {
  %y = nn.transpose %x [1, 0] : tensor<3x5xi64>
  return %y : tensor<5x3xi64>
}
func.func @transpose_i64_64x32(%x: tensor<64x32xi64>) -> tensor<32x64xi64> {
  %y = nn.transpose %x [1, 0] : tensor<64x32xi64>
  return %y : tensor<32x64xi64>
}
func.func @transpose_i64_33x70(%x: tensor<33x70xi64>) -> tensor<70x33xi64> {
  %y = nn.transpose %x [1, 0] : tensor<33x70xi64>
  return %y : tensor<70x33xi64>
}
func.func @transpose_i64_128x40(%x: tensor<128x40xi64>) -> tensor<40x128xi64> {
  %y = nn.transpose %x [1, 0] : tensor<128x40xi64>
  return %y : tensor<40x128xi64>
}
func.func @transpose_i1_3x5(%x: tensor<3x5xi1>) -> tensor<5x3xi1> {
  %y = nn.transpose %x [1, 0] : tensor<3x5xi1>
  return %y : tensor<5x3xi1>
}
func.func @transpose_i1_64x32(%x: tensor<64x32xi1>) -> tensor<32x64xi1> {
  %y = nn.transpose %x [1, 0] : tensor<64x32xi1>
  return %y : tensor<32x64xi1>
}
func.func @transpose_i1_33x70(%x: tensor<33x70xi1>) -> tensor<70x33xi1> {
  %y = nn.transpose %x [1, 0] : tensor<33x70xi1>
  return %y : tensor<70x33xi1>
}
func.func @transpose_i1_130x48(%x: tensor<130x48xi1>) -> tensor<48x130xi1> {
  %y = nn.transpose %x [1, 0] : tensor<130x48xi1>
  return %y : tensor<48x130xi1>
}
func.func @transpose_batched(%x: tensor<3x40x24xf32>) -> tensor<3x24x40xf32> {
  %y = nn.transpose %x [0, 2, 1] : tensor<3x40x24xf32>
  return %y : tensor<3x24x40xf32>
}
func.func @heads(%x: tensor<2x17x3x12xf32>) -> tensor<2x3x17x12xf32> {
  %y = nn.transpose %x [0, 2, 1, 3] : tensor<2x17x3x12xf32>
  return %y : tensor<2x3x17x12xf32>
}
func.func @transpose_narrow_side(%x: tensor<100x3xf32>) -> tensor<3x100xf32> {
  %y = nn.transpose %x [1, 0] : tensor<100x3xf32>
  return %y : tensor<3x100xf32>
}
func.func @slice(%x: tensor<17x40xf32>) -> tensor<5x17xf32> {
  %y = nn.slice %x from [1, 2] to [16, 35] by [3, 2] : tensor<17x40xf32>
  return %y : tensor<5x17xf32>
}
func.func @slice_rest(%x: tensor<5x80xbf16>) -> tensor<5x67xbf16> {
  %y = nn.slice %x from [0, 8] to [5, 75] by [1, 1] : tensor<5x80xbf16>
  return %y : tensor<5x67xbf16>
}
func.func @pad(%x: tensor<5x7xf32>) -> tensor<14x18xf32> {
  %y = nn.pad %x low [1, 2] high [0, 3] interior [2, 1] : tensor<5x7xf32>
  return %y : tensor<14x18xf32>
}
func.func @pad_between(%x: tensor<4x5xbf16>) -> tensor<16x29xbf16> {
  %y = nn.pad %x low [0, 0] high [0, 0] interior [4, 6] : tensor<4x5xbf16>
  return %y : tensor<16x29xbf16>
}
func.func @concat(%a: tensor<5x3xf32>, %b: tensor<5x17xf32>, %c: tensor<5x1xf32>) -> tensor<5x21xf32> {
  %y = nn.concat %a, %b, %c axis 1 : tensor<5x3xf32>, tensor<5x17xf32>, tensor<5x1xf32>
  return %y : tensor<5x21xf32>
}
func.func @split(%x: tensor<5x96xbf16>) -> (tensor<5x32xbf16>, tensor<5x32xbf16>) {
  %a, %b, %c = nn.split %x axis 1 sections 3 : tensor<5x96xbf16>
  return %c, %a : tensor<5x32xbf16>, tensor<5x32xbf16>
}
func.func @broadcast(%x: tensor<5x1x8xf32>) -> tensor<3x5x9x8xf32> {
  %y = nn.broadcast %x [3, 5, 9, 8] : tensor<5x1x8xf32>
  return %y : tensor<3x5x9x8xf32>
}
func.func @broadcast_elements(%x: tensor<5x1xbf16>) -> tensor<5x24xbf16> {
  %y = nn.broadcast %x [5, 24] : tensor<5x1xbf16>
  return %y : tensor<5x24xbf16>
}
func.func @literals(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3xi64>, tensor<3xi1>, tensor<3xbf16>, tensor<33xf32>) {
  %c = nn.constant dense<[[1.5, -2.0, 0.25], [4.0, 5.0, -6.5]]> : tensor<2x3xf32>
  %l = nn.constant dense<[3, -1, 9007199254740991]> : tensor<3xi64>
  %b = nn.constant dense<[true, false, true]> : tensor<3xi1>
  %n = nn.constant dense<[0.5, -3.0, 1.0e30]> : tensor<3xbf16>
  %f = nn.constant dense<3.5> : tensor<33xf32>
  %t = nn.transpose %c [1, 0] : tensor<2x3xf32>
  return %t, %l, %b, %n, %f : tensor<3x2xf32>, tensor<3xi64>, tensor<3xi1>, tensor<3xbf16>, tensor<33xf32>
}
