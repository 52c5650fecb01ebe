// Every op of the planned half of the dialect, printed and parsed again, in its own syntax and in the generic one.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-opt --mlir-print-op-generic %s | descent-opt | FileCheck %s

module {
  // CHECK: exec.arena size 320 persistent 64 lower_bound 320 parameters 16 gradients 0 optimizer 0 activations 0 workspace 304
  exec.arena size 320 persistent 64 lower_bound 320 parameters 16 gradients 0 optimizer 0 activations 0 workspace 304
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  // CHECK: exec.storage @x "parameters" at 0 : tensor<4xf32> {init = #nn.constant<1.0>}
  exec.storage @x "parameters" at 0 : tensor<4xf32> {init = #nn.constant<1.0>}
  // CHECK-NEXT: exec.program @step {
  exec.program @step {
    // CHECK-NEXT: %[[X:.*]] = exec.get @x at 0 : memref<4xf32>
    %0 = exec.get @x at 0 : memref<4xf32>
    // CHECK-NEXT: %[[B:.*]] = exec.buffer "next" "workspace" at 64 live [0, 1] : memref<4xf32>
    %1 = exec.buffer "next" "workspace" at 64 live [0, 1] : memref<4xf32>
    // CHECK-NEXT: exec.run @next ins(%[[X]] : memref<4xf32>) outs(%[[B]] : memref<4xf32>)
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
    // CHECK-NEXT: exec.output "y" %[[B]] : memref<4xf32>
    exec.output "y" %1 : memref<4xf32>
  }
}
