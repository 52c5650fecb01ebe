// What reductions, row ops, losses and products refuse, by the label of the constraint in their descriptions.
// RUN: descent-opt -verify-diagnostics -split-input-file %s

// nn.reduce_sum C1
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{axis 2 of 'tensor<2x6xf32>'; it must be in [-2, 2)}}
  %0 = nn.reduce_sum %x [2] : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.reduce_sum C1: an axis and its negative twin are one
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{axis 1 of 'tensor<2x6xf32>' is named twice in [1, -1]}}
  %0 = nn.reduce_sum %x [1, -1] : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.reduce_mean C2
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot reduce the batch '?' of 'tensor<?x6xf32>': padding rows of a last, smaller batch would count; the losses (nn.cross_entropy, nn.mse) reduce it with weights}}
  %0 = nn.reduce_mean %x [0] : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.softmax C1
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{axis -3 of 'tensor<2x6xf32>'; it must be in [-2, 2)}}
  %0 = nn.softmax %x axis -3 : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.log_softmax C2
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot normalise over the batch '?' of 'tensor<?x6xf32>'; choose an axis of the sample}}
  %0 = nn.log_softmax %x axis 0 : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.layer_norm C1
nn.module @m(%x: tensor<?xf32>, %g: tensor<1xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'tensor<?xf32>' has no last axis of known size to normalise}}
  %0 = nn.layer_norm %x, %g, %g : tensor<?xf32>, tensor<1xf32>, tensor<1xf32>
  nn.return %x : tensor<?xf32>
}

// -----

// nn.layer_norm C2
nn.module @m(%x: tensor<2x6xf32>, %g: tensor<6xbf16>) -> tensor<2x6xf32> {
  // expected-error @+1 {{element types differ: x is 'tensor<2x6xf32>' and gain is 'tensor<6xbf16>'; nn.cast one of them to the other's}}
  %0 = nn.layer_norm %x, %g, %g : tensor<2x6xf32>, tensor<6xbf16>, tensor<6xbf16>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.layer_norm C3
nn.module @m(%x: tensor<2x6xf32>, %g: tensor<6xf32>, %b: tensor<2xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{bias is 'tensor<2xf32>' but the last axis of x, 'tensor<2x6xf32>', has 6 elements; make it 'tensor<6xf32>'}}
  %0 = nn.layer_norm %x, %g, %b : tensor<2x6xf32>, tensor<6xf32>, tensor<2xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.layer_norm C4
nn.module @m(%x: tensor<2x6xf32>, %g: tensor<6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{epsilon -1.000000e+00; it must be finite and not negative}}
  %0 = nn.layer_norm %x, %g, %g {epsilon = -1.0} : tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.dropout C1
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{rate 1.000000e+00; it is the share of elements that are dropped, in [0, 1)}}
  %0 = nn.dropout %x {rate = 1.0} : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.dropout C2
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{has an id but no rng; attach-row-weights adds both, a model file has neither}}
  %0 = nn.dropout %x {rate = 0.5, id = 1 : i64} : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.dropout C3
nn.module @m(%x: tensor<2x6xf32>, %r: tensor<4xi32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{id -1; ids are not negative}}
  %0 = nn.dropout %x rng %r {rate = 0.5, id = -1 : i64} : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.cross_entropy C1
nn.module @m(%x: tensor<6xf32>, %t: tensor<i32>) -> tensor<6xf32> {
  // expected-error @+1 {{logits are 'tensor<6xf32>'; they must be [batch, ..., classes]}}
  %0, %1 = nn.cross_entropy %x, %t : tensor<6xf32>, tensor<i32>
  nn.return %x : tensor<6xf32>
}

// -----

// nn.cross_entropy C2
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2xi32>, %c: tensor<5xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{class_weights is 'tensor<5xf32>' but logits 'tensor<2x6xf32>' have 6 classes; it must hold one weight a class}}
  %0, %1 = nn.cross_entropy %x, %t class_weights %c : tensor<5xf32> : tensor<2x6xf32>, tensor<2xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.cross_entropy C3
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2x6xi32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{targets are 'tensor<2x6xi32>' but logits 'tensor<2x6xf32>' ask for shape [2]: one class number for each row of scores over the last axis}}
  %0, %1 = nn.cross_entropy %x, %t : tensor<2x6xf32>, tensor<2x6xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.cross_entropy C4
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2xi32>, %w: tensor<3xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{row_weights is 'tensor<3xf32>' but the leading axis of logits, 'tensor<2x6xf32>', is 2; it must hold one weight a row}}
  %0, %1 = nn.cross_entropy %x, %t row_weights %w : tensor<3xf32> : tensor<2x6xf32>, tensor<2xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.cross_entropy C5
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2xi32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{label_smoothing 1.500000e+00; it is the share taken from the target class, in [0, 1]}}
  %0, %1 = nn.cross_entropy %x, %t {label_smoothing = 1.5} : tensor<2x6xf32>, tensor<2xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.mse C1
nn.module @m(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{predictions are 'tensor<f32>'; they must be [batch, ...]}}
  %0, %1 = nn.mse %x, %x : tensor<f32>, tensor<f32>
  nn.return %x : tensor<f32>
}

// -----

// nn.mse C2
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2x6xbf16>) -> tensor<2x6xf32> {
  // expected-error @+1 {{element types differ: predictions is 'tensor<2x6xf32>' and targets is 'tensor<2x6xbf16>'; nn.cast one of them to the other's}}
  %0, %1 = nn.mse %x, %t : tensor<2x6xf32>, tensor<2x6xbf16>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.mse C3
nn.module @m(%x: tensor<2x6xf32>, %t: tensor<2x1xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{predictions are 'tensor<2x6xf32>' and targets 'tensor<2x1xf32>'; the shapes must be equal (nothing broadcasts in a loss: nn.reshape or nn.broadcast one of them)}}
  %0, %1 = nn.mse %x, %t : tensor<2x6xf32>, tensor<2x1xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.matmul C1
nn.module @m(%x: tensor<2x6xf32>, %y: tensor<6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{a is 'tensor<2x6xf32>' and b is 'tensor<6xf32>'; both need at least two axes (nn.reshape a vector to a row or a column)}}
  %0 = nn.matmul %x, %y : tensor<2x6xf32>, tensor<6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.matmul C2
nn.module @m(%x: tensor<2x6xf32>, %y: tensor<6x4xbf16>) -> tensor<2x6xf32> {
  // expected-error @+1 {{element types differ: a is 'tensor<2x6xf32>' and b is 'tensor<6x4xbf16>'; nn.cast one of them to the other's}}
  %0 = nn.matmul %x, %y : tensor<2x6xf32>, tensor<6x4xbf16>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.matmul C3, with the cure that fits
nn.module @m(%x: tensor<2x6xf32>, %y: tensor<4x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{inner dimensions differ: 6 (axis 1 of a, 'tensor<2x6xf32>') and 4 (axis 0 of b, 'tensor<4x6xf32>'); transpose_b would make them 6 and 6}}
  %0 = nn.matmul %x, %y : tensor<2x6xf32>, tensor<4x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.matmul C3, where a flag is one too many
nn.module @m(%x: tensor<2x6xf32>, %y: tensor<6x4xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{inner dimensions differ: 6 (axis 1 of a, 'tensor<2x6xf32>') and 4 (axis 1 of b, 'tensor<6x4xf32>'); without transpose_b they would be 6 and 6}}
  %0 = nn.matmul %x, %y {transpose_b} : tensor<2x6xf32>, tensor<6x4xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.matmul C4
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot sum over the batch '?' (axis 0 of a, 'tensor<?x6xf32>'): padding rows of a last, smaller batch would count}}
  %0 = nn.matmul %x, %x {transpose_a} : tensor<?x6xf32>, tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.matmul C5
nn.module @m(%x: tensor<2x6x4xf32>, %y: tensor<3x4x5xf32>) -> tensor<2x6x4xf32> {
  // expected-error @+1 {{batch axes differ: [2] of a, 'tensor<2x6x4xf32>', and [3] of b, 'tensor<3x4x5xf32>'; they must be equal, or b of rank 2 (nn.broadcast repeats a matrix)}}
  %0 = nn.matmul %x, %y : tensor<2x6x4xf32>, tensor<3x4x5xf32>
  nn.return %x : tensor<2x6x4xf32>
}

// -----

// nn.matmul C6
nn.module @m(%x: tensor<2x6x4xf32>, %y: tensor<6x5xf32>) -> tensor<2x6x4xf32> {
  // expected-error @+1 {{transpose_a on a of rank 3, 'tensor<2x6x4xf32>', with b of rank 2, 'tensor<6x5xf32>': the matrices of a are stored apart; nn.transpose a instead}}
  %0 = nn.matmul %x, %y {transpose_a} : tensor<2x6x4xf32>, tensor<6x5xf32>
  nn.return %x : tensor<2x6x4xf32>
}

// -----

// nn.conv2d C1
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{strides [1] must be 2 numbers of at least 1: [vertical, horizontal]}}
  %0 = nn.conv2d %x, %k strides [1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d C1
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{padding [0, -1, 0, 0] must be 4 numbers of at least 0: [top, bottom, left, right]}}
  %0 = nn.conv2d %x, %k strides [1, 1] padding [0, -1, 0, 0] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d C2
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xbf16>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{element types differ: x is 'tensor<2x8x8x3xf32>' and w is 'tensor<3x3x3x5xbf16>'}}
  %0 = nn.conv2d %x, %k strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xbf16>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d C3
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{images [2, 8, 8, 3] and weights [3, 3]; they must be [N, H, W, C] and [KH, KW, C, output channels]}}
  %0 = nn.conv2d %x, %k strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d C3
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x4x5xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{images [2, 8, 8, 3] have 3 channels (axis 3) but weights [3, 3, 4, 5] take 4 (axis 2)}}
  %0 = nn.conv2d %x, %k strides [1, 1] padding [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x4x5xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d C4
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{a window of 9 rows does not fit into an image of 8 and padding of 0; use a smaller kernel or more padding}}
  %0 = nn.conv2d %x, %k strides [1, 1] padding [0, 0, 0, 0] dilations [4, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.conv2d_grad_input C5
nn.module @m(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{dy is 'tensor<2x8x8x3xf32>' but the forward op yields [2, 8, 8, 5]}}
  %0 = nn.conv2d_grad_input %x, %k strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] input [2, 8, 8, 3] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.max_pool2d C2
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{images are 'tensor<2x6xf32>'; they must be [N, H, W, C]}}
  %0 = nn.max_pool2d %x kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.max_pool2d C3
nn.module @m(%x: tensor<2x8x8x3xf32>) -> tensor<2x8x8x3xf32> {
  // expected-error @+1 {{padding [2, 0, 0, 0] with kernel [2, 2]: a window could hold nothing but padding; padding must be smaller than the kernel}}
  %0 = nn.max_pool2d %x kernel [2, 2] strides [2, 2] padding [2, 0, 0, 0] : tensor<2x8x8x3xf32>
  nn.return %x : tensor<2x8x8x3xf32>
}

// -----

// nn.embedding C1
nn.module @m(%x: tensor<2xi32>, %t: tensor<4xf32>) -> tensor<2xi32> {
  // expected-error @+1 {{table is 'tensor<4xf32>'; it must be [rows, width]}}
  %0 = nn.embedding %x, %t : tensor<2xi32>, tensor<4xf32>
  nn.return %x : tensor<2xi32>
}

// -----

// nn.embedding_grad C1
nn.module @m(%x: tensor<2x6xf32>, %i: tensor<3xi32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{dy is 'tensor<2x6xf32>' but indices 'tensor<3xi32>' ask for one row of gradients each}}
  %0 = nn.embedding_grad %x, %i rows 9 : tensor<2x6xf32>, tensor<3xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.embedding_grad C2
nn.module @m(%x: tensor<2x6xf32>, %i: tensor<2xi32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{a table of 0 rows; at least one}}
  %0 = nn.embedding_grad %x, %i rows 0 : tensor<2x6xf32>, tensor<2xi32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.attention C1
nn.module @m(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{q is 'tensor<2x6xf32>'; it must be [batch, time, heads * width]}}
  %0 = nn.attention %x, %x, %x heads 2 : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
  nn.return %x : tensor<2x6xf32>
}

// -----

// nn.attention C2
nn.module @m(%x: tensor<2x6x4xf32>, %y: tensor<2x5x4xf32>) -> tensor<2x6x4xf32> {
  // expected-error @+1 {{q is 'tensor<2x6x4xf32>' and k is 'tensor<2x5x4xf32>'; the types must be equal}}
  %0 = nn.attention %x, %y, %x heads 2 : tensor<2x6x4xf32>, tensor<2x5x4xf32>, tensor<2x6x4xf32>
  nn.return %x : tensor<2x6x4xf32>
}

// -----

// nn.attention C3
nn.module @m(%x: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  // expected-error @+1 {{3 heads do not divide the 4 elements of the last axis of q, 'tensor<2x6x4xf32>'}}
  %0 = nn.attention %x, %x, %x heads 3 : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  nn.return %x : tensor<2x6x4xf32>
}

// -----

// nn.attention_grad C4
nn.module @m(%x: tensor<2x6x4xf32>, %l: tensor<2x6xf32>) -> tensor<2x6x4xf32> {
  // expected-error @+1 {{logsumexp is 'tensor<2x6xf32>'; nn.attention with save_logsumexp yields 'tensor<2x2x6xf32>'}}
  %0, %1, %2 = nn.attention_grad %x, %x, %x, %x, %x, %l heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6xf32>
  nn.return %x : tensor<2x6x4xf32>
}
