// The forms of a rows kernel on a device, against the interpreter: a chunk of 16 bytes a thread with and without a tail, teams of every size below a warp,
// several rows a warp with some missing, one warp and several warps a row, values kept in registers over stages, long rows in loops, and long rows of odd
// length, which start at another place relative to 16 bytes each.
// RUN: descent-run --compiled --target=cuda-emulated %s

func.func @flat_1(%x: tensor<1xf32>, %y: tensor<1xf32>) -> tensor<1xf32> {
  %0 = nn.silu %x : tensor<1xf32>
  %1 = nn.mul %0, %y : tensor<1xf32>, tensor<1xf32>
  return %1 : tensor<1xf32>
}
func.func @flat_2(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.tanh %x : tensor<2xf32>
  %1 = nn.mul %0, %y : tensor<2xf32>, tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func @flat_31(%x: tensor<31xf32>, %y: tensor<31xf32>) -> tensor<31xf32> {
  %0 = nn.sigmoid %x : tensor<31xf32>
  %1 = nn.mul %0, %y : tensor<31xf32>, tensor<31xf32>
  return %1 : tensor<31xf32>
}
func.func @flat_33(%x: tensor<33xf32>, %y: tensor<33xf32>) -> tensor<33xf32> {
  %0 = nn.exp %x : tensor<33xf32>
  %1 = nn.mul %0, %y : tensor<33xf32>, tensor<33xf32>
  return %1 : tensor<33xf32>
}
func.func @flat_127(%x: tensor<127xf32>, %y: tensor<127xf32>) -> tensor<127xf32> {
  %0 = nn.gelu %x tanh : tensor<127xf32>
  %1 = nn.mul %0, %y : tensor<127xf32>, tensor<127xf32>
  return %1 : tensor<127xf32>
}
func.func @flat_128(%x: tensor<128xf32>, %y: tensor<128xf32>) -> tensor<128xf32> {
  %0 = nn.relu %x : tensor<128xf32>
  %1 = nn.mul %0, %y : tensor<128xf32>, tensor<128xf32>
  return %1 : tensor<128xf32>
}
func.func @flat_129(%x: tensor<129xf32>, %y: tensor<129xf32>) -> tensor<129xf32> {
  %0 = nn.gelu %x erf : tensor<129xf32>
  %1 = nn.mul %0, %y : tensor<129xf32>, tensor<129xf32>
  return %1 : tensor<129xf32>
}
func.func @flat_1000(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = nn.silu %x : tensor<1000xf32>
  %1 = nn.mul %0, %y : tensor<1000xf32>, tensor<1000xf32>
  return %1 : tensor<1000xf32>
}
func.func @flat_1024(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = nn.exp %x : tensor<1024xf32>
  %1 = nn.mul %0, %y : tensor<1024xf32>, tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
func.func @softmax_5_1(%x: tensor<5x1xf32> {check.range = [-9.0, 9.0]}) -> tensor<5x1xf32> {
  %y = nn.softmax %x axis 1 : tensor<5x1xf32>
  return %y : tensor<5x1xf32>
}
func.func @softmax_7_2(%x: tensor<7x2xf32> {check.range = [-9.0, 9.0]}) -> tensor<7x2xf32> {
  %y = nn.softmax %x axis 1 : tensor<7x2xf32>
  return %y : tensor<7x2xf32>
}
func.func @softmax_3_6(%x: tensor<3x6xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x6xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x6xf32>
  return %y : tensor<3x6xf32>
}
func.func @softmax_37_10(%x: tensor<37x10xf32> {check.range = [-9.0, 9.0]}) -> tensor<37x10xf32> {
  %y = nn.softmax %x axis 1 : tensor<37x10xf32>
  return %y : tensor<37x10xf32>
}
func.func @softmax_9_31(%x: tensor<9x31xf32> {check.range = [-9.0, 9.0]}) -> tensor<9x31xf32> {
  %y = nn.softmax %x axis 1 : tensor<9x31xf32>
  return %y : tensor<9x31xf32>
}
func.func @softmax_5_33(%x: tensor<5x33xf32> {check.range = [-9.0, 9.0]}) -> tensor<5x33xf32> {
  %y = nn.softmax %x axis 1 : tensor<5x33xf32>
  return %y : tensor<5x33xf32>
}
func.func @softmax_3_64(%x: tensor<3x64xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x64xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
func.func @softmax_3_96(%x: tensor<3x96xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x96xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x96xf32>
  return %y : tensor<3x96xf32>
}
func.func @softmax_2_127(%x: tensor<2x127xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x127xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x127xf32>
  return %y : tensor<2x127xf32>
}
func.func @softmax_2_128(%x: tensor<2x128xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x128xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x128xf32>
  return %y : tensor<2x128xf32>
}
func.func @softmax_2_129(%x: tensor<2x129xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x129xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x129xf32>
  return %y : tensor<2x129xf32>
}
func.func @softmax_3_257(%x: tensor<3x257xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x257xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x257xf32>
  return %y : tensor<3x257xf32>
}
func.func @softmax_2_1000(%x: tensor<2x1000xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x1000xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x1000xf32>
  return %y : tensor<2x1000xf32>
}
func.func @softmax_1_1024(%x: tensor<1x1024xf32> {check.range = [-9.0, 9.0]}) -> tensor<1x1024xf32> {
  %y = nn.softmax %x axis 1 : tensor<1x1024xf32>
  return %y : tensor<1x1024xf32>
}
func.func @softmax_2_1536(%x: tensor<2x1536xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x1536xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x1536xf32>
  return %y : tensor<2x1536xf32>
}
func.func @softmax_1_8192(%x: tensor<1x8192xf32> {check.range = [-9.0, 9.0]}) -> tensor<1x8192xf32> {
  %y = nn.softmax %x axis 1 : tensor<1x8192xf32>
  return %y : tensor<1x8192xf32>
}
func.func @softmax_2_20004(%x: tensor<2x20004xf32> {check.range = [-9.0, 9.0]}) -> tensor<2x20004xf32> {
  %y = nn.softmax %x axis 1 : tensor<2x20004xf32>
  return %y : tensor<2x20004xf32>
}
func.func @softmax_3_10003(%x: tensor<3x10003xf32> {check.range = [-9.0, 9.0]}) -> tensor<3x10003xf32> {
  %y = nn.softmax %x axis 1 : tensor<3x10003xf32>
  return %y : tensor<3x10003xf32>
}
