// RUN: descent-opt %s --form-kernels="max-ops=2" | FileCheck %s
// RUN: descent-opt %s --form-kernels="max-streams=3" | FileCheck %s --check-prefix=STREAMS
// RUN: descent-opt %s --form-kernels="max-ops=2" --mlir-pass-statistics 2>&1 | FileCheck %s --check-prefix=STATISTICS

// A kernel takes no more ops, and reads and writes no more tensors, than the options allow; what was declined is counted.
// CHECK-LABEL: func.func @long
// CHECK: exec.fusion
// CHECK: exec.fusion
// CHECK-NOT: exec.fusion
// STREAMS-LABEL: func.func @long
// STREAMS: exec.fusion "rows"(%{{.*}}, %{{.*}}) :
// STREAMS: exec.fusion "rows"(%{{.*}}, %{{.*}}) :
// STREAMS-NOT: exec.fusion
// STATISTICS: (S) {{[1-9][0-9]*}} declined-size
func.func @long(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %0 = nn.add %x, %y : tensor<64xf32>, tensor<64xf32>
  %1 = nn.exp %0 : tensor<64xf32>
  %2 = nn.mul %1, %z : tensor<64xf32>, tensor<64xf32>
  return %2 : tensor<64xf32>
}
