// What modules, the model, instances and parameters refuse, by the label of the constraint in their descriptions.
// RUN: descent-opt -verify-diagnostics -split-input-file %s

// nn.module C1
// expected-error @+1 {{argument 0 is 'tensor<4x?xf32>' with '?' on axis 1; '?' is the batch and only ever the leading axis}}
nn.module @m(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  nn.return %x : tensor<4x?xf32>
}

// -----

// nn.module C1
// expected-error @+1 {{argument 0 is 'tensor<4xf64>'; arguments are ranked tensors of f32, bf16, f16, i32, i64 or i1}}
nn.module @m(%x: tensor<4xf64>, %y: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %y : tensor<4xf32>
}

// -----

// nn.module C2
// expected-error @+1 {{yields nothing; declare results with -> and return them with nn.return}}
nn.module @m(%x: tensor<4xf32>) {
  nn.return
}

// -----

// nn.module C3
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the first is here}}
  %a = nn.parameter "w" zeros : tensor<4xf32>
  // expected-error @+1 {{a second parameter named 'w'; names must be unique (to share one parameter, use its value twice)}}
  %b = nn.parameter "w" zeros : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.module C3
nn.module @part(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %x : tensor<4xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the first is here}}
  %0 = nn.instantiate @part as "p" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{a second instance named 'p'; names must be unique}}
  %1 = nn.instantiate @part as "p" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.return C1
// expected-note @+1 {{declared here}}
nn.module @m(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{returns ('tensor<4xf32>') but nn.module @m declares ('tensor<8xf32>')}}
  nn.return %x : tensor<4xf32>
}

// -----

// nn.model C3
// expected-error @+1 {{argument 0 has no role; write {nn.role = "data"} or {nn.role = "target"}}}
nn.model @m(%x: tensor<?x4xf32>) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

// nn.model C3
// expected-error @+1 {{argument 0 has the unknown role 'input'; roles are data, target, and (added by attach-row-weights) row_weights and rng}}
nn.model @m(%x: tensor<?x4xf32> {nn.role = "input"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

// nn.model C3
// expected-error @+1 {{argument 0 has an unknown attribute 'nn.rol'; known are nn.name, nn.role and (added by bound-inputs) nn.range and nn.ignore_index}}
nn.model @m(%x: tensor<?x4xf32> {nn.rol = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

// nn.model C4
// expected-error @+1 {{has no input of role "data"; there is nothing to learn from}}
nn.model @m(%x: tensor<?x4xf32> {nn.role = "target"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

// nn.model C5
nn.model @m(%x: tensor<?x4xf32> {nn.role = "data"}) {
  // expected-note @+1 {{the first is here}}
  %a = nn.parameter "w" zeros : tensor<4xf32>
  // expected-error @+1 {{a second parameter named 'w'}}
  %b = nn.parameter "w" zeros : tensor<4xf32>
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

// nn.instantiate C1
nn.module @attention(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %x : tensor<4xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{no nn.module @atention in this file; did you mean @attention?}}
  %0 = nn.instantiate @atention as "p" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.instantiate C2
nn.module @part(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %x : tensor<4xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs a name; it prefixes the names of the parameters inside}}
  %0 = nn.instantiate @part as "" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.instantiate C3
// expected-note @+1 {{@part is here}}
nn.module @part(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %x : tensor<4xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{passes 2 operands; @part takes 1}}
  %0 = nn.instantiate @part as "p" (%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.instantiate C3
// expected-note @+1 {{@part is here}}
nn.module @part(%x: tensor<8xf32>) -> tensor<8xf32> {
  nn.return %x : tensor<8xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{operand 0 is 'tensor<4xf32>' but @part takes 'tensor<8xf32>'; modules take one shape: change the argument, or nn.reshape or nn.cast the operand}}
  %0 = nn.instantiate @part as "p" (%x) : (tensor<4xf32>) -> tensor<8xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.instantiate C4
// expected-note @+1 {{@part is here}}
nn.module @part(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.return %x : tensor<4xf32>
}
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{results are ('tensor<8xf32>') but @part yields ('tensor<4xf32>')}}
  %0 = nn.instantiate @part as "p" (%x) : (tensor<4xf32>) -> tensor<8xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.instantiate C5, through another module. A cycle is reported once.
// expected-note @+1 {{@b is here}}
nn.module @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.instantiate @a as "a" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  nn.return %0 : tensor<4xf32>
}
nn.module @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{@a contains an instance of itself through @b; modules are inlined, so they cannot recur}}
  %0 = nn.instantiate @b as "b" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  nn.return %0 : tensor<4xf32>
}

// -----

// nn.parameter C1
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs a name; it is how recipes, checkpoints and messages call it}}
  %w = nn.parameter "" zeros : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.parameter C2
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'w' is 'tensor<?xf32>'; a parameter's sizes must be known: it does not depend on the batch}}
  %w = nn.parameter "w" zeros : tensor<?xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.parameter C2
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'w' is 'tensor<0xf32>', which holds no elements}}
  %w = nn.parameter "w" zeros : tensor<0xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.parameter C3
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'w' has mean 0.000000e+00 and standard deviation -1.000000e+00; both must be finite and the deviation not negative}}
  %w = nn.parameter "w" normal(0.0, -1.0) : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.parameter C3
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'w' is uniform in [1.000000e+00, 0.000000e+00); the bounds must be finite and in order}}
  %w = nn.parameter "w" uniform(1.0, 0.0) : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// An initialiser is one of five words.
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{unknown initialiser 'norml'; known are zeros, ones, constant(value), normal(mean, deviation) and uniform(low, high)}}
  %w = nn.parameter "w" norml(0.0, 1.0) : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}
