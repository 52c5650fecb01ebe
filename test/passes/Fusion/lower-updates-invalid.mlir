// The pass itself refuses nothing; what it could not lower is refused by the ops.
// RUN: descent-opt --lower-updates --split-input-file --verify-diagnostics %s

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%dw: tensor<3xf32>, %s: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
    train.commit if %ok : tensor<i1> {
      // expected-error @+1 {{is not an update rule; use #train.sgd or #train.adam}}
      train.update "all" [@w] with (%dw) scale %s rate %s count %s by 1.0 : f64 decay 0.0 : tensor<3xf32>
    }
    train.return ["s"] %s : tensor<f32>
  }
}

// -----

module {
  train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
  train.func @step(%dw: tensor<4xf32>, %s: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
    train.commit if %ok : tensor<i1> {
      // expected-error @+1 {{has type 'tensor<4xf32>' but @w is declared 'tensor<3xf32>'}}
      train.update "all" [@w] with (%dw) scale %s rate %s count %s by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<4xf32>
    }
    train.return ["s"] %s : tensor<f32>
  }
}

// -----

module {
  train.func @step(%s: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
    train.commit if %ok : tensor<i1> {
      // expected-error @+1 {{cannot stand in train.commit; only train.update and train.write change state}}
      %0 = nn.neg %s : tensor<f32>
    }
    train.return ["s"] %s : tensor<f32>
  }
}

// -----

module {
  train.func @step(%s: tensor<f32>) -> tensor<f32> {
    // expected-error @+1 {{names @nowhere, which is no parameter, state, working copy or slab of this module}}
    %0 = train.read @nowhere : tensor<f32>
    train.return ["s"] %s : tensor<f32>
  }
}
