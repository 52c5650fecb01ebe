// The kernel functions of attention: what they take, how their tasks are cut, which tiles they share. That they compute the right thing is
// AttentionTest.cpp's business.
//
// RUN: descent-opt %s --emit-attention-kernels=cpu=haswell | FileCheck %s
// RUN: descent-opt %s --emit-attention-kernels=cpu=haswell --lower-kernel-functions | FileCheck %s --check-prefix=LLVM

// Kernels of other kinds stay.
// CHECK: exec.kernel @other "rows"
exec.kernel @other "rows" (%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = nn.relu %x : tensor<8x8xf32>
  exec.yield %y : tensor<8x8xf32>
}

// The three parts of one tensor are read where they stand: one input, one output, no copy but K^T. 2 x 4 heads are 8 tasks.
// Scratch: K^T in panels (64 x 32 floats), a block of scores (48 x (64 + 16)) and four statistics of 48 rows = 8192 + 15360 + 768 bytes.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME:    memref<2x64x384xf32>, %{{.*}}: memref<2x64x128xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<24320xi8>)
// CHECK-SAME:    descent.scratch = 24320 : i64, descent.tasks = 8 : i64
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         call @descent_tile_6x16_arows_store
// CHECK:         call @descent_tile_6x16_arows_bstrided_flagged
// CHECK:         return
// CHECK-NOT:     func.func @parts
// LLVM-LABEL:  llvm.func @parts(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
exec.kernel @parts "attention" (%qkv: tensor<2x64x384xf32>) -> tensor<2x64x128xf32> {
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<2x64x384xf32>
  %o = nn.attention %q, %k, %v heads 4 causal : tensor<2x64x128xf32>, tensor<2x64x128xf32>, tensor<2x64x128xf32>
  exec.yield %o : tensor<2x64x128xf32>
}

// Without a mask nothing depends on the diagonal: score tiles stand under no condition. 100 = 2 x 48 + 4 rows need a tile of 4 rows, 20
// columns one of 16 and one masked.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:    descent.tasks = 3 : i64
// CHECK:         call @descent_tile_6x16_arows_store
// CHECK:         call @descent_tile_4x16_arows_store
// CHECK:         call @descent_tile_6x16_arows_bstrided_flagged
// CHECK:         call @descent_tile_6x8_tail_arows_bstrided_flagged
// CHECK:         call @descent_tile_4x16_arows_bstrided_flagged
// CHECK:         call @descent_tile_4x8_tail_arows_bstrided_flagged
// CHECK:         math.log
exec.kernel @ragged "attention" (%q: tensor<1x100x60xf32>, %k: tensor<1x100x60xf32>, %v: tensor<1x100x60xf32>)
    -> (tensor<1x100x60xf32>, tensor<1x3x100xf32>) {
  %o, %l = nn.attention %q, %k, %v heads 3 save_logsumexp : tensor<1x100x60xf32>, tensor<1x100x60xf32>, tensor<1x100x60xf32>
  exec.yield %o, %l : tensor<1x100x60xf32>, tensor<1x3x100xf32>
}

// A long sequence is cut into runs of queries, 1024 = 3 runs of at most 384 rows, so that one head feeds several threads.
// CHECK-LABEL: func.func @long(
// CHECK-SAME:    descent.tasks = 3 : i64
exec.kernel @long "attention" (%q: tensor<1x1024x32xf32>, %k: tensor<1x1024x32xf32>, %v: tensor<1x1024x32xf32>) -> tensor<1x1024x32xf32> {
  %o = nn.attention %q, %k, %v heads 1 causal : tensor<1x1024x32xf32>, tensor<1x1024x32xf32>, tensor<1x1024x32xf32>
  exec.yield %o : tensor<1x1024x32xf32>
}

// The gradients go into one tensor where they belong; P^T and dS^T are read by columns, not transposed. Nothing is as large as T x T.
// CHECK-LABEL: func.func @gradient(
// CHECK-SAME:    memref<1x1024x96xf32>, %{{[a-z0-9]*}}: index
// CHECK-SAME:    descent.tasks = 1 : i64
// CHECK:         call @descent_tile_6x16_arows_store
// CHECK:         call @descent_tile_6x16_arows_bstrided_flagged
// CHECK:         call @descent_tile_6x16_acols_bstrided_flagged
// CHECK:         call @descent_tile_6x16_acols_bstrided_flagged
exec.kernel @gradient "attention_grad" (%dout: tensor<1x1024x32xf32>, %qkv: tensor<1x1024x96xf32>, %o: tensor<1x1024x32xf32>,
                                        %l: tensor<1x1x1024xf32>) -> tensor<1x1024x96xf32> {
  %q, %k, %v = nn.split %qkv axis 2 sections 3 : tensor<1x1024x96xf32>
  %dq, %dk, %dv = nn.attention_grad %dout, %q, %k, %v, %o, %l heads 1 causal : tensor<1x1024x32xf32>, tensor<1x1024x32xf32>,
    tensor<1x1024x32xf32>, tensor<1x1024x32xf32>, tensor<1x1024x32xf32>, tensor<1x1x1024xf32>
  %dqkv = nn.concat %dq, %dk, %dv axis 2 : tensor<1x1024x32xf32>, tensor<1x1024x32xf32>, tensor<1x1024x32xf32>
  exec.yield %dqkv : tensor<1x1024x96xf32>
}

// A gradient that nobody asks for is not computed: no product by columns without dk and dv.
// CHECK-LABEL: func.func @only_dq(
// CHECK-NOT:     acols
// CHECK:         return
exec.kernel @only_dq "attention_grad" (%dout: tensor<1x8x8xf32>, %q: tensor<1x8x8xf32>, %k: tensor<1x8x8xf32>, %v: tensor<1x8x8xf32>,
                                       %o: tensor<1x8x8xf32>, %l: tensor<1x1x8xf32>) -> tensor<1x8x8xf32> {
  %dq, %dk, %dv = nn.attention_grad %dout, %q, %k, %v, %o, %l heads 1 causal : tensor<1x8x8xf32>, tensor<1x8x8xf32>,
    tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x1x8xf32>
  exec.yield %dq : tensor<1x8x8xf32>
}
