// A copy stands wherever two places must hold one value: a gradient packed twice, an argument packed, a state written with another state's value.
// RUN: descent-opt --insert-copies %s | FileCheck %s

module {
  train.parameter @u : tensor<4xf32> {init = #nn.constant<1.0>}
  train.parameter @v : tensor<4xf32> {init = #nn.constant<1.0>}
  train.parameter @w : tensor<4xf32> {init = #nn.constant<1.0>}
  train.state @s : tensor<4xf32>
  train.slab @g "gradients" [@u, @v, @w] at [0, 16, 32] : tensor<1x1024xf32>
  // CHECK: exec.kernel @copy_4_f32 "copy"
  exec.kernel @next "rows" (%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : tensor<4xf32>
    exec.yield %0 : tensor<4xf32>
  }
  // CHECK-LABEL: train.func @step
  train.func @step(%x: tensor<4xf32>) -> tensor<1x1024xf32> {
    // CHECK: %[[A:.*]] = exec.launch @next
    %a = exec.launch @next(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK-DAG: %[[TWICE:.*]] = exec.launch @copy_4_f32(%[[A]])
    // CHECK-DAG: %[[ARGUMENT:.*]] = exec.launch @copy_4_f32(%arg0)
    // CHECK: train.pack @g(%[[A]], %[[TWICE]], %[[ARGUMENT]])
    %p = train.pack @g(%a, %a, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x1024xf32>
    // CHECK: %[[OLD:.*]] = train.read @s
    %old = train.read @s : tensor<4xf32>
    // In place is fine here: the launch reads each element of the state before it writes it.
    // CHECK: %[[NEW:.*]] = exec.launch @next(%[[OLD]])
    // CHECK-NEXT: train.write @s, %[[NEW]]
    %new = exec.launch @next(%old) : (tensor<4xf32>) -> tensor<4xf32>
    train.write @s, %new : tensor<4xf32>
    train.return ["p"] %p : tensor<1x1024xf32>
  }
}
