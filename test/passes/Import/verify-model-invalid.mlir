// RUN: descent-opt --verify-model -verify-diagnostics -split-input-file %s

// expected-error @+1 {{no nn.model to train}}
module {
}

// -----

nn.module @part(%x: tensor<2x4xf32>) -> tensor<2x4xf32> { // expected-error {{may not stand beside nn.model here; run inline-modules first}}
  nn.return %x : tensor<2x4xf32>
}

// -----

nn.model @first(%x: tensor<2x4xf32> {nn.role = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}
// expected-error @+1 {{is a second model; a program trains one}}
nn.model @second(%x: tensor<2x4xf32> {nn.role = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{input 0 is 'tensor<?x4xf32>'; run bind-batch first}}
nn.model @unbound(%x: tensor<?x4xf32> {nn.role = "data"}) {
  %s, %n = nn.mse %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %x : tensor<?x4xf32>
}

// -----

nn.model @gradient(%x: tensor<2x4xf32> {nn.role = "data"}) {
  // expected-error @+1 {{is created by differentiation and may not stand in a model}}
  %0 = nn.gelu_grad %x erf : tensor<2x4xf32>
  %s, %n = nn.mse %0, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}

// -----

nn.model @foreign(%x: tensor<2x4xf32> {nn.role = "data"}) {
  // expected-error @+1 {{does not belong into a model, which holds nn ops only}}
  %0 = math.exp %x : tensor<2x4xf32>
  %s, %n = nn.mse %0, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %x : tensor<2x4xf32>
}

// -----

// All parameters without effect are named at once.
nn.model @idle(%x: tensor<2x4xf32> {nn.role = "data"}) {
  // expected-error @+1 {{'unused' is never used; remove it, or use it}}
  %u = nn.parameter "unused" zeros : tensor<4xf32>
  // expected-error @+1 {{'aside' has no path to the loss, so it would never change; use it, or mark it frozen}}
  %a = nn.parameter "aside" zeros : tensor<4xf32>
  %0 = nn.add %x, %a : tensor<2x4xf32>, tensor<4xf32>
  %s, %n = nn.mse %x, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %0 : tensor<2x4xf32>
}

// -----

nn.model @weight(%x: tensor<2x3xf32> {nn.role = "data"}, %t: tensor<2xi32> {nn.role = "target"}) {
  // expected-error @+1 {{'classes' changes the weight that the loss is divided by, whose gradient is not taken; mark it frozen}}
  %c = nn.parameter "classes" ones : tensor<3xf32>
  %s, %n = nn.cross_entropy %x, %t class_weights %c : tensor<3xf32> : tensor<2x3xf32>, tensor<2xi32>
  nn.loss %s, %n, %x : tensor<2x3xf32>
}
