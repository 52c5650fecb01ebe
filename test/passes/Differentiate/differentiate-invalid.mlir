// What cannot be differentiated is refused with the op and its types, all such ops at once.
// RUN: descent-opt --differentiate --split-input-file --verify-diagnostics %s

// Rounding to an integer cuts the parameter off from the loss.
nn.model @cut(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"}) {
  // expected-error @+1 {{parameter 'w' has no path to the loss}}
  %w = nn.parameter "w" ones : tensor<4xf32>
  %i = nn.cast %w to i32 : tensor<4xf32>
  %f = nn.cast %i to f32 : tensor<4xi32>
  %y = nn.mul %x, %f : tensor<5x4xf32>, tensor<4xf32>
  %sum, %weight = nn.mse %y, %t : tensor<5x4xf32>, tensor<5x4xf32>
  nn.loss %sum, %weight, %y : tensor<5x4xf32>
}

// -----

// expected-error @+1 {{differentiate needs exactly one nn.model}}
module {
}
