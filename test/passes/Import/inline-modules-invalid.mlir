// Names that are unique in their own module may clash once inlined.
// RUN: descent-opt --inline-modules -verify-diagnostics %s

nn.module @linear(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is named 'a.w' once its instances are inlined, but so is another; rename the parameter or the instance}}
  %w = nn.parameter "w" zeros : tensor<4xf32>
  %y = nn.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  nn.return %y : tensor<?x4xf32>
}
nn.model @m(%x: tensor<?x4xf32> {nn.role = "data"}, %t: tensor<?x4xf32> {nn.role = "target"}) {
  // expected-note @+1 {{the other is here}}
  %w = nn.parameter "a.w" zeros : tensor<4xf32>
  %0 = nn.instantiate @linear as "a" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = nn.mul %0, %w : tensor<?x4xf32>, tensor<4xf32>
  %s, %n = nn.mse %1, %t : tensor<?x4xf32>, tensor<?x4xf32>
  nn.loss %s, %n, %1 : tensor<?x4xf32>
}
