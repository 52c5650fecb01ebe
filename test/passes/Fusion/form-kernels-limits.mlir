// RUN: descent-opt %s --form-kernels="max-ops=2" | FileCheck %s
// RUN: descent-opt %s --form-kernels="max-streams=3" | FileCheck %s --check-prefix=STREAMS

// A kernel takes no more ops, and reads and writes no more tensors, than the options allow.
// CHECK-LABEL: func.func @long
// CHECK: exec.fusion
// CHECK: exec.fusion
// CHECK-NOT: exec.fusion
// STREAMS-LABEL: func.func @long
// STREAMS: exec.fusion "rows"(%{{.*}}, %{{.*}}) :
// STREAMS: exec.fusion "rows"(%{{.*}}, %{{.*}}) :
// STREAMS-NOT: exec.fusion
func.func @long(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %0 = nn.add %x, %y : tensor<64xf32>, tensor<64xf32>
  %1 = nn.exp %0 : tensor<64xf32>
  %2 = nn.mul %1, %z : tensor<64xf32>, tensor<64xf32>
  return %2 : tensor<64xf32>
}
