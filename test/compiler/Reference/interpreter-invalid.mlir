// An op without a reference, and a launch of something that is not there, are named.
// RUN: not descent-run %s 2>&1 | FileCheck %s

// CHECK: 'arith.addf' op has no double-precision reference
func.func @unknown(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = arith.addf %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
// CHECK: must be a tensor of static shape to be run
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
