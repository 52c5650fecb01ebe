// RUN: descent-opt %s --split-reductions | FileCheck %s

// A long sum to one value becomes partial sums of blocks of 1024 and their total.
// CHECK-LABEL: func.func @long
// CHECK: %[[V:.*]] = nn.reshape %{{.*}} [64, 1024] : tensor<65536xf32>
// CHECK: %[[P:.*]] = nn.reduce_sum %[[V]] [1] : tensor<64x1024xf32>
// CHECK: nn.reduce_sum %[[P]] [0] : tensor<64xf32>
func.func @long(%x: tensor<65536xf32>) -> tensor<f32> {
  %0 = nn.reduce_sum %x [0] : tensor<65536xf32>
  return %0 : tensor<f32>
}

// Elementwise producers without another use take the blocked shape, so that they can share the kernel of the partial sums.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %[[V:.*]] = nn.reshape %{{.*}} [64, 1024] : tensor<65536xf32>
// CHECK-NEXT: %[[S:.*]] = nn.mul %[[V]], %[[V]] : tensor<64x1024xf32>
// CHECK-NEXT: nn.reduce_sum %[[S]] [1]
// CHECK-NEXT: nn.reduce_sum
// CHECK-NEXT: return
func.func @norm(%x: tensor<65536xf32>) -> tensor<f32> {
  %0 = nn.mul %x, %x : tensor<65536xf32>, tensor<65536xf32>
  %1 = nn.reduce_sum %0 [0] : tensor<65536xf32>
  return %1 : tensor<f32>
}

// The blocks are equally long, so the mean of their means is the mean. A length without a power of two takes the nearest divisor.
// CHECK-LABEL: func.func @mean
// CHECK: nn.reshape %{{.*}} [30, 1000] : tensor<30000xf32>
// CHECK: nn.reduce_mean %{{.*}} [1] : tensor<30x1000xf32>
// CHECK: nn.reduce_mean %{{.*}} [0] : tensor<30xf32>
// CHECK: nn.reshape %{{.*}} [1] : tensor<f32>
func.func @mean(%x: tensor<30000xf32>) -> tensor<1xf32> {
  %0 = nn.reduce_mean %x [0] keep : tensor<30000xf32>
  return %0 : tensor<1xf32>
}

// All axes: first the last one, which can share the kernel that computed its rows.
// CHECK-LABEL: func.func @all_axes
// CHECK: %[[ROWS:.*]] = nn.reduce_sum %{{.*}} [1] : tensor<96x64xf32>
// CHECK: nn.reduce_sum %[[ROWS]] [0] : tensor<96xf32>
func.func @all_axes(%x: tensor<96x64xf32>) -> tensor<f32> {
  %0 = nn.reduce_sum %x [0, 1] : tensor<96x64xf32>
  return %0 : tensor<f32>
}

// Rows too short to be worth a row become one axis.
// CHECK-LABEL: func.func @short_rows
// CHECK: %[[V:.*]] = nn.reshape %{{.*}} [5, 24] : tensor<5x12x2xf32>
// CHECK: nn.reduce_max %[[V]] [1] : tensor<5x24xf32>
func.func @short_rows(%x: tensor<5x12x2xf32>) -> tensor<5xf32> {
  %0 = nn.reduce_max %x [1, 2] : tensor<5x12x2xf32>
  return %0 : tensor<5xf32>
}

// Axes in the middle move to the front.
// CHECK-LABEL: func.func @middle
// CHECK: %[[T:.*]] = nn.transpose %{{.*}} [1, 2, 0, 3] : tensor<4x7x7x16xf32>
// CHECK: nn.reduce_mean %[[T]] [0, 1] : tensor<7x7x4x16xf32>
func.func @middle(%x: tensor<4x7x7x16xf32>) -> tensor<4x16xf32> {
  %0 = nn.reduce_mean %x [1, 2] : tensor<4x7x7x16xf32>
  return %0 : tensor<4x16xf32>
}
