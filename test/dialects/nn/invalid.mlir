// What the ops refuse, by the label of the constraint in their descriptions.
// RUN: descent-opt -verify-diagnostics -split-input-file %s

// nn.neg C1
nn.module @m(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{has no meaning for booleans ('tensor<4xi1>'); nn.cast to i32 first}}
  %0 = nn.neg %x : tensor<4xi1>
  nn.return %x : tensor<4xi1>
}

// -----

// nn.add C1
nn.module @m(%x: tensor<2x4xf32>, %y: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{shapes [2, 4] and [3] do not broadcast: aligned at the right, axis 1 is 4 and 3; sizes must be equal or 1}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<3xf32>
  nn.return %x : tensor<2x4xf32>
}

// -----

// nn.add C1: the batch fits itself and 1 only.
nn.module @m(%x: tensor<?x4xf32>, %y: tensor<2x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{axis 0 is the batch '?' and 2}}
  %0 = nn.add %x, %y : tensor<?x4xf32>, tensor<2x4xf32>
  nn.return %x : tensor<?x4xf32>
}

// -----

// nn.add C2
nn.module @m(%x: tensor<4xf32>, %y: tensor<4xbf16>) -> tensor<4xf32> {
  // expected-error @+1 {{element types differ: 'tensor<4xf32>' and 'tensor<4xbf16>'; nn.cast one of them to the other's}}
  %0 = nn.add %x, %y : tensor<4xf32>, tensor<4xbf16>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.add C3
nn.module @m(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{has no meaning for booleans ('tensor<4xi1>'); combine conditions with nn.where, or nn.cast to i32 first}}
  %0 = nn.add %x, %x : tensor<4xi1>, tensor<4xi1>
  nn.return %x : tensor<4xi1>
}

// -----

// '?' of a result only leads.
nn.module @m(%x: tensor<?xf32>, %y: tensor<4x1xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{would have the batch '?' on axis 1 of its result [4, ?]; the batch may only be the leading axis}}
  %0 = nn.mul %x, %y : tensor<?xf32>, tensor<4x1xf32>
  nn.return %x : tensor<?xf32>
}

// -----

// nn.cast C1
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{cannot cast to 'f64'; tensors hold f32, bf16, f16, f8E4M3FN, f8E5M2, i32, i64 or i1}}
  %0 = nn.cast %x to f64 : tensor<4xf32>
  nn.return %x : tensor<4xf32>
}

// -----

// nn.iota C1
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{size 0 in shape [4, 0]; sizes must be positive}}
  %0 = nn.iota [4, 0] axis 1 i32
  nn.return %x : tensor<4xf32>
}

// -----

// nn.iota C2
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{axis 2 of shape [4, 4]; it must be in [0, 2)}}
  %0 = nn.iota [4, 4] axis 2 i32
  nn.return %x : tensor<4xf32>
}

// -----

// nn.iota C3
nn.module @m(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{cannot count in 'i1'; use i32, i64, f32, bf16 or f16}}
  %0 = nn.iota [4] axis 0 i1
  nn.return %x : tensor<4xf32>
}

// -----

// nn.random C2
nn.module @m(%rng: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{id -1; ids tell the random tensors of a step apart and are not negative}}
  %0 = nn.random %rng [4] id -1
  nn.return %rng : tensor<4xi32>
}

// -----

// nn.reshape C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{two sizes of [-1, -1] are -1; at most one can follow from the others}}
  %0 = nn.reshape %x [-1, -1] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.reshape C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{size 0 in [0, 24]; sizes are positive, or -1 for what is left}}
  %0 = nn.reshape %x [0, 24] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.reshape C2
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{'tensor<?x6xf32>' has the batch '?', so the leading size of [6, -1] must be -1 and the others sizes of a sample}}
  %0 = nn.reshape %x [6, -1] : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.reshape C3
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{cannot turn 'tensor<4x6xf32>', 24 elements, into [5, 5], 25 elements}}
  %0 = nn.reshape %x [5, 5] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.transpose C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{[0, 0] is not a permutation of the 2 axes of 'tensor<4x6xf32>'}}
  %0 = nn.transpose %x [0, 0] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.broadcast C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{[6] has fewer axes than 'tensor<4x6xf32>'; broadcasting only adds axes}}
  %0 = nn.broadcast %x [6] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.broadcast C2
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{cannot broadcast 'tensor<4x6xf32>' to [4, 12]: axis 1 would go from 6 to 12; only size 1 is repeated, and -1 keeps an axis of the operand as it is}}
  %0 = nn.broadcast %x [4, 12] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.slice C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{[0] has 1 numbers for the 2 axes of 'tensor<4x6xf32>'; give starts, limits and strides for each axis}}
  %0 = nn.slice %x from [0] to [-1, -1] by [1, 1] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.slice C2
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{axis 1 of 'tensor<4x6xf32>' cannot be cut from 3 to 7 by 1; 0 <= start < limit <= 6 and stride >= 1}}
  %0 = nn.slice %x from [0, 3] to [-1, 7] by [1, 1] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.slice C3
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot cut the batch '?' of 'tensor<?x6xf32>' (axis 0); it must be taken whole: from 0 to -1 by 1}}
  %0 = nn.slice %x from [1, 0] to [-1, -1] by [1, 1] : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.pad C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{[1] has 1 numbers for the 2 axes of 'tensor<4x6xf32>'; give low, high and interior for each axis}}
  %0 = nn.pad %x low [1] high [0, 0] interior [0, 0] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.pad C2
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{negative padding in [-1, 0]; nn.slice removes elements}}
  %0 = nn.pad %x low [-1, 0] high [0, 0] interior [0, 0] : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.pad C3
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot pad the batch '?' of 'tensor<?x6xf32>' (axis 0); its low, high and interior must be 0}}
  %0 = nn.pad %x low [1, 0] high [0, 0] interior [0, 0] : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.concat C2
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{axis 2 of 'tensor<4x6xf32>'; it must be in [-2, 2)}}
  %0 = nn.concat %x, %x axis 2 : tensor<4x6xf32>, tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.concat C3
nn.module @m(%x: tensor<4x6xf32>, %y: tensor<5x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tensor<5x6xf32>' does not continue 'tensor<4x6xf32>' along axis 1; the element type and all other sizes must be equal}}
  %0 = nn.concat %x, %y axis 1 : tensor<4x6xf32>, tensor<5x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.concat C4
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot concatenate along the batch '?' of 'tensor<?x6xf32>'}}
  %0 = nn.concat %x, %x axis 0 : tensor<?x6xf32>, tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}

// -----

// nn.split C1
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{axis -3 of 'tensor<4x6xf32>'; it must be in [-2, 2)}}
  %0 = nn.split %x axis -3 sections 1 : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.split C2
nn.module @m(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{cannot split axis 1 of 'tensor<4x6xf32>' into 4 equal parts; 6 must be a multiple of the sections}}
  %0:4 = nn.split %x axis 1 sections 4 : tensor<4x6xf32>
  nn.return %x : tensor<4x6xf32>
}

// -----

// nn.split C3
nn.module @m(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @+1 {{cannot split the batch '?' of 'tensor<?x6xf32>'}}
  %0:2 = nn.split %x axis 0 sections 2 : tensor<?x6xf32>
  nn.return %x : tensor<?x6xf32>
}
