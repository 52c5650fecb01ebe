// A convolutional network for images of 8 x 8 x 1 (height, width, channels).
// Each stage is two 3x3 convolutions and a pooling that halves the image.
// The `?` in the types is the batch; the recipe binds it.
nn.model @convnet(%images: tensor<?x8x8x1xf32> {nn.role = "data"}, %labels: tensor<?xi32> {nn.role = "target"}) {
  %conv0a.w = nn.parameter "conv0a.weight" normal(0.0, 0.471405) : tensor<3x3x1x32xf32>
  %conv0a.b = nn.parameter "conv0a.bias" zeros : tensor<32xf32>
  %conv0a.product = nn.conv2d %images, %conv0a.w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x8x8x1xf32>, tensor<3x3x1x32xf32>
  %conv0a.sum = nn.add %conv0a.product, %conv0a.b : tensor<?x8x8x32xf32>, tensor<32xf32>
  %conv0a = nn.relu %conv0a.sum : tensor<?x8x8x32xf32>
  %conv0b.w = nn.parameter "conv0b.weight" normal(0.0, 0.0833333) : tensor<3x3x32x32xf32>
  %conv0b.b = nn.parameter "conv0b.bias" zeros : tensor<32xf32>
  %conv0b.product = nn.conv2d %conv0a, %conv0b.w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x8x8x32xf32>, tensor<3x3x32x32xf32>
  %conv0b.sum = nn.add %conv0b.product, %conv0b.b : tensor<?x8x8x32xf32>, tensor<32xf32>
  %conv0b = nn.relu %conv0b.sum : tensor<?x8x8x32xf32>
  %pool0 = nn.max_pool2d %conv0b kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<?x8x8x32xf32>

  %conv1a.w = nn.parameter "conv1a.weight" normal(0.0, 0.0833333) : tensor<3x3x32x64xf32>
  %conv1a.b = nn.parameter "conv1a.bias" zeros : tensor<64xf32>
  %conv1a.product = nn.conv2d %pool0, %conv1a.w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x4x4x32xf32>, tensor<3x3x32x64xf32>
  %conv1a.sum = nn.add %conv1a.product, %conv1a.b : tensor<?x4x4x64xf32>, tensor<64xf32>
  %conv1a = nn.relu %conv1a.sum : tensor<?x4x4x64xf32>
  %conv1b.w = nn.parameter "conv1b.weight" normal(0.0, 0.0589256) : tensor<3x3x64x64xf32>
  %conv1b.b = nn.parameter "conv1b.bias" zeros : tensor<64xf32>
  %conv1b.product = nn.conv2d %conv1a, %conv1b.w strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<?x4x4x64xf32>, tensor<3x3x64x64xf32>
  %conv1b.sum = nn.add %conv1b.product, %conv1b.b : tensor<?x4x4x64xf32>, tensor<64xf32>
  %conv1b = nn.relu %conv1b.sum : tensor<?x4x4x64xf32>
  %pool1 = nn.max_pool2d %conv1b kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<?x4x4x64xf32>

  %features = nn.reshape %pool1 [-1, 256] : tensor<?x2x2x64xf32>
  %fc.w = nn.parameter "fc.weight" normal(0.0, 0.0625) : tensor<256x10xf32>
  %fc.b = nn.parameter "fc.bias" zeros : tensor<10xf32>
  %fc.product = nn.matmul %features, %fc.w : tensor<?x256xf32>, tensor<256x10xf32>
  %logits = nn.add %fc.product, %fc.b : tensor<?x10xf32>, tensor<10xf32>
  %sum, %weight = nn.cross_entropy %logits, %labels : tensor<?x10xf32>, tensor<?xi32>
  nn.loss %sum, %weight, %logits : tensor<?x10xf32>
}
