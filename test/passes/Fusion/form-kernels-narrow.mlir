// Narrow tensors are what lies in memory: those who read one wide widen it for themselves, and what rounds to one is computed where its operand is.
// RUN: descent-opt %s --form-kernels --outline-kernels --verify-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: descent-opt %s --form-kernels | FileCheck %s

// Two kernels that nothing else joins read the bf16 tensor, and no f32 copy of it exists.
// CHECK-LABEL: func.func @two_readers
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xbf16>, %{{.*}}: tensor<64x64xf32>)
// CHECK: exec.fusion "rows"(%[[X]])
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.cast
// CHECK-NEXT: nn.exp
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "gemm"
// CHECK: exec.fusion "rows"({{.*}}%[[X]]
// CHECK: nn.cast
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @two_readers(%x: tensor<8x64xbf16>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %0 = nn.cast %x to f32 : tensor<8x64xbf16>
  %1 = nn.exp %0 : tensor<8x64xf32>
  %2 = nn.matmul %1, %w : tensor<8x64xf32>, tensor<64x64xf32>
  %3 = nn.add %2, %0 : tensor<8x64xf32>, tensor<8x64xf32>
  return %3 : tensor<8x64xf32>
}

// A gradient's bias sum (over the leading axis) and its other readers all read bf16.
// CHECK-LABEL: func.func @bias_gradient
// CHECK-SAME: (%[[X:.*]]: tensor<32x64xbf16>, %[[Y:.*]]: tensor<32x64xf32>)
// CHECK-DAG: exec.fusion "columns"(%[[X]]) : (tensor<32x64xbf16>) -> tensor<64xf32>
// CHECK-DAG: exec.fusion "rows"(%[[X]], %[[Y]]) : (tensor<32x64xbf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @bias_gradient(%x: tensor<32x64xbf16>, %y: tensor<32x64xf32>) -> (tensor<64xf32>, tensor<32x64xf32>) {
  %0 = nn.cast %x to f32 : tensor<32x64xbf16>
  %1 = nn.reduce_sum %0 [0] : tensor<32x64xf32>
  %2 = nn.mul %0, %y : tensor<32x64xf32>, tensor<32x64xf32>
  return %1, %2 : tensor<64xf32>, tensor<32x64xf32>
}

// A view of a widened tensor becomes a widening of the view.
// CHECK-LABEL: func.func @view
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xbf16>)
// CHECK: %[[V:.*]] = nn.reshape %[[X]] [512] : tensor<8x64xbf16>
// CHECK: exec.fusion "rows"(%[[V]]) : (tensor<512xbf16>) -> tensor<512xf32>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @view(%x: tensor<8x64xbf16>) -> tensor<512xf32> {
  %0 = nn.cast %x to f32 : tensor<8x64xbf16>
  %1 = nn.reshape %0 [512] : tensor<8x64xf32>
  %2 = nn.exp %1 : tensor<512xf32>
  return %2 : tensor<512xf32>
}

// Parameters in bf16 of another shape than the domain are widened where they are read, by elementwise kernels, columns kernels and epilogues.
// CHECK-LABEL: func.func @gain
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[G:.*]]: tensor<64xbf16>)
// CHECK: exec.fusion "rows"(%[[G]], %[[X]]) : (tensor<64xbf16>, tensor<8x64xf32>) -> tensor<8x64xf32>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @gain(%x: tensor<8x64xf32>, %g: tensor<64xbf16>) -> tensor<8x64xf32> {
  %0 = nn.cast %g to f32 : tensor<64xbf16>
  %1 = nn.mul %x, %0 : tensor<8x64xf32>, tensor<64xf32>
  return %1 : tensor<8x64xf32>
}

// What rounds a value stands in the kernel that computes it, which then writes the narrow tensor alone.
// CHECK-LABEL: func.func @rounded
// CHECK: exec.fusion "rows"({{.*}}) : (tensor<8x64xf32>) -> tensor<8x64xbf16>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @rounded(%x: tensor<8x64xf32>) -> tensor<8x64xbf16> {
  %0 = nn.exp %x : tensor<8x64xf32>
  %1 = nn.cast %0 to bf16 : tensor<8x64xf32>
  return %1 : tensor<8x64xbf16>
}

// Readers that are no kernels of elementwise ops or reductions need the wide tensor in memory; they share one, and the others do not read it.
// CHECK-LABEL: func.func @stored
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xbf16>)
// CHECK: %[[W:.*]] = exec.fusion "rows"(%[[X]]) : (tensor<8x64xbf16>) -> tensor<8x64xf32>
// CHECK: exec.fusion "copy"(%[[W]])
// CHECK: exec.fusion "copy"(%[[W]])
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @stored(%x: tensor<8x64xbf16>) -> (tensor<64x8xf32>, tensor<4x64xf32>) {
  %0 = nn.cast %x to f32 : tensor<8x64xbf16>
  %1 = nn.transpose %0 [1, 0] : tensor<8x64xf32>
  %2 = nn.slice %0 from [0, 0] to [4, 64] by [1, 1] : tensor<8x64xf32>
  return %1, %2 : tensor<64x8xf32>, tensor<4x64xf32>
}

// Rounded and widened again is not the same value: both casts stay, though one kernel holds them.
// CHECK-LABEL: func.func @through_bf16
// CHECK: exec.fusion "rows"
// CHECK: nn.cast {{.*}} to bf16
// CHECK-NEXT: nn.cast {{.*}} to f32
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @through_bf16(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = nn.cast %x to bf16 : tensor<8x64xf32>
  %1 = nn.cast %0 to f32 : tensor<8x64xbf16>
  %2 = nn.sub %x, %1 : tensor<8x64xf32>, tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// Every one of these is a kernel that its generator takes.
// KERNELS-NOT: exec.fusion
