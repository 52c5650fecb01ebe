// A model that can be trained passes unchanged; a frozen parameter needs no path to the loss that gradients could take.
// RUN: descent-opt --verify-model %s | FileCheck %s

// CHECK-LABEL: nn.model @m
nn.model @m(%x: tensor<2x4xf32> {nn.role = "data"}, %t: tensor<2xi32> {nn.role = "target"}) {
  %w = nn.parameter "w" zeros : tensor<4x3xf32>
  %c = nn.parameter "classes" ones frozen : tensor<3xf32>
  %0 = nn.matmul %x, %w : tensor<2x4xf32>, tensor<4x3xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} class_weights %{{.*}} : tensor<3xf32> : tensor<2x3xf32>, tensor<2xi32>
  %s, %n = nn.cross_entropy %0, %t class_weights %c : tensor<3xf32> : tensor<2x3xf32>, tensor<2xi32>
  nn.loss %s, %n, %0 : tensor<2x3xf32>
}
