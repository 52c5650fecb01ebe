// What later phases rely on is refused here when it is missing, with the op that is wrong.
// RUN: descent-opt --verify-train --split-input-file --verify-diagnostics %s

// expected-error @+1 {{train.func @step is missing}}
module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  // expected-error @+1 {{changes no state: train.commit is missing}}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    // expected-error @+1 {{is left over; insert-optimizer consumes it}}
    train.gradient @w, %dw : tensor<3xf32>
    train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    // expected-error @+1 {{must be the one commit, right before train.return}}
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w] with (%dw) scale %weight rate %weight count %weight by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
    }
    %0 = train.read @w : tensor<3xf32>
    train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w] with (%dw) scale %weight rate %weight count %weight by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
      // expected-error @+1 {{updates @w a second time}}
      train.update "all" [@w] with (%dw) scale %weight rate %weight count %weight by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
    }
    train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  // expected-error @+1 {{'v' is trainable but no train.update changes it}}
  train.parameter @v : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w] with (%dw) scale %weight rate %weight count %weight by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
    }
    train.return ["loss_sum", "loss_weight", "grad_norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%sum: tensor<f32>, %weight: tensor<f32>, %dw: tensor<3xf32>, %ok: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) {
    train.commit if %ok : tensor<i1> {
      train.update "all" [@w] with (%dw) scale %weight rate %weight count %weight by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
    }
    // expected-error @+1 {{of @step must return loss_sum, loss_weight, grad_norm, learning_rate, committed}}
    train.return ["loss_sum", "loss_weight", "norm", "learning_rate", "committed"] %sum, %weight, %sum, %sum, %ok : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>
  }
  train.func @evaluate(%sum: tensor<f32>, %weight: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    train.return ["loss_sum", "loss_weight", "predictions"] %sum, %weight, %sum : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
