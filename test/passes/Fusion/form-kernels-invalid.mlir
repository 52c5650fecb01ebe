// RUN: descent-opt %s --form-kernels --split-input-file --verify-diagnostics

// A reduction over an axis in the middle has no kernel until split-reductions has moved it.
func.func @middle(%x: tensor<4x8x16xf32>) -> tensor<4x16xf32> {
  // expected-error @+1 {{fits no kernel: 'nn.reduce_sum' does not reduce the leading axes; decompose-ops and split-reductions bring ops into a form that does}}
  %0 = nn.reduce_sum %x [1] : tensor<4x8x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// Named computations have no kernel until decompose-ops has taken them apart.
func.func @named(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{fits no kernel}}
  %0 = nn.softmax %x axis 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Kernels have static shapes.
func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{has a type without static shape, 'tensor<?x8xf32>'; bind-batch makes every shape static}}
  %0 = nn.relu %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
