// A multilayer perceptron: 64 - 128 - 10, ReLU between the layers.
// The `?` in the types is the batch; the recipe binds it.
nn.model @mlp(%x: tensor<?x64xf32> {nn.role = "data"}, %labels: tensor<?xi32> {nn.role = "target"}) {
  %fc0.w = nn.parameter "fc0.weight" normal(0.0, 0.176777) : tensor<64x128xf32>
  %fc0.b = nn.parameter "fc0.bias" zeros : tensor<128xf32>
  %fc0.product = nn.matmul %x, %fc0.w : tensor<?x64xf32>, tensor<64x128xf32>
  %fc0.y = nn.add %fc0.product, %fc0.b : tensor<?x128xf32>, tensor<128xf32>
  %h0 = nn.relu %fc0.y : tensor<?x128xf32>

  %fc1.w = nn.parameter "fc1.weight" normal(0.0, 0.0883883) : tensor<128x10xf32>
  %fc1.b = nn.parameter "fc1.bias" zeros : tensor<10xf32>
  %fc1.product = nn.matmul %h0, %fc1.w : tensor<?x128xf32>, tensor<128x10xf32>
  %logits = nn.add %fc1.product, %fc1.b : tensor<?x10xf32>, tensor<10xf32>
  %sum, %weight = nn.cross_entropy %logits, %labels : tensor<?x10xf32>, tensor<?xi32>
  nn.loss %sum, %weight, %logits : tensor<?x10xf32>
}
