// Functions that x86 has no vector form of become polynomials, divisions that round up or down become ones that truncate, and bf16 conversions become integer
// arithmetic unless the CPU has them.
// RUN: descent-opt %s --expand-math | FileCheck %s --check-prefixes=CHECK,EXPAND
// RUN: descent-opt %s --expand-math="bf16=false" | FileCheck %s --check-prefixes=CHECK,KEEP

// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.log
// CHECK-NOT: math.tanh
// CHECK-NOT: math.erf
// CHECK-NOT: math.sin
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK: return
func.func @functions(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.log %x : vector<16xf32>
  %2 = math.tanh %x : vector<16xf32>
  %3 = math.erf %x : vector<16xf32>
  %4 = math.sin %x : vector<16xf32>
  return %0, %1, %2, %3, %4 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
}

// CHECK-LABEL: func.func @division
// CHECK-NOT: arith.ceildivsi
// CHECK-NOT: arith.floordivsi
// CHECK: arith.divsi
// CHECK: return
func.func @division(%a: index, %b: index) -> (index, index) {
  %0 = arith.ceildivsi %a, %b : index
  %1 = arith.floordivsi %a, %b : index
  return %0, %1 : index, index
}

// CHECK-LABEL: func.func @narrow
// EXPAND-NOT: arith.truncf
// EXPAND-NOT: arith.extf
// EXPAND: arith.shrui
// KEEP-NEXT: arith.extf
// KEEP-NEXT: arith.truncf
// CHECK: return
func.func @narrow(%x: vector<16xbf16>, %y: vector<16xf32>) -> (vector<16xf32>, vector<16xbf16>) {
  %0 = arith.extf %x : vector<16xbf16> to vector<16xf32>
  %1 = arith.truncf %y : vector<16xf32> to vector<16xbf16>
  return %0, %1 : vector<16xf32>, vector<16xbf16>
}

// CHECK-LABEL: func.func @one_lane
// CHECK-SAME: (%[[X:.*]]: vector<16xi8>,
// CHECK: %[[E:.*]] = vector.extract_strided_slice %[[X]] {{.*}} vector<1xi8>
// CHECK: vector.store %[[E]]
// CHECK: vector.maskedstore
// CHECK: return
func.func @one_lane(%x: vector<16xi8>, %m: memref<64xi8>, %i: index) {
  %one = vector.constant_mask [1] : vector<16xi1>
  %two = vector.constant_mask [2] : vector<16xi1>
  vector.maskedstore %m[%i], %one, %x : memref<64xi8>, vector<16xi1>, vector<16xi8>
  vector.maskedstore %m[%i], %two, %x : memref<64xi8>, vector<16xi1>, vector<16xi8>
  return
}
