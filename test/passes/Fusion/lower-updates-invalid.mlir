// Most of what the pass could not lower is refused by the ops; gradients of one group under several factors it refuses itself.
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

// -----

// One slab cannot be unscaled by two factors.
train.parameter @w : tensor<4xf32> {init = #nn.constant<1.0>}
train.parameter @v : tensor<4xf32> {init = #nn.constant<1.0>}
train.func @step(%dw: tensor<4xf32>, %dv: tensor<4xf32>, %f: tensor<f32>, %g: tensor<f32>, %ok: tensor<i1>) {
  %0 = train.unscale %dw by %f : tensor<4xf32>
  %1 = train.unscale %dv by %g : tensor<4xf32>
  train.commit if %ok : tensor<i1> {
    // expected-error@+1 {{'train.update' op has gradients unscaled by different factors; insert-loss-scaling gives all gradients of a step one}}
    train.update "a" [@w, @v] with (%0, %1) scale %f rate %f count %f by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<4xf32>, tensor<4xf32>
  }
  train.return []
}
