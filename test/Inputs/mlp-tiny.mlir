// A regression of 3 numbers from 4: the smallest model with two layers, an activation and mse. 5 hidden units, so that no size is a vector's.
nn.model @mlp(%x: tensor<?x4xf32> {nn.role = "data"}, %y: tensor<?x3xf32> {nn.role = "target"}) {
  %w0 = nn.parameter "fc0.weight" normal(0.0, 0.5) : tensor<4x5xf32>
  %b0 = nn.parameter "fc0.bias" zeros : tensor<5xf32>
  %0 = nn.matmul %x, %w0 : tensor<?x4xf32>, tensor<4x5xf32>
  %1 = nn.add %0, %b0 : tensor<?x5xf32>, tensor<5xf32>
  %2 = nn.relu %1 : tensor<?x5xf32>
  %w1 = nn.parameter "fc1.weight" normal(0.0, 0.5) : tensor<5x3xf32>
  %b1 = nn.parameter "fc1.bias" zeros : tensor<3xf32>
  %3 = nn.matmul %2, %w1 : tensor<?x5xf32>, tensor<5x3xf32>
  %4 = nn.add %3, %b1 : tensor<?x3xf32>, tensor<3xf32>
  %sum, %weight = nn.mse %4, %y : tensor<?x3xf32>, tensor<?x3xf32>
  nn.loss %sum, %weight, %4 : tensor<?x3xf32>
}
