// Each of two launches overwrites a state that the other must read first: no order is right, and none is guessed.
// RUN: descent-opt --order-operations --verify-diagnostics %s

module {
  train.state @s : tensor<f32>
  train.state @t : tensor<f32>
  exec.kernel @next "rows" (%x: tensor<f32>) -> tensor<f32> {
    %0 = nn.neg %x : tensor<f32>
    exec.yield %0 : tensor<f32>
  }
  // expected-error @+1 {{no legal order}}
  train.func @step() -> tensor<f32> {
    %s = train.read @s : tensor<f32>
    %t = train.read @t : tensor<f32>
    %a = exec.launch @next(%t) : (tensor<f32>) -> tensor<f32>
    train.write @s, %a : tensor<f32>
    %b = exec.launch @next(%s) : (tensor<f32>) -> tensor<f32>
    train.write @t, %b : tensor<f32>
    train.return ["s"] %a : tensor<f32>
  }
}
