// What the dialect's verifiers refuse, each with what is wrong and, where there is one, the cure.
// RUN: descent-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{must end in train.return}}
train.func @step(%x: tensor<f32>) -> tensor<f32> {
  llvm.unreachable
}

// -----

train.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{returns types other than those of the function's signature}}
  train.return ["a", "b"] %x, %x : tensor<f32>, tensor<f32>
}

// -----

train.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{has 2 names for 1 values}}
  train.return ["a", "b"] %x : tensor<f32>
}

// -----

train.func @step() -> tensor<f32> {
  // expected-error @+1 {{names @w, which is no parameter, state, working copy or slab of this module}}
  %0 = train.read @w : tensor<f32>
  train.return ["a"] %0 : tensor<f32>
}

// -----

train.func private @other(%x: tensor<f32>) -> tensor<f32> {
  train.return ["a"] %x : tensor<f32>
}
train.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{names @other, which is no parameter, state, working copy or slab of this module}}
  train.write @other, %x : tensor<f32>
  train.return ["a"] %x : tensor<f32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has type 'tensor<4xf32>' but @w is declared 'tensor<3xf32>'}}
  train.gradient @w, %x : tensor<4xf32>
  train.return ["a"] %x : tensor<4xf32>
}

// -----

train.parameter @w : tensor<1x1024xf32> {init = #nn.constant<1.0>}
train.func @step(%x: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
  // expected-error @+1 {{@w is not a train.slab}}
  %0 = train.pack @w(%x) : (tensor<1x1024xf32>) -> tensor<1x1024xf32>
  train.return ["a"] %0 : tensor<1x1024xf32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.slab @g "gradients" [@w] at [0] : tensor<1x1024xf32>
train.func @step(%x: tensor<3xf32>) -> tensor<1x1024xf32> {
  // expected-error @+1 {{packs 2 tensors into a slab of 1 members}}
  %0 = train.pack @g(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<1x1024xf32>
  train.return ["a"] %0 : tensor<1x1024xf32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.slab @g "gradients" [@w] at [0] : tensor<1x1024xf32>
train.func @step(%x: tensor<4xf32>) -> tensor<1x1024xf32> {
  // expected-error @+1 {{has type 'tensor<4xf32>' but @w is declared 'tensor<3xf32>'}}
  %0 = train.pack @g(%x) : (tensor<4xf32>) -> tensor<1x1024xf32>
  train.return ["a"] %0 : tensor<1x1024xf32>
}

// -----

train.func @step(%x: tensor<2xi1>) -> tensor<2xi1> {
  // expected-error @+1 {{condition must be tensor<i1>, not 'tensor<2xi1>'}}
  train.commit if %x : tensor<2xi1> {
  }
  train.return ["a"] %x : tensor<2xi1>
}

// -----

train.func @step(%x: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
  train.commit if %ok : tensor<i1> {
    // expected-error @+1 {{cannot stand in train.commit; only train.update and train.write change state}}
    %0 = nn.neg %x : tensor<f32>
  }
  train.return ["a"] %x : tensor<f32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.func @step(%x: tensor<3xf32>, %s: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
  train.commit if %ok : tensor<i1> {
    // expected-error @+1 {{has 2 gradients for 1 parameters}}
    train.update "all" [@w] with (%x, %x) scale %s rate %s count %s by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>, tensor<3xf32>
  }
  train.return ["a"] %s : tensor<f32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.func @step(%x: tensor<3xf32>, %s: tensor<f32>, %ok: tensor<i1>) -> tensor<f32> {
  train.commit if %ok : tensor<i1> {
    // expected-error @+1 {{is not an update rule; use #train.sgd or #train.adam}}
    train.update "all" [@w] with (%x) scale %s rate %s count %s by "adam" decay 0.0 : tensor<3xf32>
  }
  train.return ["a"] %s : tensor<f32>
}

// -----

train.parameter @w : tensor<3xf32> {init = #nn.constant<1.0>}
train.func @step(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{expects parent op 'train.commit'}}
  train.update "all" [@w] with (%x) scale %s rate %s count %s by #train.sgd<momentum = 0.0, nesterov = false> decay 0.0 : tensor<3xf32>
  train.return ["a"] %s : tensor<f32>
}

// -----

train.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{expects parent op 'builtin.module'}}
  train.state @s : tensor<f32>
  train.return ["a"] %x : tensor<f32>
}
