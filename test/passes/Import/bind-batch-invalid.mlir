// RUN: descent-opt --bind-batch -verify-diagnostics -split-input-file %s

// expected-error @+1 {{the batch '?' has no size; set batch.size in the recipe, train.batch on the module, or the pass's option batch}}
nn.model @unbound(%x: tensor<?x4xf32> {nn.role = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

module attributes {train.batch = -2 : i64} {
  // expected-error @+1 {{batch size -2; it must be at least 1}}
  nn.model @negative(%x: tensor<?x4xf32> {nn.role = "data"}) {
    %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
    nn.loss %s, %n, %x : tensor<?x4xf32>
  }
}

// -----

module attributes {train.batch = 8 : i64} {
  // expected-error @+1 {{input 0 is 'tensor<4x4xf32>', written for a batch of 4, but the batch is 8; write '?' for the batch}}
  nn.model @other(%x: tensor<4x4xf32> {nn.role = "data"}) {
    %s, %n = nn.mse %x, %x : tensor<4x4xf32>, tensor<4x4xf32>
    nn.loss %s, %n, %x : tensor<4x4xf32>
  }
}

// -----

module attributes {train.batch = 8 : i64} {
  // expected-error @+1 {{input 1 is 'tensor<f32>'; inputs lead with the batch axis}}
  nn.model @scalar(%x: tensor<?x4xf32> {nn.role = "data"}, %y: tensor<f32> {nn.role = "target"}) {
    %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
    nn.loss %s, %n, %x : tensor<?x4xf32>
  }
}

// -----

// A reshape that only fits even batches is refused by the op's own rule once the batch is known.
module attributes {train.batch = 3 : i64} {
  nn.model @odd(%x: tensor<?x4xf32> {nn.role = "data"}) {
    // expected-error @+1 {{cannot turn 'tensor<3x4xf32>', 12 elements, into [-1, 8], a multiple of 8 elements}}
    %0 = nn.reshape %x [-1, 8] : tensor<?x4xf32>
    %s, %n = nn.mse %0, %0 : tensor<?x8xf32>, tensor<?x8xf32>
    nn.loss %s, %n, %0 : tensor<?x8xf32>
  }
}

// -----

module attributes {train.batch = 3 : i64} {
  nn.module @part(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    nn.return %x : tensor<?x4xf32>
  }
  nn.model @instances(%x: tensor<?x4xf32> {nn.role = "data"}) {
    // expected-error @+1 {{is still here; run inline-modules first}}
    %0 = nn.instantiate @part as "p" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %s, %n = nn.mse %0, %0 : tensor<?x4xf32>, tensor<?x4xf32>
    nn.loss %s, %n, %0 : tensor<?x4xf32>
  }
}
