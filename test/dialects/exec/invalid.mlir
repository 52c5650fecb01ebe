// RUN: descent-opt -verify-diagnostics -split-input-file %s

// exec.kernel C2: the region yields what the kernel declares.
exec.kernel @k "rows" (%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{yields ('tensor<8xf32>') but the results are ('tensor<4xf32>')}}
  exec.yield %x : tensor<8xf32>
}

// -----

// exec.kernel C3
// expected-error @+1 {{computes nothing: it has no results}}
exec.kernel @k "rows" (%x: tensor<8xf32>) {
  exec.yield
}

// -----

// exec.fusion C1
nn.module @m(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the region takes ('tensor<4xf32>') but the inputs are ('tensor<8xf32>')}}
  %0 = exec.fusion "rows" (%x) : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%1: tensor<4xf32>):
    exec.yield %1 : tensor<4xf32>
  }
  nn.return %x : tensor<8xf32>
}

// -----

// exec.launch C1
nn.module @m(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{launches @nothing, but no exec.kernel has that name}}
  %0 = exec.launch @nothing(%x) : (tensor<8xf32>) -> tensor<8xf32>
  nn.return %0 : tensor<8xf32>
}

// -----

// expected-note @+1 {{the kernel is here}}
exec.kernel @k "rows" (%x: tensor<8xf32>) -> tensor<8xf32> {
  exec.yield %x : tensor<8xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<8xf32> {
  // exec.launch C2
  // expected-error @+1 {{inputs are ('tensor<4xf32>') but exec.kernel @k has ('tensor<8xf32>')}}
  %0 = exec.launch @k(%x) : (tensor<4xf32>) -> tensor<8xf32>
  nn.return %0 : tensor<8xf32>
}
