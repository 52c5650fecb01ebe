// What the rows and columns generators refuse.
//
// RUN: descent-opt %s --emit-loop-kernels=cpu=haswell --split-input-file --verify-diagnostics

// expected-error @+1 {{'descent.kind' of 'unknown' is "tiles"; this pass knows "rows" and "columns"}}
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> attributes {descent.kind = "tiles"} {
  return %x : tensor<4xf32>
}

// -----

// A sum over the leading axis next to an elementwise result: two kernels.
func.func @leading(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {descent.kind = "rows"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{a rows kernel reduces over the last axis only}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%0: f32, %1: f32):
    %s = arith.addf %0, %1 : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A running difference is not a reduction whose order may be chosen.
func.func @difference(%x: tensor<4x8xf32>) -> tensor<4xf32> attributes {descent.kind = "rows"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{reduction is not a sum, product, maximum or minimum of its elements}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%0: f32, %1: f32):
    %s = arith.subf %0, %1 : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{a columns kernel holds a reduction over leading axes}}
func.func @nothing(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {descent.kind = "columns"} {
  return %x : tensor<4x8xf32>
}
