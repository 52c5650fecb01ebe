// RUN: descent-opt %s --split-reductions | FileCheck %s
// RUN: not descent-opt %s --split-reductions="block=1" 2>&1 | FileCheck %s --check-prefix=OPTION

// What stays whole: short reductions, those with a result for every thread, those over leading axes (a columns kernel has tasks enough), and a
// length that no block divides.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: nn.reshape
// CHECK: return
// OPTION: block must be at least 2 and min-length at least block, got block=1 and min-length=16384
func.func @whole(%a: tensor<1024xf32>, %b: tensor<64x32768xf32>, %c: tensor<32768x3xf32>, %d: tensor<65537xf32>)
    -> (tensor<f32>, tensor<64xf32>, tensor<3xf32>, tensor<f32>) {
  %0 = nn.reduce_sum %a [0] : tensor<1024xf32>
  %1 = nn.reduce_sum %b [1] : tensor<64x32768xf32>
  %2 = nn.reduce_sum %c [0] : tensor<32768x3xf32>
  %3 = nn.reduce_sum %d [0] : tensor<65537xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<64xf32>, tensor<3xf32>, tensor<f32>
}
