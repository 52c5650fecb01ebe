// Where a result may not lie over an operand: the kernel reads elements after it has written others (a transpose), the operand is read again later, the operand
// is the caller's. Values alive at one time then lie apart, and the arena is as large as all of them.
// RUN: descent-opt --plan-memory --verify-plan %s | FileCheck %s

// CHECK: exec.arena size 1024 persistent 256 lower_bound 1024
// CHECK-LABEL: exec.program @step
// CHECK: exec.get @"input:x" at 0
// CHECK: exec.buffer "next" {{.*}} at [[A:[0-9]+]] live [0, 2]
// CHECK-NOT: at [[A]] live
// CHECK: exec.buffer "swap" {{.*}} live [1, 3]
// CHECK-NOT: at [[A]] live
// CHECK: exec.buffer "both" {{.*}} at {{[0-9]+}} live
// CHECK: exec.output
module {
  exec.kernel @next "rows" (%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = nn.neg %x : tensor<8x8xf32>
    exec.yield %0 : tensor<8x8xf32>
  }
  exec.kernel @swap "copy" (%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = nn.transpose %x [1, 0] : tensor<8x8xf32>
    exec.yield %0 : tensor<8x8xf32>
  }
  exec.kernel @both "gemm" (%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = nn.matmul %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
    exec.yield %0 : tensor<8x8xf32>
  }
  train.func @step(%x: tensor<8x8xf32> {nn.name = "x"}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = exec.launch @next(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = exec.launch @swap(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = exec.launch @both(%0, %1) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    train.return ["y", "z"] %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
