// For CUDA a library multiplies: only what it computes moves behind a product.
// RUN: descent-opt %s --form-kernels --fold-epilogues=target=cuda --fold-accumulations | FileCheck %s

// A bias, cast and gelu behind the sum; the pre-activation is kept instead of the derivative, which the backward product computes.
// CHECK-LABEL: func.func @gelu
// CHECK-SAME: (%[[X:.*]]: tensor<32x16xbf16>, %[[W:.*]]: tensor<16x24xbf16>, %[[B:.*]]: tensor<24xf32>, %[[DY:.*]]: tensor<32x8xbf16>, %[[V:.*]]: tensor<24x8xbf16>)
// CHECK: %[[F:.*]]:2 = exec.fusion "gemm"(%[[X]], %[[W]], %[[B]]) : {{.*}} -> (tensor<32x24xbf16>, tensor<32x24xbf16>) attributes {library}
// CHECK: nn.matmul
// CHECK: nn.add
// CHECK: %[[H:.*]] = nn.cast
// CHECK: %[[Y:.*]] = nn.gelu %[[H]]
// CHECK-NOT: nn.gelu_grad
// CHECK: exec.yield %[[H]], %[[Y]]
// CHECK: %[[G:.*]] = exec.fusion "gemm"(%[[DY]], %[[V]], %[[F]]#0) : {{.*}} -> tensor<32x24xbf16> attributes {library}
// CHECK: %[[S:.*]] = nn.matmul {{.*}} {transpose_b}
// CHECK: %[[D:.*]] = nn.gelu_grad
// CHECK: nn.mul %[[S]], %[[D]]
// CHECK-NOT: exec.fusion
// CHECK: return %[[F]]#1, %[[G]]
func.func @gelu(%x: tensor<32x16xbf16>, %w: tensor<16x24xbf16>, %b: tensor<24xf32>, %dy: tensor<32x8xbf16>, %v: tensor<24x8xbf16>)
    -> (tensor<32x24xbf16>, tensor<32x24xbf16>) {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<32x16xbf16>, tensor<16x24xbf16>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.cast %1 to bf16 : tensor<32x24xf32>
  %3 = nn.gelu %2 tanh : tensor<32x24xbf16>
  %4 = nn.gelu_grad %2 tanh : tensor<32x24xbf16>
  %5 = nn.matmul %dy, %v {transpose_b} : tensor<32x8xbf16>, tensor<24x8xbf16>
  %6 = nn.mul %5, %4 : tensor<32x24xbf16>, tensor<32x24xbf16>
  return %3, %6 : tensor<32x24xbf16>, tensor<32x24xbf16>
}

// The mask of a relu is the sign of its result, which is kept in any case. The library's masks are bits, so the backward product stays plain.
// CHECK-LABEL: func.func @relu
// CHECK: %[[Y:.*]] = exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<32x24xf32> attributes {library}
// CHECK: nn.relu
// CHECK-NOT: nn.compare
// CHECK: exec.fusion "gemm"(%[[Y]],
// CHECK: %[[S:.*]] = exec.fusion "gemm"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "rows"(%[[S]], %[[Y]])
// CHECK: nn.compare gt
// CHECK: nn.where
// CHECK: return
func.func @relu(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>, %u: tensor<24x8xf32>, %v: tensor<24x8xf32>)
    -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.relu %1 : tensor<32x24xf32>
  %3 = nn.compare gt %1, %zero : tensor<32x24xf32>, tensor<f32>
  %dy = nn.matmul %2, %u : tensor<32x24xf32>, tensor<24x8xf32>
  %4 = nn.matmul %dy, %v {transpose_b} : tensor<32x8xf32>, tensor<24x8xf32>
  %5 = nn.where %3, %4, %zero : tensor<32x24xi1>, tensor<32x24xf32>, tensor<f32>
  return %2, %5 : tensor<32x24xf32>, tensor<32x24xf32>
}

// A residual is none of the library's epilogues: the bias moves, the addition stays.
// CHECK-LABEL: func.func @residual
// CHECK: %[[Y:.*]] = exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<32x24xf32> attributes {library}
// CHECK: nn.add
// CHECK-NOT: nn.add
// CHECK: exec.yield
// CHECK: exec.fusion "rows"({{.*}}%[[Y]]{{.*}})
// CHECK: nn.add
// CHECK: return
func.func @residual(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>, %r: tensor<32x24xf32>) -> tensor<32x24xf32> {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.add %r, %1 : tensor<32x24xf32>, tensor<32x24xf32>
  return %2 : tensor<32x24xf32>
}

// Gelu by erf is not the library's; nor is a pre-activation whose rows do not begin at multiples of eight elements.
// CHECK-LABEL: func.func @other_gelu
// CHECK: exec.fusion "gemm"
// CHECK-NOT: nn.gelu
// CHECK: exec.fusion "rows"
// CHECK: nn.gelu {{.*}} erf
// CHECK: exec.fusion "gemm"
// CHECK-NOT: nn.gelu
// CHECK: exec.fusion "rows"
// CHECK: nn.gelu {{.*}} tanh
// CHECK: return
func.func @other_gelu(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %v: tensor<16x20xf32>)
    -> (tensor<32x24xf32>, tensor<32x20xf32>, tensor<32x20xf32>) {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.gelu %0 erf : tensor<32x24xf32>
  %2 = nn.matmul %x, %v : tensor<32x16xf32>, tensor<16x20xf32>
  %3 = nn.gelu %2 tanh : tensor<32x20xf32>
  return %1, %2, %3 : tensor<32x24xf32>, tensor<32x20xf32>, tensor<32x20xf32>
}

// Onto a tensor that dies here; one that lives is added by a kernel of its own.
// CHECK-LABEL: func.func @accumulate
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} attributes {library}
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} attributes {accumulate = 2 : i64, library}
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} attributes {library}
// CHECK-NOT: nn.add
// CHECK: exec.fusion "rows"
// CHECK: nn.add
// CHECK: return
func.func @accumulate(%x: tensor<32x16xbf16>, %y: tensor<32x24xbf16>, %z: tensor<32x24xbf16>, %kept: tensor<16x24xf32>)
    -> (tensor<16x24xf32>, tensor<16x24xf32>) {
  %0 = nn.matmul %x, %z {transpose_a, result_type = f32} : tensor<32x16xbf16>, tensor<32x24xbf16>
  %1 = nn.matmul %x, %y {transpose_a, result_type = f32} : tensor<32x16xbf16>, tensor<32x24xbf16>
  %2 = nn.add %1, %0 : tensor<16x24xf32>, tensor<16x24xf32>
  %3 = nn.matmul %x, %y {transpose_a, result_type = f32} : tensor<32x16xbf16>, tensor<32x24xbf16>
  %4 = nn.add %3, %kept : tensor<16x24xf32>, tensor<16x24xf32>
  return %2, %4 : tensor<16x24xf32>, tensor<16x24xf32>
}

// Operands that were rounded to TF32 may be multiplied by tensor cores.
// CHECK-LABEL: func.func @tf32
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} attributes {compute = "tf32", library}
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} attributes {library}
// CHECK: return
func.func @tf32(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %0 = nn.round_tf32 %x : tensor<32x16xf32>
  %1 = nn.round_tf32 %w : tensor<16x24xf32>
  %2 = nn.matmul %0, %1 : tensor<32x16xf32>, tensor<16x24xf32>
  %3 = nn.matmul %x, %1 : tensor<32x16xf32>, tensor<16x24xf32>
  return %2, %3 : tensor<32x24xf32>, tensor<32x24xf32>
}

// Convolutions too, which are not the library's; nor is a product that asks for a tile, and it keeps whatever epilogue it can have.
// CHECK-LABEL: func.func @generated
// CHECK: exec.fusion "conv"({{.*}}) : {{.*}} attributes {compute = "tf32"}
// CHECK: exec.fusion "gemm"({{.*}}) : (tensor<32x16xf32>, tensor<16x24xf32>) -> tensor<32x24xf32> {{[{]$}}
// CHECK: nn.sigmoid
// CHECK: return
func.func @generated(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %i: tensor<1x4x4x4xf32>, %k: tensor<1x1x4x8xf32>)
    -> (tensor<32x24xf32>, tensor<1x4x4x8xf32>) {
  %0 = nn.round_tf32 %i : tensor<1x4x4x4xf32>
  %1 = nn.round_tf32 %k : tensor<1x1x4x8xf32>
  %2 = nn.conv2d %0, %1 strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x4x4xf32>, tensor<1x1x4x8xf32>
  %3 = nn.matmul %x, %w {descent.tile = array<i64>} : tensor<32x16xf32>, tensor<16x24xf32>
  %4 = nn.sigmoid %3 : tensor<32x24xf32>
  return %4, %2 : tensor<32x24xf32>, tensor<1x4x4x8xf32>
}

// Products of eight bits: the scale, a bias and the cast; no activation.
// CHECK-LABEL: func.func @eight
// CHECK: exec.fusion "gemm"({{.*}}) : {{.*}} -> tensor<32x32xbf16> attributes {library}
// CHECK: nn.mul
// CHECK: nn.add
// CHECK: nn.cast
// CHECK-NOT: nn.gelu
// CHECK: exec.fusion "rows"
// CHECK: nn.gelu
// CHECK: return
func.func @eight(%x: tensor<32x16xf8E4M3FN>, %w: tensor<16x32xf8E4M3FN>, %s: tensor<f32>, %b: tensor<32xf32>) -> tensor<32x32xbf16> {
  %0 = nn.matmul %x, %w {result_type = f32} : tensor<32x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>
  %1 = nn.mul %0, %s : tensor<32x32xf32>, tensor<f32>
  %2 = nn.add %1, %b : tensor<32x32xf32>, tensor<32xf32>
  %3 = nn.cast %2 to bf16 : tensor<32x32xf32>
  %4 = nn.gelu %3 tanh : tensor<32x32xbf16>
  return %4 : tensor<32x32xbf16>
}
