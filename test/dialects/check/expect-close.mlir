// A function may make its inputs and say what it expects; NaN equals NaN and nothing else.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-run %s

func.func @expectations() {
  // CHECK: check.random_input seed 1 from -1.0{{.*}} to 1.0{{.*}} : tensor<3x5xf32>
  %x = check.random_input seed 1 from -1.0 to 1.0 : tensor<3x5xf32>
  %y = nn.neg %x : tensor<3x5xf32>
  %z = nn.neg %y : tensor<3x5xf32>
  // CHECK: check.expect_close %{{.*}}, %{{.*}} within {{.*}} : tensor<3x5xf32>
  check.expect_close %z, %x within 1.0e-12 : tensor<3x5xf32>
  %nan = nn.constant dense<0x7FC00000> : tensor<2xf32>
  check.expect_close %nan, %nan within 0.0 : tensor<2xf32>
  return
}
