// A sound plan passes: two buffers in the same bytes at different times, and a kernel writing over the operand it allows.
// RUN: descent-opt --verify-plan %s | FileCheck %s

// CHECK: exec.program @step
module {
  exec.arena size 320 persistent 64 lower_bound 320 parameters 0 gradients 0 optimizer 0 activations 0 workspace 320
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.storage @x "inputs" at 0 : tensor<4xf32>
  exec.program @step {
    %0 = exec.get @x at 0 : memref<4xf32>
    %1 = exec.buffer "a" "workspace" at 64 live [0, 1] : memref<4xf32>
    exec.run @next ins(%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
    exec.run @next ins(%1 : memref<4xf32>) outs(%1 : memref<4xf32>)
    %2 = exec.buffer "b" "workspace" at 64 live [2, 2] : memref<4xf32>
    exec.run @next ins(%0 : memref<4xf32>) outs(%2 : memref<4xf32>)
    exec.output "y" %2 : memref<4xf32>
  }
}
