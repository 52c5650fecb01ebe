// A complete training program passes unchanged.
// RUN: descent-opt --verify-train %s | FileCheck %s

// CHECK: train.commit if
module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.state @updates : tensor<i64>
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
