// The model that docs/guide.md shows: it is what the Import phase accepts (tools/dev/check-snippets keeps the two equal).
// RUN: descent-opt --pass-pipeline="builtin.module(inline-modules,bind-batch{batch=2},attach-row-weights,bound-inputs,verify-model)" %s | FileCheck %s

// CHECK: nn.mse
// CHECK-SAME: row_weights
nn.model @mlp(%x: tensor<?x4xf32> {nn.role = "data"}, %y: tensor<?x3xf32> {nn.role = "target"}) {
  %w = nn.parameter "fc.weight" normal(0.0, 0.5) : tensor<4x3xf32>
  %b = nn.parameter "fc.bias" zeros : tensor<3xf32>
  %0 = nn.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
  %1 = nn.add %0, %b : tensor<?x3xf32>, tensor<3xf32>
  %sum, %weight = nn.mse %1, %y : tensor<?x3xf32>, tensor<?x3xf32>
  nn.loss %sum, %weight, %1 : tensor<?x3xf32>
}
