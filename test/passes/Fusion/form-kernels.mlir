// RUN: descent-opt %s --form-kernels | FileCheck %s

// A chain of elementwise ops with a broadcast bias is one rows kernel; its inputs keep the order in which they are read.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[B:.*]]: tensor<64xf32>)
// CHECK-NEXT: %[[Y:.*]] = exec.fusion "rows"(%[[X]], %[[B]])
// CHECK-NEXT: ^bb0(%[[X1:.*]]: tensor<8x64xf32>, %[[B1:.*]]: tensor<64xf32>):
// CHECK-NEXT:   %[[SUM:.*]] = nn.add %[[X1]], %[[B1]]
// CHECK-NEXT:   %[[R:.*]] = nn.relu %[[SUM]]
// CHECK-NEXT:   exec.yield %[[R]]
// CHECK-NOT: exec.fusion
// CHECK: return %[[Y]]
func.func @chain(%x: tensor<8x64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32> {
  %0 = nn.add %x, %b : tensor<8x64xf32>, tensor<64xf32>
  %1 = nn.relu %0 : tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// Softmax: two reductions over the last axis and what they feed share one kernel over [8, 64].
// CHECK-LABEL: func.func @softmax
// CHECK: exec.fusion "rows"
// CHECK: nn.reduce_max
// CHECK: nn.exp
// CHECK: nn.reduce_sum
// CHECK: nn.div
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @softmax(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %m = nn.reduce_max %x [1] keep : tensor<8x64xf32>
  %s = nn.sub %x, %m : tensor<8x64xf32>, tensor<8x1xf32>
  %e = nn.exp %s : tensor<8x64xf32>
  %t = nn.reduce_sum %e [1] keep : tensor<8x64xf32>
  %y = nn.div %e, %t : tensor<8x64xf32>, tensor<8x1xf32>
  return %y : tensor<8x64xf32>
}

// The loss and its gradient read the logits once, although the gradient also waits for a scalar that a count over all rows makes. The count,
// which could have joined the loss, must not: the kernel would wait for itself.
// CHECK-LABEL: func.func @loss_and_gradient
// CHECK-SAME: (%[[L:.*]]: tensor<8x64xf32>, %[[W:.*]]: tensor<8x1xf32>)
// CHECK: %[[SCALE:.*]] = exec.fusion "rows"(%{{.*}}) : {{.*}} -> tensor<f32>
// CHECK: %[[BOTH:.*]]:2 = exec.fusion "rows"(%[[L]],
// CHECK-SAME: %[[SCALE]]
// CHECK-SAME: -> (tensor<8x1xf32>, tensor<8x64xf32>)
// CHECK-NOT: exec.fusion
// CHECK: return %[[BOTH]]#0, %[[BOTH]]#1
func.func @loss_and_gradient(%logits: tensor<8x64xf32>, %w: tensor<8x1xf32>) -> (tensor<8x1xf32>, tensor<8x64xf32>) {
  %w2 = nn.mul %w, %w : tensor<8x1xf32>, tensor<8x1xf32>
  %flat = nn.reshape %w2 [8] : tensor<8x1xf32>
  %count = nn.reduce_sum %flat [0] : tensor<8xf32>
  %one = nn.constant dense<1.0> : tensor<f32>
  %scale = nn.div %one, %count : tensor<f32>, tensor<f32>
  %e = nn.exp %logits : tensor<8x64xf32>
  %t = nn.reduce_sum %e [1] keep : tensor<8x64xf32>
  %log = nn.log %t : tensor<8x1xf32>
  %loss = nn.mul %log, %w2 : tensor<8x1xf32>, tensor<8x1xf32>
  %p = nn.div %e, %t : tensor<8x64xf32>, tensor<8x1xf32>
  %g = nn.mul %p, %scale : tensor<8x64xf32>, tensor<f32>
  return %loss, %g : tensor<8x1xf32>, tensor<8x64xf32>
}

// A kernel does not wait for itself: the ops before and behind a product stay apart even though they read the same tensor.
// CHECK-LABEL: func.func @no_cycle
// CHECK: exec.fusion "rows"
// CHECK: exec.fusion "gemm"
// CHECK: exec.fusion "rows"
func.func @no_cycle(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nn.exp %x : tensor<8x8xf32>
  %b = nn.matmul %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
  %c = nn.add %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// A product of a tensor with itself has two inputs all the same: generators know operands by their position.
// CHECK-LABEL: func.func @square
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf32>)
// CHECK: exec.fusion "gemm"(%[[X]], %[[X]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>):
// CHECK-NEXT: nn.matmul %[[A]], %[[B]]
func.func @square(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %b = nn.matmul %x, %x : tensor<8x8xf32>, tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

// A value with its axis dropped, read by an op over the whole domain, is another element than the row's own: two kernels.
// CHECK-LABEL: func.func @dropped_axis
// CHECK: exec.fusion "rows"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.reduce_sum
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion "rows"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.mul
func.func @dropped_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = nn.reduce_sum %x [1] : tensor<8x8xf32>
  %y = nn.mul %x, %s : tensor<8x8xf32>, tensor<8xf32>
  return %y : tensor<8x8xf32>
}

// The gradients of a norm's gain and bias share one columns kernel. It computes the product that only it needs, and computes again, from x and
// the row statistics, the normalised rows: nothing of the input's size is stored for it.
// CHECK-LABEL: func.func @norm_gradients
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[MEAN:.*]]: tensor<8x1xf32>, %[[SCALE:.*]]: tensor<8x1xf32>, %[[DY:.*]]: tensor<8x64xf32>)
// CHECK-DAG: exec.fusion "rows"(%[[X]], %[[MEAN]], %[[SCALE]], %[[DY]]) {{.*}} -> tensor<8x64xf32>
// CHECK-DAG: exec.fusion "columns"({{.*}}) : {{.*}} -> (tensor<64xf32>, tensor<64xf32>)
// CHECK: return
func.func @norm_gradients(%x: tensor<8x64xf32>, %mean: tensor<8x1xf32>, %scale: tensor<8x1xf32>, %dy: tensor<8x64xf32>)
    -> (tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %c = nn.sub %x, %mean : tensor<8x64xf32>, tensor<8x1xf32>
  %n = nn.mul %c, %scale : tensor<8x64xf32>, tensor<8x1xf32>
  %p = nn.mul %n, %dy : tensor<8x64xf32>, tensor<8x64xf32>
  %gain = nn.reduce_sum %p [0] : tensor<8x64xf32>
  %bias = nn.reduce_sum %dy [0] : tensor<8x64xf32>
  %m = nn.reduce_mean %p [1] keep : tensor<8x64xf32>
  %d = nn.mul %n, %m : tensor<8x64xf32>, tensor<8x1xf32>
  return %d, %gain, %bias : tensor<8x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// Dropout's mask is computed wherever it is used, from the key; it is never an output.
// CHECK-LABEL: func.func @mask_not_stored
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf32>, %[[RNG:.*]]: tensor<4xi32>)
// CHECK: %[[Y:.*]] = exec.fusion "rows"(%[[RNG]], %[[X]]) : (tensor<4xi32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK: nn.random
// CHECK: %[[Z:.*]] = exec.fusion "gemm"(%[[Y]], %[[Y]])
// CHECK: exec.fusion "rows"(%[[RNG]], %[[Z]]) : (tensor<4xi32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK: nn.random
func.func @mask_not_stored(%x: tensor<8x8xf32>, %rng: tensor<4xi32>) -> tensor<8x8xf32> {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %u = nn.random %rng [8, 8] id 3
  %keep = nn.compare lt %u, %half : tensor<8x8xf32>, tensor<f32>
  %y = nn.where %keep, %x, %zero : tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>
  %z = nn.matmul %y, %y : tensor<8x8xf32>, tensor<8x8xf32>
  %w = nn.where %keep, %z, %zero : tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>
  return %w : tensor<8x8xf32>
}

// Attention reads its operands through the split that made them, and its gradient writes through the concat.
// CHECK-LABEL: func.func @attention
// CHECK-NOT: exec.fusion "copy"
// CHECK: exec.fusion "attention"(%[[QKV:.*]]) : (tensor<2x16x96xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.split
// CHECK-NEXT: nn.attention
// CHECK: exec.fusion "attention_grad"
// CHECK: nn.split
// CHECK: nn.attention_grad
// CHECK: nn.concat
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @attention(%qkv: tensor<2x16x96xf32>, %dy: tensor<2x16x32xf32>) -> (tensor<2x16x32xf32>, tensor<2x16x96xf32>) {
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<2x16x96xf32>
  %o, %l = nn.attention %q, %k, %v heads 2 causal save_logsumexp : tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
  %dq, %dk, %dv = nn.attention_grad %dy, %q, %k, %v, %o, %l heads 2 causal : tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x2x16xf32>
  %d = nn.concat %dq, %dk, %dv axis 2 : tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>
  return %o, %d : tensor<2x16x32xf32>, tensor<2x16x96xf32>
}

// Views are no kernels; a copy is one of its own; scalars are a kernel over no axes; a constant that must be in memory is one too.
// CHECK-LABEL: func.func @other_kinds
// CHECK: exec.fusion "copy"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.transpose
// CHECK: nn.reshape {{.*}} [12] : tensor<4x3xf32>
// CHECK: exec.fusion "rows"(%{{.*}}, %{{.*}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK: exec.fusion "rows"() : () -> tensor<2xf32>
func.func @other_kinds(%x: tensor<3x4xf32>, %s: tensor<f32>, %t: tensor<f32>) -> (tensor<12xf32>, tensor<f32>, tensor<2xf32>) {
  %a = nn.transpose %x [1, 0] : tensor<3x4xf32>
  %b = nn.reshape %a [12] : tensor<4x3xf32>
  %c = nn.add %s, %t : tensor<f32>, tensor<f32>
  %d = nn.constant dense<2.0> : tensor<2xf32>
  return %b, %c, %d : tensor<12xf32>, tensor<f32>, tensor<2xf32>
}

// An update over many scalars is one kernel, however many there are.
// CHECK-LABEL: func.func @scalars
// CHECK: exec.fusion "rows"
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @scalars(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>, %e: tensor<f32>) -> tensor<f32> {
  %0 = nn.add %a, %b : tensor<f32>, tensor<f32>
  %1 = nn.add %0, %c : tensor<f32>, tensor<f32>
  %2 = nn.add %1, %d : tensor<f32>, tensor<f32>
  %3 = nn.add %2, %e : tensor<f32>, tensor<f32>
  return %3 : tensor<f32>
}
