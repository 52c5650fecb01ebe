// Every op of the dialect, printed and parsed again, in its own syntax and in the generic one.
// RUN: descent-opt %s | descent-opt | FileCheck %s
// RUN: descent-opt --mlir-print-op-generic %s | descent-opt | FileCheck %s

// CHECK-LABEL: nn.module @part(%{{.*}}: tensor<?x4xf32>) -> tensor<?x4xf32>
nn.module @part(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: nn.return %{{.*}} : tensor<?x4xf32>
  nn.return %x : tensor<?x4xf32>
}

// CHECK-LABEL: nn.model @structure(%{{.*}}: tensor<?x4xf32> {nn.name = "x", nn.role = "data"}, %{{.*}}: tensor<?x4xf32> {nn.name = "t", nn.role = "target"})
nn.model @structure(%x: tensor<?x4xf32> {nn.role = "data"}, %t: tensor<?x4xf32> {nn.role = "target"}) {
  // CHECK: nn.parameter "a" zeros : tensor<4xf32>
  %a = nn.parameter "a" zeros : tensor<4xf32>
  // CHECK: nn.parameter "b" ones frozen : tensor<4xf32>
  %b = nn.parameter "b" ones frozen : tensor<4xf32>
  // CHECK: nn.parameter "c" constant(-2.5) : tensor<4xbf16>
  %c = nn.parameter "c" constant(-2.5) : tensor<4xbf16>
  // CHECK: nn.parameter "d" normal(0.0, 0.02) : tensor<4xf16>
  %d = nn.parameter "d" normal(0.0, 0.02) : tensor<4xf16>
  // CHECK: nn.parameter "e" uniform(-0.1, 0.1) : tensor<f32>
  %e = nn.parameter "e" uniform(-0.1, 0.1) : tensor<f32>
  // CHECK: nn.instantiate @part as "p"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = nn.instantiate @part as "p" (%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: %[[S:.*]], %[[W:.*]] = nn.mse %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x4xf32>
  %s, %n = nn.mse %0, %t : tensor<?x4xf32>, tensor<?x4xf32>
  // CHECK: nn.loss %[[S]], %[[W]], %{{.*}} : tensor<?x4xf32>
  nn.loss %s, %n, %0 : tensor<?x4xf32>
}

// CHECK-LABEL: nn.module @elementwise
nn.module @elementwise(%x: tensor<?x4xf32>, %y: tensor<4xf32>, %i: tensor<?x4xi32>, %rng: tensor<4xi32>) -> tensor<?x4xf32> {
  // CHECK: nn.constant dense<1.000000e+00> : tensor<2xf32>
  %0 = nn.constant dense<1.0> : tensor<2xf32>
  // CHECK: nn.neg %{{.*}} : tensor<?x4xi32>
  %1 = nn.neg %i : tensor<?x4xi32>
  // CHECK: nn.abs
  %2 = nn.abs %x : tensor<?x4xf32>
  // CHECK: nn.exp
  %3 = nn.exp %x : tensor<?x4xf32>
  // CHECK: nn.log
  %4 = nn.log %x : tensor<?x4xf32>
  // CHECK: nn.sqrt
  %5 = nn.sqrt %x : tensor<?x4xf32>
  // CHECK: nn.rsqrt
  %6 = nn.rsqrt %x : tensor<?x4xf32>
  // CHECK: nn.sin
  %7 = nn.sin %x : tensor<?x4xf32>
  // CHECK: nn.cos
  %8 = nn.cos %x : tensor<?x4xf32>
  // CHECK: nn.tanh
  %9 = nn.tanh %x : tensor<?x4xf32>
  // CHECK: nn.erf
  %10 = nn.erf %x : tensor<?x4xf32>
  // CHECK: nn.sigmoid
  %11 = nn.sigmoid %x : tensor<?x4xf32>
  // CHECK: nn.relu
  %12 = nn.relu %x : tensor<?x4xf32>
  // CHECK: nn.silu
  %13 = nn.silu %x : tensor<?x4xf32>
  // CHECK: nn.gelu %{{.*}} erf : tensor<?x4xf32>
  %14 = nn.gelu %x erf : tensor<?x4xf32>
  // CHECK: nn.gelu_grad %{{.*}} tanh : tensor<?x4xf32>
  %15 = nn.gelu_grad %x tanh : tensor<?x4xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<4xf32>
  %16 = nn.add %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.sub
  %17 = nn.sub %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.mul
  %18 = nn.mul %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.div
  %19 = nn.div %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.maximum
  %20 = nn.maximum %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.minimum
  %21 = nn.minimum %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.pow
  %22 = nn.pow %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.compare gt %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<4xf32>
  %23 = nn.compare gt %x, %y : tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.where %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4xi1>, tensor<?x4xf32>, tensor<4xf32>
  %24 = nn.where %23, %x, %y : tensor<?x4xi1>, tensor<?x4xf32>, tensor<4xf32>
  // CHECK: nn.cast %{{.*}} to f32 : tensor<?x4xi32>
  %25 = nn.cast %i to f32 : tensor<?x4xi32>
  // CHECK: nn.iota [4, 8] axis 1 i32
  %26 = nn.iota [4, 8] axis 1 i32
  // CHECK: nn.random %{{.*}} [4, 8] id 3
  %27 = nn.random %rng [4, 8] id 3
  nn.return %25 : tensor<?x4xf32>
}

// CHECK-LABEL: nn.module @shapes
nn.module @shapes(%x: tensor<?x6x4xf32>, %c: tensor<6x1xf32>) -> tensor<?x24xf32> {
  // CHECK: nn.reshape %{{.*}} [-1, 24] : tensor<?x6x4xf32>
  %0 = nn.reshape %x [-1, 24] : tensor<?x6x4xf32>
  // CHECK: nn.transpose %{{.*}} [0, 2, 1] : tensor<?x6x4xf32>
  %1 = nn.transpose %x [0, 2, 1] : tensor<?x6x4xf32>
  // CHECK: nn.broadcast %{{.*}} [2, 6, 5] : tensor<6x1xf32>
  %2 = nn.broadcast %c [2, 6, 5] : tensor<6x1xf32>
  // CHECK: nn.slice %{{.*}} from [0, 1, 0] to [-1, 6, 4] by [1, 2, 3] : tensor<?x6x4xf32>
  %3 = nn.slice %x from [0, 1, 0] to [-1, 6, 4] by [1, 2, 3] : tensor<?x6x4xf32>
  // The type of its result, as the next op sees it: [?, 3, 2].
  // CHECK: nn.pad %{{.*}} low [0, 1, 0] high [0, 0, 1] interior [0, 1, 2] : tensor<?x3x2xf32>
  %4 = nn.pad %3 low [0, 1, 0] high [0, 0, 1] interior [0, 1, 2] : tensor<?x3x2xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} axis -1 : tensor<?x6x4xf32>, tensor<?x6x5xf32>
  %5 = nn.concat %x, %4 axis -1 : tensor<?x6x4xf32>, tensor<?x6x5xf32>
  // CHECK: %{{.*}}:3 = nn.split %{{.*}} axis -1 sections 3 : tensor<?x6x9xf32>
  %6:3 = nn.split %5 axis -1 sections 3 : tensor<?x6x9xf32>
  // CHECK: nn.relu %{{.*}}#2 : tensor<?x6x3xf32>
  %7 = nn.relu %6#2 : tensor<?x6x3xf32>
  nn.return %0 : tensor<?x24xf32>
}

// CHECK-LABEL: nn.module @rows
nn.module @rows(%x: tensor<2x6x4xf32>, %g: tensor<4xf32>, %t: tensor<2x6xi64>, %w: tensor<2xf32>, %rng: tensor<4xi32>) -> tensor<f32> {
  // CHECK: nn.reduce_sum %{{.*}} [0, -1] keep : tensor<2x6x4xf32>
  %0 = nn.reduce_sum %x [0, -1] keep : tensor<2x6x4xf32>
  // CHECK: nn.reduce_mean %{{.*}} [1] : tensor<1x6x1xf32>
  %1 = nn.reduce_mean %0 [1] : tensor<1x6x1xf32>
  // CHECK: nn.reduce_max %{{.*}} [0] : tensor<1x1xf32>
  %2 = nn.reduce_max %1 [0] : tensor<1x1xf32>
  // CHECK: nn.softmax %{{.*}} axis -1 : tensor<2x6x4xf32>
  %3 = nn.softmax %x axis -1 : tensor<2x6x4xf32>
  // CHECK: nn.log_softmax %{{.*}} axis 1 : tensor<2x6x4xf32>
  %4 = nn.log_softmax %x axis 1 : tensor<2x6x4xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-03 : f64} : tensor<2x6x4xf32>, tensor<4xf32>, tensor<4xf32>
  %5 = nn.layer_norm %x, %g, %g {epsilon = 1.0e-3} : tensor<2x6x4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: nn.dropout %{{.*}} {rate = 5.000000e-01 : f64} : tensor<2x6x4xf32>
  %6 = nn.dropout %5 {rate = 0.5} : tensor<2x6x4xf32>
  // CHECK: nn.dropout %{{.*}} rng %{{.*}} {id = 1 : i64, rate = 5.000000e-01 : f64} : tensor<2x6x4xf32>
  %7 = nn.dropout %6 rng %rng {id = 1 : i64, rate = 0.5} : tensor<2x6x4xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} class_weights %{{.*}} : tensor<4xf32> row_weights %{{.*}} : tensor<2xf32> {label_smoothing = 1.000000e-01 : f64} : tensor<2x6x4xf32>, tensor<2x6xi64>
  %8, %9 = nn.cross_entropy %7, %t class_weights %g : tensor<4xf32> row_weights %w : tensor<2xf32> {label_smoothing = 0.1} : tensor<2x6x4xf32>, tensor<2x6xi64>
  // CHECK: nn.mse %{{.*}}, %{{.*}} row_weights %{{.*}} : tensor<2xf32> : tensor<2x6x4xf32>, tensor<2x6x4xf32>
  %10, %11 = nn.mse %3, %4 row_weights %w : tensor<2xf32> : tensor<2x6x4xf32>, tensor<2x6x4xf32>
  nn.return %8 : tensor<f32>
}

// CHECK-LABEL: nn.module @products
nn.module @products(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x5xf32>, %i: tensor<2x6xi32>, %table: tensor<9x4xf32>, %a: tensor<2x3x4xf32>) -> tensor<2x6x4xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_b} : tensor<2x3x4xf32>, tensor<9x4xf32>
  %0 = nn.matmul %a, %table {transpose_b} : tensor<2x3x4xf32>, tensor<9x4xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_a} : tensor<2x3x4xf32>, tensor<2x3x9xf32>
  %1 = nn.matmul %a, %0 {transpose_a} : tensor<2x3x4xf32>, tensor<2x3x9xf32>
  // CHECK: nn.conv2d %{{.*}}, %{{.*}} strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  %2 = nn.conv2d %x, %k strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] : tensor<2x8x8x3xf32>, tensor<3x3x3x5xf32>
  // CHECK: nn.conv2d_grad_input %{{.*}}, %{{.*}} strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] input [2, 8, 8, 3] : tensor<2x4x4x5xf32>, tensor<3x3x3x5xf32>
  %3 = nn.conv2d_grad_input %2, %k strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] input [2, 8, 8, 3] : tensor<2x4x4x5xf32>, tensor<3x3x3x5xf32>
  // CHECK: nn.conv2d_grad_weight %{{.*}}, %{{.*}} strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] kernel [3, 3, 3, 5] : tensor<2x8x8x3xf32>, tensor<2x4x4x5xf32>
  %4 = nn.conv2d_grad_weight %x, %2 strides [2, 2] padding [1, 1, 1, 1] dilations [1, 1] kernel [3, 3, 3, 5] : tensor<2x8x8x3xf32>, tensor<2x4x4x5xf32>
  // CHECK: nn.max_pool2d %{{.*}} kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x8x8x3xf32>
  %5 = nn.max_pool2d %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x8x8x3xf32>
  // CHECK: nn.max_pool2d_grad %{{.*}}, %{{.*}} kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x4x4x3xf32>, tensor<2x8x8x3xf32>
  %6 = nn.max_pool2d_grad %5, %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<2x4x4x3xf32>, tensor<2x8x8x3xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<2x6xi32>, tensor<9x4xf32>
  %7 = nn.embedding %i, %table : tensor<2x6xi32>, tensor<9x4xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} rows 9 : tensor<2x6x4xf32>, tensor<2x6xi32>
  %8 = nn.embedding_grad %7, %i rows 9 : tensor<2x6x4xf32>, tensor<2x6xi32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  %9 = nn.attention %7, %7, %7 heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} heads 2 save_logsumexp : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  %o, %l = nn.attention %7, %7, %7 heads 2 save_logsumexp : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  // CHECK: nn.attention_grad %{{.*}} heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x2x6xf32>
  %q, %r, %u = nn.attention_grad %7, %7, %7, %7, %o, %l heads 2 causal : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x2x6xf32>
  nn.return %9 : tensor<2x6x4xf32>
}
