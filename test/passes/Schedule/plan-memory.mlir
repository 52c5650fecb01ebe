// Every value gets a place: parameters in their slab, inputs persistent, transient values by lifetime. relu writes over its own operand, because each
// element is read before it is written and nobody reads the operand later; the place lives until the result is handed out, after the last launch.
// RUN: descent-opt --plan-memory --verify-plan %s | FileCheck %s

// CHECK: exec.arena size [[SIZE:[0-9]+]] persistent [[PERSISTENT:[0-9]+]] lower_bound [[SIZE]]
// CHECK-LABEL: exec.program @step
// CHECK:         %[[X:.*]] = exec.get @"input:x" at [[AT:[0-9]+]] : memref<8x64xf32>
// CHECK:         %[[B0:.*]] = exec.buffer "double" "{{.*}}" at [[PLACE:[0-9]+]] live [0, 2] : memref<8x64xf32>
// CHECK:         exec.run @double ins(%[[X]] : memref<8x64xf32>) outs(%[[B0]] : memref<8x64xf32>)
// CHECK:         %[[B1:.*]] = exec.buffer "double" "{{.*}}" at [[PLACE]] live [0, 2] : memref<8x64xf32>
// CHECK:         exec.run @relu ins(%[[B0]] : memref<8x64xf32>) outs(%[[B1]]
// CHECK:         exec.output "y"
// CHECK-DAG: exec.storage @w "parameters" at 0 : tensor<5x3xf32> {gradient = 4096 : i64, init = #nn.constant<1.0>
// CHECK-DAG: exec.storage @all.gradients "slab.gradients" at 4096
// CHECK-DAG: exec.storage @updates "optimizer"
// CHECK-DAG: exec.storage @"input:x" "inputs" at [[AT]] : tensor<8x64xf32> {nn.name = "x", nn.role = "data"}
module {
  train.parameter @w : tensor<5x3xf32> {init = #nn.constant<1.0>}
  train.state @updates : tensor<i64>
  train.slab @all.parameters "parameters" [@w] at [0] : tensor<1x1024xf32>
  train.slab @all.gradients "gradients" [@w] at [0] : tensor<1x1024xf32>
  exec.kernel @double "rows" (%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
    %0 = nn.add %x, %x : tensor<8x64xf32>, tensor<8x64xf32>
    exec.yield %0 : tensor<8x64xf32>
  }
  exec.kernel @relu "rows" (%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
    %0 = nn.relu %x : tensor<8x64xf32>
    exec.yield %0 : tensor<8x64xf32>
  }
  train.func @step(%x: tensor<8x64xf32> {nn.name = "x", nn.role = "data"}) -> tensor<8x64xf32> {
    %0 = exec.launch @double(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %1 = exec.launch @relu(%0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
    train.return ["y"] %1 : tensor<8x64xf32>
  }
}
