// A difference, and a NaN where a number should be, fail the run and name the element.
// RUN: not descent-run %s 2>&1 | FileCheck %s

// CHECK: 'check.expect_close' op element 1 is 2.5{{.*}} and should be 2.0{{.*}} within
func.func @different() {
  %a = nn.constant dense<[1.0, 2.5]> : tensor<2xf32>
  %b = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_close %a, %b within 1.0e-3 : tensor<2xf32>
  return
}
// CHECK: 'check.expect_close' op element 0 is {{[Nn]a[Nn]}} and should be 2.0
func.func @nan() {
  %a = nn.constant dense<0x7FC00000> : tensor<1xf32>
  %b = nn.constant dense<2.0> : tensor<1xf32>
  check.expect_close %a, %b within 1.0e6 : tensor<1xf32>
  return
}
