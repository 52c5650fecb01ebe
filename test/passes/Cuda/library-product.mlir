// What the library computes of a kernel of kind gemm, what is prepared for it, and where generated code stands by.
// RUN: descent-opt %s --generate-device-kernels=target=cuda:sm_90 | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: descent-opt %s --generate-device-kernels=target=cuda:sm_100 | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: descent-opt %s --generate-device-kernels=target=cuda:sm_80 | FileCheck %s --check-prefixes=CHECK,SM80

// An f32 bias is rounded to the type of a bf16 result first; every version has this product, so nothing stands by. The library's workspace lies behind
// the bias.
// CHECK-LABEL: gpu.module @linear.gpu
// CHECK: gpu.func @linear_bias
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: exec.device_kernel @linear inputs 3
// SM90-SAME: workspace 33554688
// SM100-SAME: workspace 33554688
// SM80-SAME: workspace 4194560
// CHECK: ^bb0(%[[X:.*]]: memref<4x8x16xbf16>, %[[W:.*]]: memref<16x24xbf16>, %[[B:.*]]: memref<24xf32>, %[[Y:.*]]: memref<4x8x24xbf16>):
// CHECK: %[[C:.*]] = exec.workspace at 0 : memref<24xbf16>
// CHECK: exec.device_launch @linear.gpu::@linear_bias {{.*}}(%[[B]], %[[C]])
// CHECK: exec.device_product %[[X]], %[[W]] to %[[Y]] bias %[[C]]
// CHECK-SAME: epilogue = "bias", k = 16 : i64, lda = 16 : i64, ldb = 24 : i64, ldd = 24 : i64, m = 32 : i64, n = 24 : i64
// CHECK-NOT: otherwise
// CHECK: }
exec.kernel @linear "gemm" (%x: tensor<4x8x16xbf16>, %w: tensor<16x24xbf16>, %b: tensor<24xf32>) -> tensor<4x8x24xbf16> attributes {library, sources = []} {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<4x8x16xbf16>, tensor<16x24xbf16>
  %1 = nn.add %0, %b : tensor<4x8x24xf32>, tensor<24xf32>
  %2 = nn.cast %1 to bf16 : tensor<4x8x24xf32>
  exec.yield %2 : tensor<4x8x24xbf16>
}

// An f32 bias of an f32 result is taken as it is. Gelu stores what it is applied to; a generated product stands by.
// CHECK-LABEL: exec.device_kernel @gelu
// CHECK: ^bb0(%[[X:.*]]: memref<32x16xf32>, %[[W:.*]]: memref<24x16xf32>, %[[B:.*]]: memref<24xf32>, %[[Z:.*]]: memref<32x24xf32>, %[[Y:.*]]: memref<32x24xf32>):
// CHECK: exec.device_product %[[X]], %[[W]] to %[[Y]] bias %[[B]] aux %[[Z]]
// CHECK-SAME: aux_ld = 24 : i64, epilogue = "gelu_aux_bias"
// CHECK-SAME: transpose_b
// CHECK-SAME: otherwise
// CHECK: exec.device_launch @gelu.gpu
exec.kernel @gelu "gemm" (%x: tensor<32x16xf32>, %w: tensor<24x16xf32>, %b: tensor<24xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) attributes {library, sources = []} {
  %0 = nn.matmul %x, %w {transpose_b} : tensor<32x16xf32>, tensor<24x16xf32>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.gelu %1 tanh : tensor<32x24xf32>
  exec.yield %1, %2 : tensor<32x24xf32>, tensor<32x24xf32>
}

// CHECK-LABEL: exec.device_kernel @gelu_backward
// CHECK: ^bb0(%[[DY:.*]]: memref<32x8xbf16>, %[[V:.*]]: memref<24x8xbf16>, %[[Z:.*]]: memref<32x24xbf16>, %[[DX:.*]]: memref<32x24xbf16>):
// CHECK: exec.device_product %[[DY]], %[[V]] to %[[DX]] aux %[[Z]]
// CHECK-SAME: aux_ld = 24 : i64, epilogue = "dgelu"
// CHECK-SAME: otherwise
exec.kernel @gelu_backward "gemm" (%dy: tensor<32x8xbf16>, %v: tensor<24x8xbf16>, %z: tensor<32x24xbf16>) -> tensor<32x24xbf16> attributes {library, sources = []} {
  %0 = nn.matmul %dy, %v {transpose_b} : tensor<32x8xbf16>, tensor<24x8xbf16>
  %1 = nn.gelu_grad %z tanh : tensor<32x24xbf16>
  %2 = nn.mul %0, %1 : tensor<32x24xbf16>, tensor<32x24xbf16>
  exec.yield %2 : tensor<32x24xbf16>
}

// CHECK-LABEL: exec.device_kernel @relu
// CHECK: exec.device_product {{.*}} bias %{{.*}} {epilogue = "relu_bias"
exec.kernel @relu "gemm" (%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>) -> tensor<32x24xf32> attributes {library, sources = []} {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.relu %1 : tensor<32x24xf32>
  exec.yield %2 : tensor<32x24xf32>
}

// A gradient is added in place.
// CHECK-LABEL: exec.device_kernel @gradient
// CHECK: ^bb0(%[[X:.*]]: memref<64x16xbf16>, %[[DY:.*]]: memref<64x24xbf16>, %{{.*}}: memref<16x24xf32>, %[[DW:.*]]: memref<16x24xf32>):
// CHECK: exec.device_product %[[X]], %[[DY]] to %[[DW]] {accumulate,
// CHECK-SAME: k = 64 : i64, lda = 16 : i64
// CHECK-SAME: transpose_a
exec.kernel @gradient "gemm" (%x: tensor<64x16xbf16>, %dy: tensor<64x24xbf16>, %g: tensor<16x24xf32>) -> tensor<16x24xf32>
    attributes {accumulate = 2 : i64, library, sources = []} {
  %0 = nn.matmul %x, %dy {transpose_a, result_type = f32} : tensor<64x16xbf16>, tensor<64x24xbf16>
  %1 = nn.add %0, %g : tensor<16x24xf32>, tensor<16x24xf32>
  exec.yield %1 : tensor<16x24xf32>
}

// A tensor elsewhere is not what the library adds to.
// CHECK-LABEL: exec.device_kernel @elsewhere
// CHECK-NOT: exec.device_product
// CHECK: exec.device_launch @elsewhere.gpu
exec.kernel @elsewhere "gemm" (%x: tensor<64x16xbf16>, %dy: tensor<64x24xbf16>, %g: tensor<16x24xf32>) -> tensor<16x24xf32> attributes {library, sources = []} {
  %0 = nn.matmul %x, %dy {transpose_a, result_type = f32} : tensor<64x16xbf16>, tensor<64x24xbf16>
  %1 = nn.add %0, %g : tensor<16x24xf32>, tensor<16x24xf32>
  exec.yield %1 : tensor<16x24xf32>
}

// CHECK-LABEL: exec.device_kernel @rounded
// CHECK: exec.device_product
// CHECK-SAME: compute = "tf32"
exec.kernel @rounded "gemm" (%x: tensor<32x16xf32>, %w: tensor<16x24xf32>) -> tensor<32x24xf32> attributes {compute = "tf32", library, sources = []} {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  exec.yield %0 : tensor<32x24xf32>
}

// CHECK-LABEL: exec.device_kernel @batch
// CHECK: exec.device_product
// CHECK-SAME: batch = 6 : i64
// CHECK-SAME: lda = 8 : i64, ldb = 8 : i64, ldd = 16 : i64, m = 16 : i64, n = 16 : i64, stride_a = 128 : i64, stride_b = 128 : i64, stride_d = 256 : i64, transpose_b
exec.kernel @batch "gemm" (%q: tensor<2x3x16x8xbf16>, %k: tensor<2x3x16x8xbf16>) -> tensor<2x3x16x16xbf16> attributes {library, sources = []} {
  %0 = nn.matmul %q, %k {transpose_b} : tensor<2x3x16x8xbf16>, tensor<2x3x16x8xbf16>
  exec.yield %0 : tensor<2x3x16x16xbf16>
}

// Operands of eight bits have to lie along k before capability 10.0, and chips before 8.9 multiply none.
// CHECK-LABEL: exec.device_kernel @eight
// CHECK: ^bb0(%[[X:.*]]: memref<32x16xf8E4M3FN>, %[[W:.*]]: memref<16x64xf8E4M3FN>, %[[S:.*]]: memref<f32>, %[[Y:.*]]: memref<32x64xbf16>):
// SM90: %[[T:.*]] = exec.workspace at 0 : memref<1024xf8E4M3FN>
// SM90: exec.device_launch @eight.gpu::@eight_b grid [2, 1, 1] block [32, 8, 1]{{ ?}}(%[[W]], %[[T]])
// SM90: exec.device_product %[[X]], %[[T]] to %[[Y]] scales %[[S]]
// SM90-SAME: ldb = 16 : i64
// SM90-SAME: transpose_b
// SM100-NOT: exec.device_launch @eight.gpu::@eight_b
// SM100: exec.device_product %[[X]], %[[W]] to %[[Y]] scales %[[S]]
// SM100-SAME: ldb = 64 : i64
// SM80-NOT: exec.device_product
// SM80: exec.device_launch @eight.gpu
exec.kernel @eight "gemm" (%x: tensor<32x16xf8E4M3FN>, %w: tensor<16x64xf8E4M3FN>, %s: tensor<f32>) -> tensor<32x64xbf16> attributes {library, sources = []} {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<32x16xf8E4M3FN>, tensor<16x64xf8E4M3FN>
  %1 = nn.mul %0, %s : tensor<32x64xf32>, tensor<f32>
  %2 = nn.cast %1 to bf16 : tensor<32x64xf32>
  exec.yield %2 : tensor<32x64xbf16>
}

// The sum of an operand's rows beside the product. Not every version adds up an operand of these types: the plain product, which every version has, and
// the sum in code of our own stand by.
// CHECK-LABEL: gpu.module @bias_gradient.gpu
// CHECK: gpu.func @bias_gradient_columns
// CHECK: exec.device_kernel @bias_gradient inputs 2
// SM90-SAME: workspace 33554432
// CHECK: ^bb0(%[[X:.*]]: memref<32x16xbf16>, %[[DY:.*]]: memref<32x24xbf16>, %[[DW:.*]]: memref<16x24xf32>, %[[DB:.*]]: memref<24xf32>):
// CHECK: exec.device_product %[[X]], %[[DY]] to %[[DW]] bias_gradient %[[DB]] {epilogue = "bgrad_b"
// CHECK-SAME: transpose_a
// CHECK-SAME: otherwise
// CHECK: exec.device_product %[[X]], %[[DY]] to %[[DW]] {
// CHECK-SAME: transpose_a
// CHECK-NOT: otherwise
// CHECK: exec.device_launch @bias_gradient.gpu::@bias_gradient_columns grid {{.*}}(%[[DY]], %[[DB]])
exec.kernel @bias_gradient "gemm" (%x: tensor<32x16xbf16>, %dy: tensor<32x24xbf16>) -> (tensor<16x24xf32>, tensor<24xf32>) attributes {library, sources = []} {
  %0 = nn.matmul %x, %dy {transpose_a, result_type = f32} : tensor<32x16xbf16>, tensor<32x24xbf16>
  %1 = nn.cast %dy to f32 : tensor<32x24xbf16>
  %2 = nn.reduce_sum %1 [0] : tensor<32x24xf32>
  exec.yield %0, %2 : tensor<16x24xf32>, tensor<24xf32>
}

// Of the first operand, at sizes that not even the plain product is certain for.
// CHECK-LABEL: exec.device_kernel @bias_gradient_first
// CHECK: ^bb0(%[[DY:.*]]: memref<33x10xf32>, %[[X:.*]]: memref<33x15xf32>, %[[DW:.*]]: memref<10x15xf32>, %[[DB:.*]]: memref<10xf32>):
// CHECK: exec.device_product %[[DY]], %[[X]] to %[[DW]] bias_gradient %[[DB]] {epilogue = "bgrad_a"
// CHECK-SAME: otherwise
// CHECK: exec.device_product %[[DY]], %[[X]] to %[[DW]] {
// CHECK-SAME: otherwise
// CHECK: exec.device_launch @bias_gradient_first.gpu::@bias_gradient_first_product
// CHECK: exec.device_launch @bias_gradient_first.gpu::@bias_gradient_first_columns
exec.kernel @bias_gradient_first "gemm" (%dy: tensor<33x10xf32>, %x: tensor<33x15xf32>) -> (tensor<10x15xf32>, tensor<10xf32>) attributes {library, sources = []} {
  %0 = nn.matmul %dy, %x {transpose_a} : tensor<33x10xf32>, tensor<33x15xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<33x10xf32>
  exec.yield %0, %1 : tensor<10x15xf32>, tensor<10xf32>
}
