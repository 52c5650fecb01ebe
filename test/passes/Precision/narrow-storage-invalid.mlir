// RUN: descent-opt --narrow-storage --split-input-file --verify-diagnostics %s

module attributes {train.storage = #train.storage<master = false, state = f32, stochastic = true>} {
  train.parameter @w : tensor<4x3xf32> {init = #nn.constant<1.0>}
  // expected-error@+1 {{'w.f16' is 'tensor<4x3xf16>', but without masters parameters are kept in bf16; use precision.compute = "bf16" or precision.master = true}}
  train.working_copy @w.f16 of @w : tensor<4x3xf16>
  train.func @step() {
    train.return []
  }
}

// -----

// expected-error@+1 {{narrow-storage needs train.func @step; run insert-optimizer first}}
module attributes {train.storage = #train.storage<master = false, state = f32, stochastic = true>} {
}
