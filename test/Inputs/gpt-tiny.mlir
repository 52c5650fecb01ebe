// A GPT of two layers: 11 characters, windows of 6, width 8, two heads; pre-norm blocks, the output tied to the embedding.

nn.module @attention(%x: tensor<?x6x8xf32>) -> tensor<?x6x8xf32> {
  %w = nn.parameter "qkv.weight" normal(0.0, 0.2) : tensor<8x24xf32>
  %b = nn.parameter "qkv.bias" zeros : tensor<24xf32>
  %0 = nn.matmul %x, %w : tensor<?x6x8xf32>, tensor<8x24xf32>
  %1 = nn.add %0, %b : tensor<?x6x24xf32>, tensor<24xf32>
  %q, %k, %v = nn.split %1 axis -1 sections 3 : tensor<?x6x24xf32>
  %2 = nn.attention %q, %k, %v heads 2 causal : tensor<?x6x8xf32>, tensor<?x6x8xf32>, tensor<?x6x8xf32>
  %wo = nn.parameter "out.weight" normal(0.0, 0.2) : tensor<8x8xf32>
  %bo = nn.parameter "out.bias" zeros : tensor<8xf32>
  %3 = nn.matmul %2, %wo : tensor<?x6x8xf32>, tensor<8x8xf32>
  %4 = nn.add %3, %bo : tensor<?x6x8xf32>, tensor<8xf32>
  nn.return %4 : tensor<?x6x8xf32>
}

nn.module @mlp(%x: tensor<?x6x8xf32>) -> tensor<?x6x8xf32> {
  %w0 = nn.parameter "up.weight" normal(0.0, 0.2) : tensor<8x32xf32>
  %b0 = nn.parameter "up.bias" zeros : tensor<32xf32>
  %0 = nn.matmul %x, %w0 : tensor<?x6x8xf32>, tensor<8x32xf32>
  %1 = nn.add %0, %b0 : tensor<?x6x32xf32>, tensor<32xf32>
  %2 = nn.gelu %1 tanh : tensor<?x6x32xf32>
  %w1 = nn.parameter "down.weight" normal(0.0, 0.2) : tensor<32x8xf32>
  %b1 = nn.parameter "down.bias" zeros : tensor<8xf32>
  %3 = nn.matmul %2, %w1 : tensor<?x6x32xf32>, tensor<32x8xf32>
  %4 = nn.add %3, %b1 : tensor<?x6x8xf32>, tensor<8xf32>
  nn.return %4 : tensor<?x6x8xf32>
}

nn.module @block(%x: tensor<?x6x8xf32>) -> tensor<?x6x8xf32> {
  %gain1 = nn.parameter "ln1.gain" ones : tensor<8xf32>
  %bias1 = nn.parameter "ln1.bias" zeros : tensor<8xf32>
  %0 = nn.layer_norm %x, %gain1, %bias1 : tensor<?x6x8xf32>, tensor<8xf32>, tensor<8xf32>
  %1 = nn.instantiate @attention as "attn" (%0) : (tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %2 = nn.add %x, %1 : tensor<?x6x8xf32>, tensor<?x6x8xf32>
  %gain2 = nn.parameter "ln2.gain" ones : tensor<8xf32>
  %bias2 = nn.parameter "ln2.bias" zeros : tensor<8xf32>
  %3 = nn.layer_norm %2, %gain2, %bias2 : tensor<?x6x8xf32>, tensor<8xf32>, tensor<8xf32>
  %4 = nn.instantiate @mlp as "mlp" (%3) : (tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %5 = nn.add %2, %4 : tensor<?x6x8xf32>, tensor<?x6x8xf32>
  nn.return %5 : tensor<?x6x8xf32>
}

nn.model @gpt(%tokens: tensor<?x6xi32> {nn.role = "data"}, %targets: tensor<?x6xi32> {nn.role = "target"}) {
  %wte = nn.parameter "wte" normal(0.0, 0.5) : tensor<11x8xf32>
  %wpe = nn.parameter "wpe" normal(0.0, 0.1) : tensor<6x8xf32>
  %0 = nn.embedding %tokens, %wte : tensor<?x6xi32>, tensor<11x8xf32>
  %1 = nn.add %0, %wpe : tensor<?x6x8xf32>, tensor<6x8xf32>
  %2 = nn.instantiate @block as "h.0" (%1) : (tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %3 = nn.instantiate @block as "h.1" (%2) : (tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %gain = nn.parameter "ln_f.gain" ones : tensor<8xf32>
  %bias = nn.parameter "ln_f.bias" zeros : tensor<8xf32>
  %4 = nn.layer_norm %3, %gain, %bias : tensor<?x6x8xf32>, tensor<8xf32>, tensor<8xf32>
  %logits = nn.matmul %4, %wte {transpose_b} : tensor<?x6x8xf32>, tensor<11x8xf32>
  %sum, %weight = nn.cross_entropy %logits, %targets : tensor<?x6x11xf32>, tensor<?x6xi32>
  nn.loss %sum, %weight, %logits : tensor<?x6x11xf32>
}
