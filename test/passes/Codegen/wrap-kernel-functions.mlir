// The kernel function becomes an internal body; a function of the ABI's four arguments takes its name and its attributes, loads the pointers and calls it.
// Functions that are no kernels stay.
// RUN: descent-opt %s --wrap-kernel-functions | FileCheck %s

// CHECK: llvm.func @helper(f32) -> f32
llvm.func @helper(f32) -> f32
// CHECK: llvm.func internal @k.body(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) {
// CHECK: llvm.func @k(%[[BUFFERS:.*]]: !llvm.ptr, %[[FIRST:.*]]: i64, %[[LAST:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr)
// CHECK-SAME: attributes {descent.scratch = 0 : i64, descent.tasks = 4 : i64}
// CHECK-NEXT: %[[P0:.*]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK-NEXT: %[[A:.*]] = llvm.load %[[P0]]
// CHECK-NEXT: %[[P1:.*]] = llvm.getelementptr %[[BUFFERS]][1]
// CHECK-NEXT: %[[B:.*]] = llvm.load %[[P1]]
// CHECK-NEXT: llvm.call @k.body(%[[A]], %[[B]], %[[FIRST]], %[[LAST]], %[[SCRATCH]])
// CHECK-NEXT: llvm.return
llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %first: i64, %last: i64, %scratch: !llvm.ptr)
    attributes {descent.tasks = 4 : i64, descent.scratch = 0 : i64} {
  llvm.return
}

// A body whose name is taken gets a number.
llvm.func @taken.body()
// CHECK: llvm.func internal @taken.body_0(
// CHECK: llvm.func @taken(
// CHECK: llvm.call @taken.body_0(
llvm.func @taken(%first: i64, %last: i64, %scratch: !llvm.ptr) attributes {descent.tasks = 1 : i64, descent.scratch = 0 : i64} {
  llvm.return
}
