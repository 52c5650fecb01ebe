// A GPT: 4 pre-norm blocks of width 128 with 4 heads over windows of 64 tokens.
// The `?` in the types is the batch; the recipe binds it.

// Multi-head causal self-attention: queries, keys and values from one product, then a projection.
nn.module @attention(%x: tensor<?x64x128xf32>) -> tensor<?x64x128xf32> {
  %w = nn.parameter "qkv.weight" normal(0.0, 0.02) : tensor<128x384xf32>
  %b = nn.parameter "qkv.bias" zeros : tensor<384xf32>
  %product = nn.matmul %x, %w : tensor<?x64x128xf32>, tensor<128x384xf32>
  %qkv = nn.add %product, %b : tensor<?x64x384xf32>, tensor<384xf32>
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<?x64x384xf32>
  %heads = nn.attention %q, %k, %v heads 4 causal : tensor<?x64x128xf32>, tensor<?x64x128xf32>, tensor<?x64x128xf32>
  %wo = nn.parameter "out.weight" normal(0.0, 0.00707107) : tensor<128x128xf32>
  %bo = nn.parameter "out.bias" zeros : tensor<128xf32>
  %mixed = nn.matmul %heads, %wo : tensor<?x64x128xf32>, tensor<128x128xf32>
  %y = nn.add %mixed, %bo : tensor<?x64x128xf32>, tensor<128xf32>
  nn.return %y : tensor<?x64x128xf32>
}

// Two linear layers, the inner one four times as wide.
nn.module @mlp(%x: tensor<?x64x128xf32>) -> tensor<?x64x128xf32> {
  %w1 = nn.parameter "up.weight" normal(0.0, 0.02) : tensor<128x512xf32>
  %b1 = nn.parameter "up.bias" zeros : tensor<512xf32>
  %product = nn.matmul %x, %w1 : tensor<?x64x128xf32>, tensor<128x512xf32>
  %wide = nn.add %product, %b1 : tensor<?x64x512xf32>, tensor<512xf32>
  %active = nn.gelu %wide tanh : tensor<?x64x512xf32>
  %w2 = nn.parameter "down.weight" normal(0.0, 0.00707107) : tensor<512x128xf32>
  %b2 = nn.parameter "down.bias" zeros : tensor<128xf32>
  %narrow = nn.matmul %active, %w2 : tensor<?x64x512xf32>, tensor<512x128xf32>
  %y = nn.add %narrow, %b2 : tensor<?x64x128xf32>, tensor<128xf32>
  nn.return %y : tensor<?x64x128xf32>
}

nn.module @block(%x: tensor<?x64x128xf32>) -> tensor<?x64x128xf32> {
  %gain1 = nn.parameter "ln1.gain" ones : tensor<128xf32>
  %bias1 = nn.parameter "ln1.bias" zeros : tensor<128xf32>
  %n1 = nn.layer_norm %x, %gain1, %bias1 : tensor<?x64x128xf32>, tensor<128xf32>, tensor<128xf32>
  %a = nn.instantiate @attention as "attn" (%n1) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %h = nn.add %x, %a : tensor<?x64x128xf32>, tensor<?x64x128xf32>
  %gain2 = nn.parameter "ln2.gain" ones : tensor<128xf32>
  %bias2 = nn.parameter "ln2.bias" zeros : tensor<128xf32>
  %n2 = nn.layer_norm %h, %gain2, %bias2 : tensor<?x64x128xf32>, tensor<128xf32>, tensor<128xf32>
  %m = nn.instantiate @mlp as "mlp" (%n2) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %y = nn.add %h, %m : tensor<?x64x128xf32>, tensor<?x64x128xf32>
  nn.return %y : tensor<?x64x128xf32>
}

nn.model @gpt(%tokens: tensor<?x64xi32> {nn.role = "data"}, %targets: tensor<?x64xi32> {nn.role = "target"}) {
  %wte = nn.parameter "wte" normal(0.0, 0.02) : tensor<256x128xf32>
  %wpe = nn.parameter "wpe" normal(0.0, 0.02) : tensor<64x128xf32>
  %e = nn.embedding %tokens, %wte : tensor<?x64xi32>, tensor<256x128xf32>
  %x0 = nn.add %e, %wpe : tensor<?x64x128xf32>, tensor<64x128xf32>
  %x1 = nn.instantiate @block as "h.0" (%x0) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %x2 = nn.instantiate @block as "h.1" (%x1) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %x3 = nn.instantiate @block as "h.2" (%x2) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %x4 = nn.instantiate @block as "h.3" (%x3) : (tensor<?x64x128xf32>) -> tensor<?x64x128xf32>
  %gain = nn.parameter "ln_f.gain" ones : tensor<128xf32>
  %bias = nn.parameter "ln_f.bias" zeros : tensor<128xf32>
  %f = nn.layer_norm %x4, %gain, %bias : tensor<?x64x128xf32>, tensor<128xf32>, tensor<128xf32>

  // The output is tied to the embedding: the same parameter, transposed.
  %logits = nn.matmul %f, %wte {transpose_b} : tensor<?x64x128xf32>, tensor<256x128xf32>
  %sum, %weight = nn.cross_entropy %logits, %targets : tensor<?x64x256xf32>, tensor<?x64xi32>
  nn.loss %sum, %weight, %logits : tensor<?x64x256xf32>
}
