// RUN: descent-opt --attach-row-weights -verify-diagnostics -split-input-file %s

// The loss flattened batch and time, so padding rows could not be told apart.
nn.model @flat(%x: tensor<2x3x4xf32> {nn.role = "data"}, %t: tensor<6xi32> {nn.role = "target"}) {
  %0 = nn.reshape %x [6, 4] : tensor<2x3x4xf32>
  // expected-error @+1 {{has 6 rows ('tensor<6x4xf32>') but the batch is 2; keep the batch as the leading axis, so that padding rows can be left out}}
  %s, %n = nn.cross_entropy %0, %t : tensor<6x4xf32>, tensor<6xi32>
  nn.loss %s, %n, %0 : tensor<6x4xf32>
}

// -----

nn.model @own_sum(%x: tensor<2x4xf32> {nn.role = "data"}) {
  %0 = nn.reduce_sum %x [0, 1] : tensor<2x4xf32>
  // expected-error @+1 {{depends on input 0 other than through a loss op; the padding rows of a last, smaller batch would count: compute sum and weight with nn.cross_entropy or nn.mse}}
  nn.loss %0, %0, %x : tensor<2x4xf32>
}

// -----

nn.model @twice(%x: tensor<2x4xf32> {nn.role = "data"}, %w: tensor<2xf32> {nn.role = "target"}) {
  // expected-error @+1 {{has row_weights already; a model file leaves them to this pass}}
  %s, %n = nn.mse %x, %x row_weights %w : tensor<2xf32> : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{input 0 is 'tensor<?x4xf32>'; run bind-batch first}}
nn.model @unbound(%x: tensor<?x4xf32> {nn.role = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}
