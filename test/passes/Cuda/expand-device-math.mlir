// Elementary functions become instructions of a device, arithmetic or polynomials; nothing is left that would become a call of libdevice.
// RUN: descent-opt %s --expand-device-math | FileCheck %s

// The argument's rounding error is carried into the exponential, unless there is nothing to correct.
// CHECK-LABEL: func.func @exp
// CHECK: %[[HIGH:.*]] = arith.mulf %arg0
// CHECK: %[[LOW:.*]] = llvm.intr.fma(%arg0, {{.*}}, {{.*}})
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%[[HIGH]])
// CHECK: llvm.intr.fma(%[[POWER]], {{.*}}, %[[POWER]])
// CHECK: arith.cmpf olt
// CHECK: arith.select
func.func @exp(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// A vector is taken apart for the instruction alone.
// CHECK-LABEL: func.func @vector
// CHECK: arith.mulf {{.*}} : vector<4xf32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"({{.*}}) : (f32) -> f32
// CHECK: llvm.intr.fma({{.*}}) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
func.func @vector(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func.func @instructions
// CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// CHECK: llvm.call_intrinsic "llvm.fabs"
// CHECK: llvm.call_intrinsic "llvm.floor"
// CHECK: llvm.call_intrinsic "llvm.roundeven"
// CHECK: llvm.intr.maxnum
// CHECK: llvm.intr.fma
func.func @instructions(%x: f32, %y: f32) -> (f32, f32, f32, f32, f32, f32, f32) {
  %0 = math.sqrt %x : f32
  %1 = math.rsqrt %x : f32
  %2 = math.absf %x : f32
  %3 = math.floor %x : f32
  %4 = math.roundeven %x : f32
  %5 = arith.maxnumf %x, %y : f32
  %6 = math.fma %x, %y, %x : f32
  return %0, %1, %2, %3, %4, %5, %6 : f32, f32, f32, f32, f32, f32, f32
}

// CHECK-LABEL: func.func @polynomials
// CHECK-NOT: math.
// CHECK: return
func.func @polynomials(%x: vector<4xf32>, %h: f16) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, f16) {
  %0 = math.log %x : vector<4xf32>
  %1 = math.tanh %x : vector<4xf32>
  %2 = math.erf %x : vector<4xf32>
  %3 = math.sin %x : vector<4xf32>
  %4 = math.cos %x : vector<4xf32>
  %5 = math.powf %x, %x : vector<4xf32>
  %6 = math.exp %h : f16
  return %0, %1, %2, %3, %4, %5, %6 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, f16
}
