// Rows and columns kernels from hand-written linalg: loops over vectors, masks for ragged sizes, and no scalar loop over elements.
//
// RUN: descent-opt %s --emit-loop-kernels=cpu=haswell --canonicalize --cse | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// A row of 100: three full blocks of 32 lanes and one of 4 (masked, 8 lanes). Bias comes once per block. No buffer is read twice, so the
// result may lie over the input.
// CHECK-LABEL: func.func @bias(
// CHECK-SAME: reusable = {{.*}}array<i64: 0, 0>
// CHECK: scf.for
// CHECK:   scf.for {{.*}} step %c32
// CHECK-COUNT-2: vector.load {{.*}}vector<32xf32>
// CHECK:     arith.addf {{.*}} fastmath<contract> : vector<32xf32>
// CHECK:     vector.store
// CHECK:   %[[MASK:.*]] = vector.constant_mask [4] : vector<8xi1>
// CHECK-COUNT-2: vector.maskedload {{.*}} %[[MASK]]
// CHECK:   vector.maskedstore {{.*}} %[[MASK]]
// CHECK-NOT: memref.load
func.func @bias(%x: tensor<40x100xf32>, %b: tensor<100xf32>) -> tensor<40x100xf32> attributes {descent.kind = "rows"} {
  %e = tensor.empty() : tensor<40x100xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<40x100xf32>, tensor<100xf32>) outs(%e : tensor<40x100xf32>) {
  ^bb0(%0: f32, %1: f32, %2: f32):
    %s = arith.addf %0, %1 : f32
    linalg.yield %s : f32
  } -> tensor<40x100xf32>
  return %y : tensor<40x100xf32>
}

// The sum of a row lives in one vector; its lanes are added by halves behind the loop and the element is stored once a row.
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK:   %[[SUM:.*]] = scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>)
// CHECK:   vector.extract_strided_slice %[[SUM]] {offsets = [0], sizes = [16]
// CHECK:   memref.store
func.func @sum(%x: tensor<40x128xf32>) -> tensor<40xf32> attributes {descent.kind = "rows"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<40x128xf32>) outs(%z : tensor<40xf32>) {
  ^bb0(%0: f32, %1: f32):
    %s = arith.addf %0, %1 : f32
    linalg.yield %s : f32
  } -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// Along the other axis: accumulators over the rows, one block of columns a task.
// CHECK-LABEL: func.func @columns(
// CHECK: scf.for
// CHECK:   scf.for {{.*}} iter_args
// CHECK:     arith.addf {{.*}} : vector<8xf32>
// CHECK:   vector.store
// CHECK-NOT: memref.load
func.func @columns(%x: tensor<40x128xf32>) -> tensor<128xf32> attributes {descent.kind = "columns"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<40x128xf32>) outs(%z : tensor<128xf32>) {
  ^bb0(%0: f32, %1: f32):
    %s = arith.addf %0, %1 : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %y : tensor<128xf32>
}
