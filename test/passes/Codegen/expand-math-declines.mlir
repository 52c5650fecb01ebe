// What x86 has an instruction for stays (square root, fused multiply-add, rounding, maxima: arith-expand would split those), and so do functions on f64, which
// the polynomials are not exact enough for.
// RUN: descent-opt %s --expand-math | FileCheck %s

// CHECK-LABEL: func.func @instructions
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.fma
// CHECK-NEXT: math.floor
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.maxnumf
// CHECK-NEXT: arith.divsi
// CHECK-NEXT: return
func.func @instructions(%x: vector<16xf32>, %i: index) -> (vector<16xf32>, index) {
  %0 = math.sqrt %x : vector<16xf32>
  %1 = math.fma %0, %x, %x : vector<16xf32>
  %2 = math.floor %1 : vector<16xf32>
  %3 = arith.maximumf %2, %x : vector<16xf32>
  %4 = arith.maxnumf %3, %x : vector<16xf32>
  %5 = arith.divsi %i, %i : index
  return %4, %5 : vector<16xf32>, index
}

// CHECK-LABEL: func.func @wide
// CHECK-NEXT: math.exp %{{.*}} : f64
// CHECK-NEXT: return
func.func @wide(%x: f64) -> f64 {
  %0 = math.exp %x : f64
  return %0 : f64
}
