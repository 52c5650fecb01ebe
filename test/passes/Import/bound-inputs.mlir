// The range that all uses of an integer input allow is recorded on it; inputs that index nothing stay as they are.
// RUN: descent-opt --bound-inputs %s | FileCheck %s

// CHECK-LABEL: nn.model @m
// Seen through a slice; the smaller of two tables decides.
// CHECK-SAME:  tensor<2x6xi32> {nn.name = "i", nn.range = array<i64: -5, 5>, nn.role = "data"}
// CHECK-SAME:  tensor<2x6xi64> {nn.ignore_index = -100 : i64, nn.name = "t", nn.range = array<i64: 0, 4>, nn.role = "target"}
// CHECK-SAME:  tensor<2x6x4xf32> {nn.name = "x", nn.role = "data"}
nn.model @m(%i: tensor<2x6xi32> {nn.role = "data"}, %t: tensor<2x6xi64> {nn.role = "target"}, %x: tensor<2x6x4xf32> {nn.role = "data"}) {
  %big = nn.parameter "big" zeros : tensor<9x4xf32>
  %small = nn.parameter "small" zeros : tensor<5x4xf32>
  %0 = nn.embedding %i, %big : tensor<2x6xi32>, tensor<9x4xf32>
  %1 = nn.slice %i from [0, 0] to [-1, 1] by [1, 1] : tensor<2x6xi32>
  %2 = nn.embedding %1, %small : tensor<2x1xi32>, tensor<5x4xf32>
  // Positions are known now and need no check later.
  %3 = nn.iota [6] axis 0 i32
  %4 = nn.embedding %3, %big : tensor<6xi32>, tensor<9x4xf32>
  %5 = nn.add %0, %2 : tensor<2x6x4xf32>, tensor<2x1x4xf32>
  %6 = nn.add %5, %4 : tensor<2x6x4xf32>, tensor<6x4xf32>
  %7 = nn.add %6, %x : tensor<2x6x4xf32>, tensor<2x6x4xf32>
  %s, %n = nn.cross_entropy %7, %t : tensor<2x6x4xf32>, tensor<2x6xi64>
  nn.loss %s, %n, %7 : tensor<2x6x4xf32>
}
