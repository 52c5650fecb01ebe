// Every op of the dialect and the attributes of arguments, printed and parsed again, in its own syntax and in the generic one.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-opt --mlir-print-op-generic %s | descent-opt | FileCheck %s

// CHECK-LABEL: func.func @ops
// CHECK-SAME: {check.range = [-1.000000e+00, 1.000000e+00]}
// CHECK-SAME: {check.value = dense<[1, 2]> : tensor<2xi32>}
func.func @ops(%x: tensor<3xf32> {check.range = [-1.0, 1.0]}, %i: tensor<2xi32> {check.value = dense<[1, 2]> : tensor<2xi32>}) {
  // CHECK-NEXT: check.random_input seed 1 from -1.000000e+00 to 1.000000e+00 : tensor<3xf32>
  %y = check.random_input seed 1 from -1.0 to 1.0 : tensor<3xf32>
  // CHECK-NEXT: check.expect_close %{{.*}}, %{{.*}} within 1.000000e-03 : tensor<3xf32>
  check.expect_close %x, %y within 1.0e-3 : tensor<3xf32>
  return
}
