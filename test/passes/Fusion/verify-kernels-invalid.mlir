// RUN: descent-opt %s --verify-kernels --split-input-file --verify-diagnostics

// Every op but views is in a kernel.
func.func @loose(%x: tensor<4x4xf32>) -> tensor<16xf32> {
  // expected-error @+1 {{is in no kernel; form-kernels puts every op but views into one}}
  %0 = nn.relu %x : tensor<4x4xf32>
  %1 = nn.reshape %0 [16] : tensor<4x4xf32>
  return %1 : tensor<16xf32>
}

// -----

// Fusions are outlined.
func.func @fusion(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{of kind 'rows' is not outlined; outline-kernels makes it a kernel}}
  %0 = exec.fusion "rows"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = nn.relu %a : tensor<4xf32>
    exec.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A kind needs a generator.
// expected-error @+1 {{@k is no kernel of kind 'sort': no generator makes kernels of kind 'sort'}}
exec.kernel @k "sort" (%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x : tensor<4xf32>
  exec.yield %0 : tensor<4xf32>
}

// -----

// A rows kernel has one domain.
// expected-error @+1 {{@k is no kernel of kind 'rows': 'nn.exp' yields 3 in a kernel over 4x4}}
exec.kernel @k "rows" (%x: tensor<4x4xf32>, %y: tensor<3xf32>) -> (tensor<4x4xf32>, tensor<3xf32>) {
  %0 = nn.relu %x : tensor<4x4xf32>
  %1 = nn.exp %y : tensor<3xf32>
  exec.yield %0, %1 : tensor<4x4xf32>, tensor<3xf32>
}

// -----

// A product's epilogue is elementwise.
// expected-error @+1 {{@k is no kernel of kind 'gemm': 'nn.reduce_sum' cannot be computed in a product's epilogue}}
exec.kernel @k "gemm" (%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32>
  %1 = nn.reduce_sum %0 [1] : tensor<4x4xf32>
  exec.yield %1 : tensor<4xf32>
}

// -----

// A columns kernel does not use what it reduces.
// expected-error @+1 {{@k is no kernel of kind 'columns': 'nn.mul' iterates over 4 in a kernel over 8x4}}
exec.kernel @k "columns" (%x: tensor<8x4xf32>) -> tensor<4xf32> {
  %0 = nn.reduce_sum %x [0] : tensor<8x4xf32>
  %1 = nn.mul %0, %0 : tensor<4xf32>, tensor<4xf32>
  exec.yield %1 : tensor<4xf32>
}

// -----

// A kernel computes its results.
// expected-error @+1 {{@k yields its own input as result 1}}
exec.kernel @k "rows" (%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.relu %x : tensor<4xf32>
  exec.yield %0, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// Accumulation replaces an operand of the result's type.
// expected-error @+1 {{@k accumulates onto operand 2, which is not an input of the type of its only result}}
exec.kernel @k "gemm" (%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> attributes {accumulate = 2 : i64} {
  %0 = nn.matmul %x, %y : tensor<4x4xf32>, tensor<4x4xf32>
  %1 = nn.add %0, %b : tensor<4x4xf32>, tensor<4xf32>
  exec.yield %1 : tensor<4x4xf32>
}

// -----

// A library adds up an operand beside a product, generated code does not.
// expected-error @+1 {{@k is no kernel of kind 'gemm': 'nn.reduce_sum' cannot be computed in a product's epilogue}}
exec.kernel @k "gemm" (%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0 = nn.matmul %x, %dy {transpose_a} : tensor<8x4xf32>, tensor<8x6xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<8x6xf32>
  exec.yield %0, %1 : tensor<4x6xf32>, tensor<6xf32>
}

// -----

// And along k alone.
// expected-error @+1 {{@k is no kernel of kind 'gemm': 'nn.reduce_sum' cannot be computed in a product's epilogue}}
exec.kernel @k "gemm" (%dy: tensor<8x6xf32>, %w: tensor<4x6xf32>) -> (tensor<8x4xf32>, tensor<6xf32>) attributes {library} {
  %0 = nn.matmul %dy, %w {transpose_b} : tensor<8x6xf32>, tensor<4x6xf32>
  %1 = nn.reduce_sum %dy [0] : tensor<8x6xf32>
  exec.yield %0, %1 : tensor<8x4xf32>, tensor<6xf32>
}
