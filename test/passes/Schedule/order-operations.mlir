// Two independent pairs: in program order both big intermediates are alive together; the greedy order finishes one pair before it starts the other.
// A launch that overwrites a state comes after the launch that reads the old value, whatever the program's order.
// RUN: descent-opt --order-operations %s | FileCheck %s

module {
  train.state @s : tensor<f32>
  exec.kernel @grow "copy" (%x: tensor<4xf32>) -> tensor<1024x4xf32> {
    %0 = nn.broadcast %x [1024, 4] : tensor<4xf32>
    exec.yield %0 : tensor<1024x4xf32>
  }
  exec.kernel @shrink "columns" (%x: tensor<1024x4xf32>) -> tensor<4xf32> {
    %0 = nn.reduce_sum %x [0] : tensor<1024x4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  exec.kernel @next "rows" (%x: tensor<f32>) -> tensor<f32> {
    %0 = nn.neg %x : tensor<f32>
    exec.yield %0 : tensor<f32>
  }
  exec.kernel @look "rows" (%x: tensor<f32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.mul %y, %x : tensor<4xf32>, tensor<f32>
    exec.yield %0 : tensor<4xf32>
  }
  // CHECK-LABEL: train.func @step
  // CHECK:         exec.launch @grow
  // CHECK-NEXT:    exec.launch @shrink
  // CHECK-NEXT:    exec.launch @look
  // CHECK-NEXT:    exec.launch @next
  // CHECK-NEXT:    train.write @s
  // CHECK-NEXT:    exec.launch @grow
  // CHECK-NEXT:    exec.launch @shrink
  // CHECK-NEXT:    train.return
  train.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %old = train.read @s : tensor<f32>
    %new = exec.launch @next(%old) : (tensor<f32>) -> tensor<f32>
    train.write @s, %new : tensor<f32>
    %a = exec.launch @grow(%x) : (tensor<4xf32>) -> tensor<1024x4xf32>
    %b = exec.launch @grow(%x) : (tensor<4xf32>) -> tensor<1024x4xf32>
    %c = exec.launch @shrink(%a) : (tensor<1024x4xf32>) -> tensor<4xf32>
    %d = exec.launch @shrink(%b) : (tensor<1024x4xf32>) -> tensor<4xf32>
    %e = exec.launch @look(%old, %c) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    train.return ["c", "d"] %e, %d : tensor<4xf32>, tensor<4xf32>
  }
}
