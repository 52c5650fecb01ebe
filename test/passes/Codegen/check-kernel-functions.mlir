// A kernel function that keeps the contract passes and becomes public; private helpers with a body become internal, so that two objects may each hold one of a
// name; declarations and public helpers stay as they are.
// RUN: descent-opt %s --check-kernel-functions | FileCheck %s

// CHECK: func.func private @declared(f32) -> f32
// CHECK-NOT: linkage
func.func private @declared(%x: f32) -> f32
// CHECK: func.func private @helper(%{{.*}}: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>}
func.func private @helper(%x: f32) -> f32 { return %x : f32 }
// CHECK: func.func @k(
// CHECK-SAME: attributes {descent.scratch = 64 : i64, descent.tasks = 4 : i64}
func.func private @k(%a: memref<4x3xf32>, %first: index, %last: index, %scratch: memref<64xi8>)
    attributes {descent.tasks = 4 : i64, descent.scratch = 64 : i64} { return }
