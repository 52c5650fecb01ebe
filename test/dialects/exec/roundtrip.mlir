// Every op of the tensor half of the dialect, printed and parsed again, in its own syntax and in the generic one.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-opt --mlir-print-op-generic %s | descent-opt | FileCheck %s

// CHECK-LABEL: exec.kernel @relu "rows" (%{{.*}}: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {sources = ["nn.relu act"]} {
exec.kernel @relu "rows" (%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {sources = ["nn.relu act"]} {
  %0 = nn.relu %x : tensor<8x4xf32>
  // CHECK: exec.yield %{{.*}} : tensor<8x4xf32>
  exec.yield %0 : tensor<8x4xf32>
}

// CHECK-LABEL: nn.module @use
nn.module @use(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: exec.launch @relu(%{{.*}}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %0 = exec.launch @relu(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: exec.fusion "rows"(%{{.*}}, %{{.*}}) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
  %1 = exec.fusion "rows" (%0, %b) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
  ^bb0(%2: tensor<8x4xf32>, %3: tensor<4xf32>):
    %4 = nn.add %2, %3 : tensor<8x4xf32>, tensor<4xf32>
    exec.yield %4 : tensor<8x4xf32>
  }
  nn.return %1 : tensor<8x4xf32>
}
