// The published autocast lists, op kind by op kind: which type each runs in under bf16. AutocastTest.cpp has the lists and derives the classes from them;
// here is what the pass makes of the classes. %n is the bf16 result of a product, %x an f32 input.
// RUN: descent-opt --insert-precision-casts %s | FileCheck %s

module attributes {train.compute = bf16} {
// CHECK-LABEL: nn.model @table
nn.model @table(%x: tensor<8x4xf32> {nn.role = "data"}, %image: tensor<8x6x6x2xf32> {nn.role = "data"}, %ids: tensor<8x6xi32> {nn.role = "data"},
                %labels: tensor<8xi32> {nn.role = "target"}, %t: tensor<8x4xf32> {nn.role = "target"}) {
  %w = nn.parameter "w" ones : tensor<4x4xf32>
  %gain = nn.parameter "gain" ones : tensor<4xf32>
  %kernel = nn.parameter "kernel" ones : tensor<3x3x2x4xf32>
  %rows = nn.parameter "rows" ones : tensor<9x4xf32>

  // Narrow: products, convolutions, attention. The sum is f32 inside.
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<4x4xbf16>
  %n = nn.matmul %x, %w : tensor<8x4xf32>, tensor<4x4xf32>
  // CHECK: nn.conv2d {{.*}} : tensor<8x6x6x2xbf16>, tensor<3x3x2x4xbf16>
  %c = nn.conv2d %image, %kernel strides [1, 1] padding [1, 1, 1, 1] dilations [1, 1] : tensor<8x6x6x2xf32>, tensor<3x3x2x4xf32>
  // An embedding is on no list: it follows its table, which is f32.
  // CHECK: nn.embedding {{.*}} : tensor<8x6xi32>, tensor<9x4xf32>
  %e = nn.embedding %ids, %rows : tensor<8x6xi32>, tensor<9x4xf32>
  // CHECK: nn.attention {{.*}} : tensor<8x6x4xbf16>, tensor<8x6x4xbf16>, tensor<8x6x4xbf16>
  %a = nn.attention %e, %e, %e heads 2 causal : tensor<8x6x4xf32>, tensor<8x6x4xf32>, tensor<8x6x4xf32>

  // Wide: f32, although a narrow value comes in.
  // CHECK: nn.exp %{{.*}} : tensor<8x4xf32>
  %exp = nn.exp %n : tensor<8x4xf32>
  // CHECK: nn.log %{{.*}} : tensor<8x4xf32>
  %log = nn.log %n : tensor<8x4xf32>
  // CHECK: nn.pow %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x4xf32>
  %pow = nn.pow %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.rsqrt %{{.*}} : tensor<8x4xf32>
  %rsqrt = nn.rsqrt %n : tensor<8x4xf32>
  // CHECK: nn.softmax %{{.*}} axis -1 : tensor<8x4xf32>
  %softmax = nn.softmax %n axis -1 : tensor<8x4xf32>
  // CHECK: nn.log_softmax %{{.*}} axis -1 : tensor<8x4xf32>
  %log_softmax = nn.log_softmax %n axis -1 : tensor<8x4xf32>
  // CHECK: nn.layer_norm {{.*}} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %norm = nn.layer_norm %n, %gain, %gain {epsilon = 1.0e-3} : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: nn.reduce_sum %{{.*}} [1] : tensor<8x4xf32>
  %sum = nn.reduce_sum %n [1] : tensor<8x4xf32>
  // CHECK: nn.reduce_mean %{{.*}} [1] : tensor<8x4xf32>
  %mean = nn.reduce_mean %n [1] : tensor<8x4xf32>
  // CHECK: nn.cross_entropy {{.*}} : tensor<8x4xf32>, tensor<8xi32>
  %loss, %weight = nn.cross_entropy %n, %labels : tensor<8x4xf32>, tensor<8xi32>
  // CHECK: nn.mse {{.*}} : tensor<8x4xf32>, tensor<8x4xf32>
  %mse, %count = nn.mse %n, %t : tensor<8x4xf32>, tensor<8x4xf32>

  // Widest operand: bf16 with bf16 stays, bf16 with f32 is f32.
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<8x4xbf16>
  %add = nn.add %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x4xf32>
  %mixed = nn.add %n, %x : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.sub %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<8x4xbf16>
  %sub = nn.sub %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<8x4xbf16>
  %mul = nn.mul %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x4xf32>
  %div = nn.div %n, %x : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.maximum %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<8x4xbf16>
  %maximum = nn.maximum %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.minimum %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8x4xf32>
  %minimum = nn.minimum %x, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.compare gt %{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<8x4xbf16>
  %compare = nn.compare gt %n, %n : tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.where %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>
  %where = nn.where %compare, %n, %x : tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} axis 0 : tensor<8x4xf32>, tensor<8x4xf32>
  %concat = nn.concat %n, %x axis 0 : tensor<8x4xf32>, tensor<8x4xf32>

  // On no list: the type of the input.
  // CHECK: nn.neg %{{.*}} : tensor<8x4xbf16>
  %neg = nn.neg %n : tensor<8x4xf32>
  // CHECK: nn.abs %{{.*}} : tensor<8x4xbf16>
  %abs = nn.abs %n : tensor<8x4xf32>
  // CHECK: nn.sqrt %{{.*}} : tensor<8x4xbf16>
  %sqrt = nn.sqrt %n : tensor<8x4xf32>
  // CHECK: nn.sin %{{.*}} : tensor<8x4xbf16>
  %sin = nn.sin %n : tensor<8x4xf32>
  // CHECK: nn.cos %{{.*}} : tensor<8x4xbf16>
  %cos = nn.cos %n : tensor<8x4xf32>
  // CHECK: nn.tanh %{{.*}} : tensor<8x4xbf16>
  %tanh = nn.tanh %n : tensor<8x4xf32>
  // CHECK: nn.erf %{{.*}} : tensor<8x4xbf16>
  %erf = nn.erf %n : tensor<8x4xf32>
  // CHECK: nn.sigmoid %{{.*}} : tensor<8x4xbf16>
  %sigmoid = nn.sigmoid %n : tensor<8x4xf32>
  // CHECK: nn.relu %{{.*}} : tensor<8x4xbf16>
  %relu = nn.relu %n : tensor<8x4xf32>
  // CHECK: nn.relu %{{.*}} : tensor<8x4xf32>
  %relu_wide = nn.relu %x : tensor<8x4xf32>
  // CHECK: nn.silu %{{.*}} : tensor<8x4xbf16>
  %silu = nn.silu %n : tensor<8x4xf32>
  // CHECK: nn.gelu %{{.*}} tanh : tensor<8x4xbf16>
  %gelu = nn.gelu %n tanh : tensor<8x4xf32>
  // CHECK: nn.reduce_max %{{.*}} [1] : tensor<8x4xbf16>
  %max = nn.reduce_max %n [1] : tensor<8x4xf32>
  // CHECK: nn.dropout %{{.*}} {rate = 5.000000e-01 : f64} : tensor<8x4xbf16>
  %dropout = nn.dropout %n {rate = 0.5} : tensor<8x4xf32>
  // CHECK: nn.max_pool2d %{{.*}} : tensor<8x6x6x4xbf16>
  %pool = nn.max_pool2d %c kernel [2, 2] strides [2, 2] padding [0, 0, 0, 0] : tensor<8x6x6x4xf32>
  // CHECK: nn.reshape %{{.*}} [4, 8] : tensor<8x4xbf16>
  %reshape = nn.reshape %n [4, 8] : tensor<8x4xf32>
  // CHECK: nn.transpose %{{.*}} [1, 0] : tensor<8x4xbf16>
  %transpose = nn.transpose %n [1, 0] : tensor<8x4xf32>
  // CHECK: nn.broadcast %{{.*}} [2, 8, 4] : tensor<8x4xbf16>
  %broadcast = nn.broadcast %n [2, 8, 4] : tensor<8x4xf32>
  // CHECK: nn.slice %{{.*}} : tensor<8x4xbf16>
  %slice = nn.slice %n from [0, 0] to [4, 4] by [1, 1] : tensor<8x4xf32>
  // CHECK: nn.pad %{{.*}} : tensor<8x4xbf16>
  %pad = nn.pad %n low [0, 1] high [0, 1] interior [0, 0] : tensor<8x4xf32>
  // CHECK: nn.split %{{.*}} axis 1 sections 2 : tensor<8x4xbf16>
  %split:2 = nn.split %n axis 1 sections 2 : tensor<8x4xf32>
  nn.loss %loss, %weight, %n : tensor<8x4xf32>
}
}
