// Integers and booleans: truncating division in which nothing traps, comparisons, casts that saturate, indices, random numbers.
// RUN: descent-run %s | FileCheck %s
// RUN: descent-run --linalg-forward --tolerance=1e-12 %s

func.func @divide(%a: tensor<4xi32> {check.value = dense<[7, -7, 7, -2147483648]> : tensor<4xi32>},
                  %b: tensor<4xi32> {check.value = dense<[2, 2, 0, -1]> : tensor<4xi32>}) -> tensor<4xi32> {
  %y = nn.div %a, %b : tensor<4xi32>, tensor<4xi32>
  return %y : tensor<4xi32>
}
// CHECK: @divide result 0 = [3, -3, 0, -2147483648]

func.func @cast(%x: tensor<6xf32> {check.value = dense<[1.9, -1.9, 3.0e9, -3.0e9, 0x7FC00000, 0.0]> : tensor<6xf32>}) -> (tensor<6xi32>, tensor<6xi1>) {
  %y = nn.cast %x to i32 : tensor<6xf32>
  %b = nn.cast %x to i1 : tensor<6xf32>
  return %y, %b : tensor<6xi32>, tensor<6xi1>
}
// CHECK: @cast result 0 = [1, -1, 2147483647, -2147483648, 0, 0]
// CHECK: @cast result 1 = [1, 1, 1, 1, 1, 0]

func.func @booleans(%x: tensor<2xi1> {check.value = dense<[true, false]> : tensor<2xi1>}) -> (tensor<2xi1>, tensor<2xi1>, tensor<2xf32>) {
  %true = nn.constant dense<true> : tensor<i1>
  %less = nn.compare lt %x, %true : tensor<2xi1>, tensor<i1>
  %max = nn.where %x, %x, %less : tensor<2xi1>, tensor<2xi1>, tensor<2xi1>
  %f = nn.cast %x to f32 : tensor<2xi1>
  return %less, %max, %f : tensor<2xi1>, tensor<2xi1>, tensor<2xf32>
}
// CHECK: @booleans result 0 = [0, 1]
// CHECK: @booleans result 1 = [1, 1]
// CHECK: @booleans result 2 = [1, 0]

func.func @iota() -> (tensor<2x3xi32>, tensor<2x3xf32>) {
  %a = nn.iota [2, 3] axis 1 i32
  %b = nn.iota [2, 3] axis 0 f32
  return %a, %b : tensor<2x3xi32>, tensor<2x3xf32>
}
// CHECK: @iota result 0 = [0, 1, 2, 0, 1, 2]
// CHECK: @iota result 1 = [0, 0, 0, 1, 1, 1]

// Philox 4x32-10's published vector for counter and key 0 has word 0 = 0x6627e8d5: its top 24 bits are 6694888, over 2^24 0.3990459442.
func.func @random() -> tensor<2x2xf32> {
  %rng = nn.constant dense<0> : tensor<4xi32>
  %y = nn.random %rng [2, 2] id 0
  return %y : tensor<2x2xf32>
}
// CHECK: @random result 0 = [0.39904{{[0-9]+}},
