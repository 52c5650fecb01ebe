// Classifies 8 x 8 images with one channel into 10: convolution, pooling, a strided convolution, a linear layer.
nn.model @convnet(%images: tensor<?x8x8x1xf32> {nn.role = "data"}, %labels: tensor<?xi32> {nn.role = "target"}) {
  %w0 = nn.parameter "conv0.weight" normal(0.0, 0.3) : tensor<3x3x1x4xf32>
  %b0 = nn.parameter "conv0.bias" zeros : tensor<4xf32>
  %0 = nn.conv2d %images, %w0 strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x8x8x1xf32>, tensor<3x3x1x4xf32>
  %1 = nn.add %0, %b0 : tensor<?x8x8x4xf32>, tensor<4xf32>
  %2 = nn.relu %1 : tensor<?x8x8x4xf32>
  %3 = nn.max_pool2d %2 kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<?x8x8x4xf32>
  %w1 = nn.parameter "conv1.weight" normal(0.0, 0.2) : tensor<3x3x4x6xf32>
  %b1 = nn.parameter "conv1.bias" zeros : tensor<6xf32>
  %4 = nn.conv2d %3, %w1 strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x4x4x4xf32>, tensor<3x3x4x6xf32>
  %5 = nn.add %4, %b1 : tensor<?x2x2x6xf32>, tensor<6xf32>
  %6 = nn.relu %5 : tensor<?x2x2x6xf32>
  %7 = nn.reshape %6 [-1, 24] : tensor<?x2x2x6xf32>
  %w2 = nn.parameter "fc.weight" normal(0.0, 0.2) : tensor<24x10xf32>
  %b2 = nn.parameter "fc.bias" zeros : tensor<10xf32>
  %8 = nn.matmul %7, %w2 : tensor<?x24xf32>, tensor<24x10xf32>
  %9 = nn.add %8, %b2 : tensor<?x10xf32>, tensor<10xf32>
  %sum, %weight = nn.cross_entropy %9, %labels : tensor<?x10xf32>, tensor<?xi32>
  nn.loss %sum, %weight, %9 : tensor<?x10xf32>
}
