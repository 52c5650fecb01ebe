// RUN: descent-opt --insert-optimizer --split-input-file --verify-diagnostics %s

// A pattern that matches nothing is a misspelling, not a wish.
// expected-error @+1 {{optimizer group 'heads.*' matches no parameter}}
module attributes {
  train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>,
  train.groups = [#train.group<match = "heads.*", rate_scale = 0.5, weight_decay = 0.0>]
} {
  train.parameter @head.w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    train.gradient @head.w, %dw : tensor<3xf32>
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// -----

// expected-error @+1 {{insert-optimizer needs the module attributes train.optimizer}}
module {
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {train.optimizer = #train.sgd<momentum = 0.0, nesterov = false>, train.schedule = #train.constant<rate = 0.1, warmup = 0>} {
  // expected-error @+1 {{has no train.gradient: nothing to train}}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight"] %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// -----

// expected-error @+1 {{insert-optimizer needs train.func @step}}
module {
}
