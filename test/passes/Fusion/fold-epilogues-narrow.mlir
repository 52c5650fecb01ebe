// Epilogues write the fewest bytes: they round where the result is wanted narrow, and leave the widening of a narrow result to its readers.
// RUN: descent-opt %s --form-kernels --fold-epilogues | FileCheck %s

// Bias in bf16, rounding: all in the product's kernel, which writes bf16.
// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%[[X:.*]]: tensor<32x16xf32>, %[[W:.*]]: tensor<16x24xf32>, %[[B:.*]]: tensor<24xbf16>)
// CHECK: exec.fusion "gemm"(%[[X]], %[[W]], %[[B]]) : {{.*}} -> tensor<32x24xbf16>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @linear(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xbf16>) -> tensor<32x24xbf16> {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.cast %b to f32 : tensor<24xbf16>
  %2 = nn.add %0, %1 : tensor<32x24xf32>, tensor<24xf32>
  %3 = nn.cast %2 to bf16 : tensor<32x24xf32>
  return %3 : tensor<32x24xbf16>
}

// Row statistics of a bf16 product: the product's kernel writes bf16, not the widened tensor.
// CHECK-LABEL: func.func @statistics
// CHECK: %[[Y:.*]] = exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<32x24xbf16>
// CHECK: exec.fusion "rows"(%[[Y]]) : (tensor<32x24xbf16>) -> tensor<32x24xf32>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @statistics(%x: tensor<32x16xbf16>, %w: tensor<16x24xbf16>) -> tensor<32x24xf32> {
  %0 = nn.matmul %x, %w : tensor<32x16xbf16>, tensor<16x24xbf16>
  %1 = nn.cast %0 to f32 : tensor<32x24xbf16>
  %2 = nn.reduce_mean %1 [1] keep : tensor<32x24xf32>
  %3 = nn.sub %1, %2 : tensor<32x24xf32>, tensor<32x1xf32>
  return %3 : tensor<32x24xf32>
}

// The residual of a stream in f32: widened, added and written by the product's kernel.
// CHECK-LABEL: func.func @residual
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<32x24xf32>
// CHECK: nn.cast
// CHECK: nn.add
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @residual(%x: tensor<32x16xbf16>, %w: tensor<16x24xbf16>, %r: tensor<32x24xf32>) -> tensor<32x24xf32> {
  %0 = nn.matmul %x, %w : tensor<32x16xbf16>, tensor<16x24xbf16>
  %1 = nn.cast %0 to f32 : tensor<32x24xbf16>
  %2 = nn.add %1, %r : tensor<32x24xf32>, tensor<32x24xf32>
  return %2 : tensor<32x24xf32>
}

// A stream in bf16 that a product adds to: its kernel reads bf16.
// CHECK-LABEL: func.func @narrow_stream
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<32x24xbf16>)
// CHECK: exec.fusion "gemm"({{.*}}, %[[R]]) : {{.*}} -> tensor<32x24xbf16>
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @narrow_stream(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %r: tensor<32x24xbf16>) -> tensor<32x24xbf16> {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.cast %r to f32 : tensor<32x24xbf16>
  %2 = nn.add %0, %1 : tensor<32x24xf32>, tensor<32x24xf32>
  %3 = nn.cast %2 to bf16 : tensor<32x24xf32>
  return %3 : tensor<32x24xbf16>
}
