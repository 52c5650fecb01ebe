// RUN: descent-opt --bound-inputs -verify-diagnostics -split-input-file %s

nn.model @computed(%i: tensor<2xi32> {nn.role = "data"}, %t: tensor<2xi32> {nn.role = "target"}) {
  %w = nn.parameter "w" zeros : tensor<5x4xf32>
  // expected-note @+1 {{computed here}}
  %0 = nn.add %i, %i : tensor<2xi32>, tensor<2xi32>
  // expected-error @+1 {{indexes with computed integers, whose range cannot be checked before the step; they must be an input of the model, at most reshaped, transposed, sliced or split}}
  %1 = nn.embedding %0, %w : tensor<2xi32>, tensor<5x4xf32>
  %s, %n = nn.cross_entropy %1, %t : tensor<2x4xf32>, tensor<2xi32>
  nn.loss %s, %n, %1 : tensor<2x4xf32>
}

// -----

nn.model @too_many(%x: tensor<6x4xf32> {nn.role = "data"}) {
  %w = nn.parameter "w" zeros : tensor<5x4xf32>
  %0 = nn.iota [6] axis 0 i32
  // expected-error @+1 {{indexes with 5, outside of [-5, 5)}}
  %1 = nn.embedding %0, %w : tensor<6xi32>, tensor<5x4xf32>
  %s, %n = nn.mse %1, %x : tensor<6x4xf32>, tensor<6x4xf32>
  nn.loss %s, %n, %1 : tensor<6x4xf32>
}

// -----

nn.model @literal(%x: tensor<2x4xf32> {nn.role = "data"}) {
  %w = nn.parameter "w" zeros : tensor<5x4xf32>
  %0 = nn.constant dense<[1, -6]> : tensor<2xi32>
  // expected-error @+1 {{indexes with -6, outside of [-5, 5)}}
  %1 = nn.embedding %0, %w : tensor<2xi32>, tensor<5x4xf32>
  %s, %n = nn.mse %1, %x : tensor<2x4xf32>, tensor<2x4xf32>
  nn.loss %s, %n, %1 : tensor<2x4xf32>
}
