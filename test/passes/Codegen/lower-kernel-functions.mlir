// A kernel function becomes a function of the ABI's four arguments that unpacks its buffers and calls the body. The body, like every private
// helper, is internal: two objects may hold helpers of one name. The exponential is expanded, so no library is called.
// RUN: descent-opt %s --lower-kernel-functions | FileCheck %s

// CHECK-LABEL: llvm.func internal @helper(
// CHECK-NOT: llvm.intr.exp
// CHECK-NOT: @expf
// CHECK-LABEL: llvm.func internal @twice.body(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK-NOT: descent.tasks
// CHECK-LABEL: llvm.func @twice(
// CHECK-SAME: %[[BUFFERS:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr)
// CHECK-SAME: descent.scratch = 0 : i64, descent.tasks = 4 : i64
// CHECK: %[[A:.*]] = llvm.load
// CHECK: %[[B:.*]] = llvm.load
// CHECK: llvm.call @twice.body(%[[A]], %[[B]], %[[FIRST]], %[[LAST]], %[[SCRATCH]])
func.func private @helper(%x: vector<16xf32>) -> vector<16xf32> {
  %e = math.exp %x : vector<16xf32>
  return %e : vector<16xf32>
}
func.func @twice(%a: memref<4x16xf32>, %b: memref<4x16xf32>, %first: index, %last: index, %scratch: memref<0xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %first to %last step %c1 {
    %x = vector.load %a[%i, %c0] : memref<4x16xf32>, vector<16xf32>
    %e = func.call @helper(%x) : (vector<16xf32>) -> vector<16xf32>
    %y = arith.addf %e, %e : vector<16xf32>
    vector.store %y, %b[%i, %c0] : memref<4x16xf32>, vector<16xf32>
  }
  return
}
