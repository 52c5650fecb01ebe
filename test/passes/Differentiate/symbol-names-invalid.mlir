// Names that training adds may be names of the model's parameters: each pass that declares one says which parameter to rename.
// RUN: descent-opt --keep-working-copies --insert-optimizer --insert-loss-scaling --lower-updates --split-input-file --verify-diagnostics %s

module attributes {train.optimizer = #train.sgd<momentum = 0.9, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>} {
  train.parameter @w : tensor<4xf32> {init = #nn.constant<1.0>}
  // expected-error@+1 {{parameter 'w.momentum' has the name that training gives to the state of 'w'; rename the parameter}}
  train.parameter @w.momentum : tensor<4xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    train.gradient @w, %dw : tensor<4xf32>
    train.gradient @w.momentum, %dw : tensor<4xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>} {
  // expected-error@+1 {{parameter 'updates' has the name that training gives to the number of updates; rename the parameter}}
  train.parameter @updates : tensor<4xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    train.gradient @updates, %dw : tensor<4xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>,
                   train.loss_scale = #train.static_scale<scale = 8.0>} {
  // expected-error@+1 {{parameter 'loss_scale' has the name that training gives to a state of the loss scale; rename the parameter}}
  train.parameter @loss_scale : tensor<4xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %seed = train.seed
    train.gradient @loss_scale, %dw : tensor<4xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %seed : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>} {
  train.parameter @w : tensor<4xf32> {init = #nn.constant<1.0>}
  // expected-error@+1 {{parameter 'w.bf16' has the name that training gives to the working copy of 'w'; rename the parameter}}
  train.parameter @w.bf16 : tensor<4xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>) -> tensor<4xbf16> {
    %0 = train.read @w : tensor<4xf32>
    %1 = nn.cast %0 to bf16 : tensor<4xf32>
    train.return ["a"] %1 : tensor<4xbf16>
  }
}

// -----

module attributes {train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>} {
  // expected-error@+1 {{parameter 'no_decay.parameters' has the name that training gives to a slab of the group 'no_decay'; rename the parameter}}
  train.parameter @no_decay.parameters : tensor<4xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %seed = train.seed
    train.gradient @no_decay.parameters, %dw : tensor<4xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %seed : tensor<f32>, tensor<f32>
  }
}
