// RUN: descent-opt %s --form-kernels --fold-epilogues | FileCheck %s

// Bias, activation and the saved pre-activation leave with the product; the rows kernel is gone.
// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%[[X:.*]]: tensor<32x16xf32>, %[[W:.*]]: tensor<16x24xf32>, %[[B:.*]]: tensor<24xf32>)
// CHECK-NEXT: %[[Y:.*]]:2 = exec.fusion "gemm"(%[[X]], %[[W]], %[[B]])
// CHECK-NEXT: ^bb0(%[[X1:.*]]: tensor<32x16xf32>, %[[W1:.*]]: tensor<16x24xf32>, %[[B1:.*]]: tensor<24xf32>):
// CHECK-NEXT:   %[[P:.*]] = nn.matmul %[[X1]], %[[W1]]
// CHECK-NEXT:   %[[Z:.*]] = nn.add %[[P]], %[[B1]]
// CHECK-NEXT:   %[[G:.*]] = nn.gelu %[[Z]]
// CHECK-NEXT:   exec.yield %[[Z]], %[[G]]
// CHECK-NOT: exec.fusion
// CHECK: return %[[Y]]#0, %[[Y]]#1
func.func @linear(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %b: tensor<24xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %b : tensor<32x24xf32>, tensor<24xf32>
  %2 = nn.gelu %1 tanh : tensor<32x24xf32>
  return %1, %2 : tensor<32x24xf32>, tensor<32x24xf32>
}

// The derivative of the activation at its saved input moves along: nothing else uses it.
// CHECK-LABEL: func.func @backward
// CHECK: exec.fusion "gemm"
// CHECK: nn.matmul
// CHECK: nn.gelu_grad
// CHECK: nn.mul
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @backward(%dy: tensor<32x24xf32>, %w: tensor<24x16xf32>, %saved: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = nn.matmul %dy, %w : tensor<32x24xf32>, tensor<24x16xf32>
  %1 = nn.gelu_grad %saved erf : tensor<32x16xf32>
  %2 = nn.mul %0, %1 : tensor<32x16xf32>, tensor<32x16xf32>
  return %2 : tensor<32x16xf32>
}

// The residual folds; the norm behind it needs whole rows and stays. Constants are cloned to where they are used.
// CHECK-LABEL: func.func @residual_then_norm
// CHECK: %[[H:.*]] = exec.fusion "gemm"
// CHECK: nn.matmul
// CHECK: nn.add
// CHECK: nn.mul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "rows"(%[[H]])
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.reduce_mean
// CHECK-NEXT: nn.sub
// CHECK-NEXT: exec.yield
func.func @residual_then_norm(%x: tensor<32x16xf32>, %w: tensor<16x24xf32>, %r: tensor<32x24xf32>) -> tensor<32x24xf32> {
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.matmul %x, %w : tensor<32x16xf32>, tensor<16x24xf32>
  %1 = nn.add %0, %r : tensor<32x24xf32>, tensor<32x24xf32>
  %h = nn.mul %1, %half : tensor<32x24xf32>, tensor<f32>
  %m = nn.reduce_mean %h [1] keep : tensor<32x24xf32>
  %y = nn.sub %h, %m : tensor<32x24xf32>, tensor<32x1xf32>
  return %y : tensor<32x24xf32>
}

// An input made between the product and its consumer moves in front of the product.
// CHECK-LABEL: func.func @hoist
// CHECK: %[[E:.*]] = exec.fusion "rows"
// CHECK: nn.exp
// CHECK: exec.fusion "gemm"(%{{.*}}, %{{.*}}, %[[E]])
// CHECK: return
func.func @hoist(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %r: tensor<16xf32>) -> tensor<16x16xf32> {
  %0 = nn.matmul %x, %w : tensor<16x16xf32>, tensor<16x16xf32>
  %1 = nn.exp %r : tensor<16xf32>
  %2 = nn.mul %0, %1 : tensor<16x16xf32>, tensor<16xf32>
  return %2 : tensor<16x16xf32>
}
