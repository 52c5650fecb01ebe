// Rows kernels on a device whose elements are narrower than f32: chunks of eight where all are, of four beside f32, single elements where rows are odd in
// length; floats of eight bits, booleans, integers of 64 bits, positions and random numbers.
// RUN: split-file %s %t
// RUN: descent-run --compiled --target=cuda-emulated --tolerance=1.6e-2 %t/narrow.mlir
// RUN: descent-run --compiled --target=cuda-emulated --rounded %t/exact.mlir

//--- narrow.mlir
func.func @chunks_of_eight(%x: tensor<131x8xbf16>) -> tensor<131x8xbf16> {
  %0 = nn.gelu %x tanh : tensor<131x8xbf16>
  return %0 : tensor<131x8xbf16>
}
func.func @chunks_with_a_tail(%x: tensor<1003xf16>, %y: tensor<1003xf16>) -> tensor<1003xf16> {
  %0 = nn.sigmoid %x : tensor<1003xf16>
  %1 = nn.mul %0, %y : tensor<1003xf16>, tensor<1003xf16>
  return %1 : tensor<1003xf16>
}
func.func @chunks_of_four(%x: tensor<33x20xbf16>) -> tensor<33x20xf32> {
  %0 = nn.cast %x to f32 : tensor<33x20xbf16>
  %1 = nn.silu %0 : tensor<33x20xf32>
  return %1 : tensor<33x20xf32>
}
func.func @odd_rows(%x: tensor<7x33xbf16>) -> tensor<7x33xbf16> {
  %0 = nn.softmax %x axis 1 : tensor<7x33xbf16>
  return %0 : tensor<7x33xbf16>
}
func.func @rows_of_chunks(%x: tensor<3x768xbf16>) -> tensor<3x768xbf16> {
  %0 = nn.softmax %x axis 1 : tensor<3x768xbf16>
  return %0 : tensor<3x768xbf16>
}
func.func @long_odd_rows(%x: tensor<3x20003xbf16>) -> tensor<3x20003xbf16> {
  %0 = nn.log_softmax %x axis 1 : tensor<3x20003xbf16>
  return %0 : tensor<3x20003xbf16>
}
func.func @losses(%x: tensor<9x65xbf16>, %t: tensor<9xi32> {check.range = [0.0, 65.0]}) -> tensor<f32> {
  %0 = nn.cast %x to f32 : tensor<9x65xbf16>
  %sum, %weight = nn.cross_entropy %0, %t : tensor<9x65xf32>, tensor<9xi32>
  %y = nn.div %sum, %weight : tensor<f32>, tensor<f32>
  return %y : tensor<f32>
}

//--- exact.mlir
// Every power of two from the smallest to the largest subnormal number on, and what saturates.
func.func @eight_bits(%i: tensor<1027xi32> {check.range = [-1000.0, 1000.0]}) -> (tensor<1027xf8E4M3FN>, tensor<1027xf8E5M2>) {
  %scale = nn.constant dense<0.75> : tensor<f32>
  %0 = nn.cast %i to f32 : tensor<1027xi32>
  %1 = nn.mul %0, %scale : tensor<1027xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E4M3FN : tensor<1027xf32>
  %3 = nn.cast %1 to f8E5M2 : tensor<1027xf32>
  return %2, %3 : tensor<1027xf8E4M3FN>, tensor<1027xf8E5M2>
}
func.func @small_eight_bits(%i: tensor<3x36xi32> {check.range = [-100.0, 100.0]}) -> (tensor<3x36xf32>, tensor<3x36xf32>) {
  %scale = nn.constant dense<3.0e-4> : tensor<f32>
  %0 = nn.cast %i to f32 : tensor<3x36xi32>
  %1 = nn.mul %0, %scale : tensor<3x36xf32>, tensor<f32>
  %2 = nn.cast %1 to f8E4M3FN : tensor<3x36xf32>
  %3 = nn.cast %1 to f8E5M2 : tensor<3x36xf32>
  %4 = nn.cast %2 to f32 : tensor<3x36xf8E4M3FN>
  %5 = nn.cast %3 to f32 : tensor<3x36xf8E5M2>
  return %4, %5 : tensor<3x36xf32>, tensor<3x36xf32>
}
func.func @integers(%i: tensor<5x18xi32> {check.range = [-70000.0, 70000.0]}, %j: tensor<18xi32> {check.range = [-70000.0, 70000.0]}) -> (tensor<5x18xi64>, tensor<5x18xi1>, tensor<5x18xi32>) {
  %0 = nn.cast %i to i64 : tensor<5x18xi32>
  %1 = nn.mul %0, %0 : tensor<5x18xi64>, tensor<5x18xi64>
  %2 = nn.compare lt %i, %j : tensor<5x18xi32>, tensor<18xi32>
  %3 = nn.where %2, %i, %j : tensor<5x18xi1>, tensor<5x18xi32>, tensor<18xi32>
  return %1, %2, %3 : tensor<5x18xi64>, tensor<5x18xi1>, tensor<5x18xi32>
}
func.func @booleans(%c: tensor<37xi1>, %i: tensor<37xi32>, %j: tensor<37xi32>) -> (tensor<37xi1>, tensor<37xi32>) {
  %0 = nn.where %c, %i, %j : tensor<37xi1>, tensor<37xi32>, tensor<37xi32>
  %1 = nn.compare lt %0, %j : tensor<37xi32>, tensor<37xi32>
  return %1, %0 : tensor<37xi1>, tensor<37xi32>
}
func.func @positions(%i: tensor<3x5x12xi32>) -> (tensor<3x5x12xi32>, tensor<3x5x12xi64>) {
  %0 = nn.iota [3, 5, 12] axis 1 i32
  %1 = nn.iota [3, 5, 12] axis 2 i64
  %2 = nn.add %i, %0 : tensor<3x5x12xi32>, tensor<3x5x12xi32>
  return %2, %1 : tensor<3x5x12xi32>, tensor<3x5x12xi64>
}
func.func @random(%rng: tensor<4xi32> {check.value = dense<[7, 0, 3, 1]> : tensor<4xi32>}) -> tensor<5x37xf32> {
  %0 = nn.random %rng [5, 37] id 7
  return %0 : tensor<5x37xf32>
}
func.func @scalars(%i: tensor<i32>, %j: tensor<i64>) -> (tensor<i64>, tensor<i1>) {
  %0 = nn.cast %i to i64 : tensor<i32>
  %1 = nn.add %0, %j : tensor<i64>, tensor<i64>
  %2 = nn.compare gt %0, %j : tensor<i64>, tensor<i64>
  return %1, %2 : tensor<i64>, tensor<i1>
}
