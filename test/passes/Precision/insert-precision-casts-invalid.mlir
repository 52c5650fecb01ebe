// RUN: descent-opt --insert-precision-casts --split-input-file --verify-diagnostics %s

// expected-error@+1 {{precision.override.0 (op = "conv2d", match = "") matches no op of the model; `descent plan` lists them with their names}}
module attributes {train.compute = bf16, train.overrides = [#train.override<op = "conv2d", match = "", type = f32>]} {
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"}) {
    %sum, %weight = nn.mse %x, %t : tensor<5x4xf32>, tensor<5x4xf32>
    nn.loss %sum, %weight, %x : tensor<5x4xf32>
  }
}

// -----

// expected-error@+1 {{train.compute is 'i8'; it must be f32, bf16 or f16}}
module attributes {train.compute = i8} {
  nn.model @m(%x: tensor<5x4xf32> {nn.role = "data"}, %t: tensor<5x4xf32> {nn.role = "target"}) {
    %sum, %weight = nn.mse %x, %t : tensor<5x4xf32>, tensor<5x4xf32>
    nn.loss %sum, %weight, %x : tensor<5x4xf32>
  }
}
