// RUN: descent-opt %s --generate-kernels="cpu=haswell" --split-input-file --verify-diagnostics
// RUN: echo "" | not descent-opt --generate-kernels="cpu=abacus" 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: generate-kernels: {{.*}}abacus

// A kind without a generator.
// expected-error @+1 {{@k has kind 'sort', for which there is no generator}}
exec.kernel @k "sort" (%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x : tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}

// -----

// A product's operands are the first two inputs, in order: that is how its generator knows them.
exec.kernel @k "gemm" (%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{operand 0 must be input 0 of kernel @k and serve the product alone}}
  %0 = nn.matmul %y, %x : tensor<4x4xf32>, tensor<4x4xf32>
  exec.yield %0 : tensor<4x4xf32>
}

// -----

// What is behind a product obeys the rules of epilogues.
// expected-error @+1 {{@k: 'nn.reduce_sum' cannot be computed in a product's epilogue}}
exec.kernel @k "gemm" (%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = nn.matmul %x, %y : tensor<4x4xf32>, tensor<4x4xf32>
  %1 = nn.reduce_sum %0 [1] : tensor<4x4xf32>
  exec.yield %1 : tensor<4xf32>
}
